//! What Kubernetes lets names, label keys and label values be, with the API server's texts.
//!
//! The rules themselves are in `model::resources`; here is what to say when one is broken.

use crate::model::resources::{is_dns_label, is_dns_subdomain, is_label_value, is_qualified_name};

const LABEL_PART: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const DNS_LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or \
    '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used \
    for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Why this is no label value; None: it is one.
pub(crate) fn label_value_problem(text: &str) -> Option<String> {
    if is_label_value(text) {
        return None;
    }
    Some(too_long(text, 63).unwrap_or_else(|| LABEL_VALUE.to_owned()))
}

/// Why this is no qualified name (label key, taint key, resource name).
pub(crate) fn qualified_name_problem(text: &str) -> Option<String> {
    if is_qualified_name(text) {
        return None;
    }
    let (prefix, name) = match text.split_once('/') {
        None => (None, text),
        Some((prefix, name)) => (Some(prefix), name),
    };
    Some(if name.contains('/') {
        format!(
            "a qualified name {LABEL_PART} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        )
    } else if prefix == Some("") {
        "prefix part must be non-empty".to_owned()
    } else if let Some(problem) = prefix.and_then(subdomain_problem) {
        format!("prefix part {problem}")
    } else if name.is_empty() {
        "name part must be non-empty".to_owned()
    } else if let Some(problem) = too_long(name, 63) {
        format!("name part {problem}")
    } else {
        format!("name part {LABEL_PART}")
    })
}

/// Why this is no DNS subdomain (the name of most objects).
pub(crate) fn subdomain_problem(text: &str) -> Option<String> {
    if is_dns_subdomain(text) {
        return None;
    }
    Some(too_long(text, 253).unwrap_or_else(|| SUBDOMAIN.to_owned()))
}

/// Why this is no DNS label (namespaces, containers, volumes).
pub(crate) fn dns_label_problem(text: &str) -> Option<String> {
    if is_dns_label(text) {
        return None;
    }
    Some(too_long(text, 63).unwrap_or_else(|| DNS_LABEL.to_owned()))
}

fn too_long(text: &str, most: usize) -> Option<String> {
    (text.len() > most).then(|| format!("must be no more than {most} bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_says_what_is_broken() {
        for (text, start) in [
            ("bad key", "name part must consist of"),
            ("a/b/c", "a qualified name must consist of"),
            ("/c", "prefix part must be non-empty"),
            ("A_/c", "prefix part a lowercase RFC 1123 subdomain"),
            ("a/", "name part must be non-empty"),
            ("", "name part must be non-empty"),
            (&"x".repeat(64), "name part must be no more than 63 bytes"),
        ] {
            assert!(qualified_name_problem(text).is_some_and(|p| p.starts_with(start)), "{text}");
        }
        assert_eq!(qualified_name_problem("example.com/name"), None);
        assert_eq!(label_value_problem(&"x".repeat(64)).as_deref(), Some("must be no more than 63 bytes"));
        assert_eq!(dns_label_problem("a.b").as_deref(), Some(DNS_LABEL));
        assert_eq!(subdomain_problem("a.b"), None);
    }
}
