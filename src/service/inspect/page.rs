//! Pages of a list, and the tokens that lead from one to the next.
//!
//! A token holds the key of the last item of its page, so it stays good whatever is added or removed meanwhile, and no
//! state is kept for a client that never comes back. It is opaque: a check value over the list and the key tells tokens
//! that Berth made from anything else, and the tokens of one list from those of another.

use super::super::ServiceError;
use crate::cluster::view::name_hash;

/// Items on a page unless the request says otherwise.
const DEFAULT_SIZE: usize = 100;
/// Most items on a page.
const MAX_SIZE: usize = 500;
/// Bytes of a page as estimated by the items' weight. An answer must stay below 4 MiB; the rest is slack for what the
/// estimate leaves out.
const MAX_BYTES: usize = 3 << 20;

/// What a client asks for.
#[derive(Debug, Clone, Default)]
pub struct PageRequest {
    /// 0: the default.
    pub size: i32,
    /// Empty: the first page.
    pub token: String,
}

/// A page.
#[derive(Debug, Clone)]
pub struct Page<T> {
    pub items: Vec<T>,
    /// Empty at the end.
    pub next: String,
    /// The revision that it shows.
    pub revision: u64,
}

/// Which list a token belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    Nodes,
    Pods,
    Reservations,
    Profiles,
    Decisions,
}

/// The place in a list where a page begins, and how long it may be.
pub(super) struct Place<const PARTS: usize> {
    list: List,
    size: usize,
    /// The key of the item before the page; None at the start.
    pub(super) after: Option<[String; PARTS]>,
}

impl<const PARTS: usize> Place<PARTS> {
    /// `PARTS` is the number of strings in a key of the list.
    pub(super) fn of(list: List, request: &PageRequest) -> Result<Self, ServiceError> {
        let size = match usize::try_from(request.size) {
            Err(_) => return Err(ServiceError::invalid("page_size", "must not be negative")),
            Ok(0) => DEFAULT_SIZE,
            Ok(size) => size.min(MAX_SIZE),
        };
        let after = match request.token.as_str() {
            "" => None,
            token => Some(decode(list, token).ok_or_else(|| {
                ServiceError::invalid("page_token", "is none that this list gave; begin again without one")
            })?),
        };
        Ok(Self { list, size, after })
    }

    /// How many items to look at: the page and one more, which tells whether there is another page.
    pub(super) fn wanted(&self) -> usize {
        self.size + 1
    }

    /// Cuts items that follow `after`, in order, to a page.
    pub(super) fn cut<T>(
        &self,
        mut items: Vec<T>,
        revision: u64,
        key: impl Fn(&T) -> [String; PARTS],
        weight: impl Fn(&T) -> usize,
    ) -> Page<T> {
        let mut bytes = 0_usize;
        let fits = |item: &T| {
            bytes = bytes.saturating_add(weight(item));
            bytes <= MAX_BYTES
        };
        // One item always goes: an object is at most 1.5 MiB.
        let length = items.iter().take(self.size).map(fits).take_while(|fits| *fits).count().max(1);
        let more = items.len() > length;
        items.truncate(length);
        let next = items.last().filter(|_| more).map(|last| encode(self.list, &key(last))).unwrap_or_default();
        Page { items, next, revision }
    }
}

/// The `count` smallest items, in order, without sorting the others: pages of 150,000 pods must not cost a full sort each.
pub(super) fn smallest<T: Ord>(mut items: Vec<T>, count: usize) -> Vec<T> {
    if items.len() > count {
        items.select_nth_unstable(count);
        items.truncate(count);
    }
    items.sort_unstable();
    items
}

fn check_value(list: List, key: &str) -> u64 {
    name_hash(&format!("{list:?}\0{key}"))
}

fn encode<const PARTS: usize>(list: List, key: &[String; PARTS]) -> String {
    // Names of Kubernetes never hold a NUL.
    let key = key.join("\0");
    let check = check_value(list, &key);
    let hex: String = key.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{check:016x}{hex}")
}

fn decode<const PARTS: usize>(list: List, token: &str) -> Option<[String; PARTS]> {
    let (check, hex) = token.split_at_checked(16)?;
    let pairs = hex.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> =
        pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect();
    let key = String::from_utf8(bytes?).ok()?;
    if u64::from_str_radix(check, 16).ok()? != check_value(list, &key) {
        return None;
    }
    let parts: Vec<String> = key.split('\0').map(str::to_owned).collect();
    parts.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parts: [&str; 2]) -> [String; 2] {
        parts.map(str::to_owned)
    }

    #[test]
    fn a_token_leads_back_to_its_key_in_its_list_only() {
        let token = encode(List::Pods, &key(["default", "wäb"]));
        assert_eq!(decode(List::Pods, &token), Some(key(["default", "wäb"])));
        assert_eq!(decode::<2>(List::Nodes, &token), None);
        assert_eq!(decode::<1>(List::Pods, &token), None);
        for broken in ["x", "0123456789abcdef", &token[..token.len() - 2], &format!("{token}00"), "ääääääääää"]
        {
            assert_eq!(decode::<2>(List::Pods, broken), None, "{broken}");
        }
    }

    #[test]
    fn pages_are_cut_by_number_and_by_weight() {
        let place = Place::<1>::of(List::Nodes, &PageRequest { size: 2, token: String::new() }).unwrap();
        let cut = |weight: usize, items: Vec<u32>| place.cut(items, 1, |i| [i.to_string()], |_| weight);
        let page = cut(1, vec![1, 2, 3]);
        assert_eq!((page.items, page.next), (vec![1, 2], encode(List::Nodes, &["2".to_owned()])));
        let page = cut(1, vec![1, 2]);
        assert_eq!((page.items, page.next.as_str()), (vec![1, 2], ""));
        let page = cut(MAX_BYTES, vec![1, 2, 3]);
        assert_eq!((page.items, page.next.is_empty()), (vec![1], false));
        let page = cut(MAX_BYTES + 1, vec![1]);
        assert_eq!((page.items, page.next.is_empty()), (vec![1], true));
    }

    #[test]
    fn the_smallest_come_in_order() {
        assert_eq!(smallest(vec![5, 1, 4, 2, 3], 3), [1, 2, 3]);
        assert_eq!(smallest(vec![2, 1], 3), [1, 2]);
    }

    #[test]
    fn sizes_are_bounded_and_never_negative() {
        let size = |size| Place::<1>::of(List::Nodes, &PageRequest { size, token: String::new() }).map(|p| p.size);
        assert_eq!((size(0), size(7), size(10_000)), (Ok(100), Ok(7), Ok(500)));
        assert!(size(-1).is_err());
    }
}
