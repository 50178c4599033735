//! Resource names and lists (spec section 2.2).

use std::collections::BTreeMap;

use super::{Quantity, Str};

pub const CPU: &str = "cpu";
pub const MEMORY: &str = "memory";
pub const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
pub const PODS: &str = "pods";

/// Amounts by resource name.
pub type ResourceList = BTreeMap<Str, Quantity>;

/// How the scheduler treats a resource name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResourceClass {
    /// Counted in thousandths.
    Cpu,
    /// Counted in bytes.
    Memory,
    /// Counted in bytes.
    EphemeralStorage,
    /// How many pods a node takes; a pod's own request of it means nothing.
    Pods,
    /// A scalar in whole units, subject to `ignoredResources`: `vendor.example/gpu`.
    Extended,
    /// A scalar in whole units that belongs to Kubernetes: huge pages, attachable volumes, `*kubernetes.io/*`.
    NativeScalar,
    /// A name that the scheduler doesn't track, such as `storage` or `gpu`.
    Ignored,
}

impl ResourceClass {
    pub fn of(name: &str) -> Self {
        match name {
            CPU => Self::Cpu,
            MEMORY => Self::Memory,
            EPHEMERAL_STORAGE => Self::EphemeralStorage,
            PODS => Self::Pods,
            _ if is_extended(name) => Self::Extended,
            _ if name.starts_with("hugepages-")
                || name.contains("kubernetes.io/")
                || name.starts_with("attachable-volumes-") =>
            {
                Self::NativeScalar
            }
            _ => Self::Ignored,
        }
    }

    /// The integer the scheduler keeps for an amount of this class.
    pub fn amount(self, quantity: Quantity) -> i64 {
        if self == Self::Cpu { quantity.milli_value() } else { quantity.value() }
    }
}

fn is_extended(name: &str) -> bool {
    let native = !name.contains('/') || name.contains("kubernetes.io/");
    // `requests.<name>` must be a valid quota key, which is where the length limit of 253-9 on the prefix comes from.
    !native && !name.starts_with("requests.") && is_qualified_name(name) && {
        name.split_once('/').is_some_and(|(prefix, _)| prefix.len() + "requests.".len() <= 253)
    }
}

/// `[prefix/]name` as Kubernetes defines it: a DNS subdomain of up to 253 characters, and up to 63 of `[-A-Za-z0-9_.]`
/// that begin and end with an alphanumeric. Label keys, taint keys and resource names all follow it.
pub fn is_qualified_name(text: &str) -> bool {
    let name = match text.split_once('/') {
        None => text,
        Some((prefix, name)) => {
            if !is_dns_subdomain(prefix) {
                return false;
            }
            name
        }
    };
    !name.is_empty() && is_label_value(name)
}

/// A label value: empty, or up to 63 of `[-A-Za-z0-9_.]` that begin and end with an alphanumeric.
pub fn is_label_value(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return true };
    bytes.len() <= 63
        && first.is_ascii_alphanumeric()
        && last.is_ascii_alphanumeric()
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

/// RFC 1123 subdomain: what objects, nodes and label-key prefixes are named with.
pub fn is_dns_subdomain(text: &str) -> bool {
    !text.is_empty() && text.len() <= 253 && text.split('.').all(is_dns_label_chars)
}

/// RFC 1123 label: what namespaces and containers are named with.
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_label_chars(text)
}

fn is_dns_label_chars(part: &str) -> bool {
    let bytes = part.as_bytes();
    let alnum = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    bytes.first().is_some_and(alnum) && bytes.last().is_some_and(alnum) && bytes.iter().all(|b| alnum(b) || *b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fall_into_upstreams_classes() {
        for (name, class) in [
            ("cpu", ResourceClass::Cpu),
            ("pods", ResourceClass::Pods),
            ("nvidia.com/gpu", ResourceClass::Extended),
            ("foo.kubernetes.io/bar", ResourceClass::NativeScalar),
            ("hugepages-2Mi", ResourceClass::NativeScalar),
            ("attachable-volumes-aws-ebs", ResourceClass::NativeScalar),
            ("gpu", ResourceClass::Ignored),
            ("storage", ResourceClass::Ignored),
            ("requests.foo/x", ResourceClass::Ignored),
            ("Bad_Prefix/x", ResourceClass::Ignored),
        ] {
            assert_eq!(ResourceClass::of(name), class, "{name}");
        }
    }

    #[test]
    fn label_values_and_keys_follow_the_api_servers_rules() {
        assert!(
            is_label_value("")
                && is_label_value("a-b_c.d")
                && !is_label_value("-a")
                && !is_label_value(&"a".repeat(64))
        );
        assert!(
            is_qualified_name("a.b/c")
                && !is_qualified_name("a b/c")
                && !is_qualified_name("/c")
                && !is_qualified_name("a/")
        );
        assert!(!is_qualified_name("a/b/c"));
    }
}
