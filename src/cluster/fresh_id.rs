//! Names that no other process or moment has: incarnations and request ids.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use uuid::{Builder, Uuid, Variant, Version};

/// A random (version 4) UUID.
///
/// The bits come from the standard library's hash keys, which it draws from the kernel by a system call. The `uuid` crate's
/// own source looks the call up at run time, which a static binary can't, and then wants `/dev/urandom`, which an empty root
/// doesn't have. For naming things that is random enough; nothing here guards a secret.
pub fn fresh_id() -> Uuid {
    let word = || u128::from(RandomState::new().build_hasher().finish());
    let builder = Builder::from_u128((word() << 64) | word());
    builder.with_variant(Variant::RFC4122).with_version(Version::Random).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_random_uuids_and_differ() {
        let ids: std::collections::BTreeSet<Uuid> = (0..1_000).map(|_| fresh_id()).collect();
        assert_eq!(ids.len(), 1_000);
        assert!(ids.iter().all(|id| id.get_version() == Some(Version::Random)));
    }
}
