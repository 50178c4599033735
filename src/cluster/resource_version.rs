//! Which of two versions of an object is the older one.
//!
//! Kubernetes says that clients must not order resource versions; every API server there is writes growing decimals, and
//! since 1.35 the API says so too (KEP-5504). Within one feed (source and epoch) and one object the comparison is safe; after
//! an etcd restore numbers go back, which is why a client then speaks under a new epoch.

use std::cmp::Ordering;

/// Whether `new` is older than `known`. False when either is no decimal: then nothing can be told, and the newer word
/// counts.
pub fn is_older(new: &str, known: &str) -> bool {
    match (digits(new), digits(known)) {
        (Some(new), Some(known)) => new.len().cmp(&known.len()).then_with(|| new.cmp(known)) == Ordering::Less,
        _ => false,
    }
}

/// The decimal without leading zeros. Of any length: they are compared, never computed with.
fn digits(text: &str) -> Option<&str> {
    (!text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.trim_start_matches('0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_as_numbers_of_any_size() {
        assert!(is_older("9", "10") && is_older("99999999999999999999999", "100000000000000000000000"));
        assert!(!is_older("10", "9") && !is_older("10", "10") && !is_older("010", "10") && !is_older("10", "010"));
    }

    #[test]
    fn what_is_no_number_is_never_older() {
        for (new, known) in [("", "5"), ("5", ""), ("a", "5"), ("5", "b"), ("-1", "5")] {
            assert!(!is_older(new, known), "{new} {known}");
        }
    }
}
