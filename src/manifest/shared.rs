//! One allocation for strings that come again and again: label keys and values, images, resource names, `True`.
//!
//! Without it, 150,000 pods from the same few hundred templates would hold some nine million small strings. Each thread
//! remembers the last string per slot of a small table and hands out that one while it is asked for the same text; a
//! collision replaces it. So the table is bounded (at most 2 MiB of text per thread, in practice 100 KiB), needs no lock,
//! and never changes what is read, only where it lies.

use std::cell::RefCell;

use crate::model::Str;

/// Slots of the table: a power of two, well above the number of words that one cluster's templates share.
const SLOTS: usize = 4096;
/// Longer strings (image lists, scripts) rarely come twice.
const LONGEST: usize = 256;

thread_local! {
    static RECENT: RefCell<Vec<Str>> = RefCell::new(vec![Str::default(); SLOTS]);
}

/// The text as a string that equal texts are likely to share.
pub(super) fn shared(text: &str) -> Str {
    if text.is_empty() {
        return Str::default();
    }
    if text.len() > LONGEST {
        return Str::from(text);
    }
    RECENT.with_borrow_mut(|recent| match recent.get_mut(slot(text)) {
        Some(known) if **known == *text => known.clone(),
        Some(known) => {
            *known = Str::from(text);
            known.clone()
        }
        None => Str::from(text),
    })
}

/// Eight bytes a step; only speed matters, a bad spread merely shares less.
fn slot(text: &str) -> usize {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = text.len() as u64;
    for chunk in text.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
    }
    // The top bits are the well-mixed ones; what remains after the shift fits any usize.
    usize::try_from(hash >> (u64::BITS - SLOTS.trailing_zeros())).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_share_and_different_ones_stay_different() {
        let first = shared("kubernetes.io/hostname");
        assert!(Str::ptr_eq(&first, &shared("kubernetes.io/hostname")));
        for i in 0..20_000 {
            let text = format!("value-{i}");
            assert_eq!(&*shared(&text), text);
        }
        assert_eq!(&*shared("kubernetes.io/hostname"), "kubernetes.io/hostname");
        assert_eq!(&*shared(""), "");
        assert_eq!(shared(&"x".repeat(1000)).len(), 1000);
    }
}
