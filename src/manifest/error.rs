//! What can be wrong with an object, and what is only odd about it.
//!
//! A [`ManifestError`] holds every mistake of one object, in the order in which the fields were read; the API turns each
//! [`FieldError`] into a field violation, the CLI prints them. Texts follow the API server's wording, so that they can be
//! looked up. Promise: an error is bounded (long values are cut, and past [`MAX_REPORTED`] mistakes the rest is counted),
//! because it travels in an answer that has a size limit.

use std::fmt;

/// Mistakes of one object that are spelt out. A manifest of 1.5 MiB can hold tens of thousands of them; nobody reads more
/// than this, and 256 of a few hundred bytes stay far below the 4 MiB that an answer may have.
pub const MAX_REPORTED: usize = 256;

/// One mistake: where, in Kubernetes' notation (`spec.containers[0].resources.requests[cpu]`), and what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FieldError {
    /// Empty for the object as a whole.
    pub path: String,
    pub message: String,
}

/// Something that was accepted, but probably isn't what the writer meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Warning {
    pub path: String,
    pub message: String,
}

/// An object that can't be used, with all its mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct ManifestError {
    /// As far as it could be read; empty when it couldn't.
    pub kind: String,
    pub name: String,
    /// Empty for cluster-scoped kinds, and when it isn't given.
    pub namespace: String,
    /// Never empty.
    pub errors: Vec<FieldError>,
}

impl ManifestError {
    /// `Pod default/web`, `Node n1`, `object without a kind`.
    pub fn object(&self) -> String {
        let kind = if self.kind.is_empty() { "object without a kind" } else { &self.kind };
        match (self.namespace.is_empty(), self.name.is_empty()) {
            (_, true) => kind.to_owned(),
            (true, false) => format!("{kind} {}", self.name),
            (false, false) => format!("{kind} {}/{}", self.namespace, self.name),
        }
    }
}

impl fmt::Display for ManifestError {
    /// `Pod default/web is invalid: spec.containers[0].name: Required value; ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is invalid: {}", self.object(), Listed(&self.errors))
    }
}

/// Mistakes on one line, separated by `; `.
pub(crate) struct Listed<'a>(pub(crate) &'a [FieldError]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

fn write_located(f: &mut fmt::Formatter<'_>, path: &str, message: &str) -> fmt::Result {
    if path.is_empty() { f.write_str(message) } else { write!(f, "{path}: {message}") }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_located(f, &self.path, &self.message)
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_located(f, &self.path, &self.message)
    }
}

pub(crate) const REQUIRED: &str = "Required value";

/// `Invalid value: "x": must be ...`.
pub(crate) fn invalid(value: &str, detail: impl fmt::Display) -> String {
    format!("Invalid value: \"{}\": {detail}", Cut(value))
}

/// `Invalid value: 7: must be ...`.
pub(crate) fn invalid_number(value: impl fmt::Display, detail: impl fmt::Display) -> String {
    format!("Invalid value: {value}: {detail}")
}

/// `Duplicate value: "x"`.
pub(crate) fn duplicate(value: &str) -> String {
    format!("Duplicate value: \"{}\"", Cut(value))
}

/// `Too many: 300: must have at most 256 resources`.
pub(crate) fn too_many(found: usize, most: usize, what: &str) -> String {
    format!("Too many: {found}: must have at most {most} {what}")
}

/// `Unsupported value: "x": supported values: "A", "B"`. The names must be sorted.
pub(crate) fn unsupported<'a>(value: &str, supported: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = supported.into_iter().map(|s| format!("\"{s}\"")).collect();
    format!("Unsupported value: \"{}\": supported values: {}", Cut(value), names.join(", "))
}

/// A value as it is shown in a message: no more than the first characters of a long one.
pub(crate) struct Cut<'a>(pub(crate) &'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 128;
        match self.0.char_indices().nth(SHOWN) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}...", &self.0[..end]),
        }
    }
}
