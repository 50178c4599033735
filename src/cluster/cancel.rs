//! The word that a piece of work isn't wanted any more: its deadline passed, its caller left, the process ends.
//!
//! Whoever starts work owns a flag and may set it at any time; whoever does the work looks at it in every loop whose length
//! input controls, and stops. A look is one relaxed load, so it is taken for each node, term or pod, never for each so many:
//! a single node may cost a millisecond. What work that was stopped returns means nothing. The one who called it looks at
//! the flag before anything is made of it.

use std::sync::atomic::{AtomicBool, Ordering};

/// A flag to look at. Once set it stays set.
#[derive(Debug, Clone, Copy)]
pub struct Cancel<'a>(&'a AtomicBool);

static NEVER: AtomicBool = AtomicBool::new(false);

impl<'a> Cancel<'a> {
    pub fn new(flag: &'a AtomicBool) -> Self {
        Self(flag)
    }

    /// For work that is bounded by itself.
    pub fn never() -> Cancel<'static> {
        Cancel(&NEVER)
    }

    pub fn is_set(self) -> bool {
        #[cfg(test)]
        if looks::look() {
            return true;
        }
        self.0.load(Ordering::Relaxed)
    }

    pub fn flag(self) -> &'a AtomicBool {
        self.0
    }

    /// The items, until the flag is set.
    pub fn guard<I: IntoIterator>(self, items: I) -> impl Iterator<Item = I::Item> {
        items.into_iter().take_while(move |_| !self.is_set())
    }
}

/// Lets tests set the flag by looks, where a clock would only guess.
#[cfg(test)]
pub(crate) mod looks {
    use std::cell::Cell;

    thread_local! {
        static LOOKS: Cell<u64> = const { Cell::new(0) };
        static SET_AFTER: Cell<u64> = const { Cell::new(u64::MAX) };
    }

    pub(super) fn look() -> bool {
        LOOKS.set(LOOKS.get() + 1);
        LOOKS.get() > SET_AFTER.get()
    }

    /// Runs something on this thread whose flags are set after so many looks; how many there were.
    pub(crate) fn set_after<T>(looks: u64, run: impl FnOnce() -> T) -> (T, u64) {
        LOOKS.set(0);
        SET_AFTER.set(looks);
        let result = run();
        SET_AFTER.set(u64::MAX);
        (result, LOOKS.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_end_when_the_flag_is_set() {
        let flag = AtomicBool::new(false);
        let mut seen = Vec::new();
        for i in Cancel::new(&flag).guard(0..10) {
            seen.push(i);
            flag.store(i == 3, Ordering::Relaxed);
        }
        assert_eq!(seen, [0, 1, 2, 3]);
        assert_eq!(Cancel::never().guard(0..10).count(), 10);
    }
}
