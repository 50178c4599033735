//! From text to JSON values: JSON, YAML, several documents in either, and where the text is broken.
//!
//! Stricter than the parsers by themselves: a key that stands twice in one object is an error in both languages, because
//! the two values can't both be meant. Bounded: nesting to 128 levels (YAML: 64), and YAML's aliases to a small multiple of
//! the text that uses them, so that a few lines can't unfold into gigabytes.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

/// Text that is neither JSON nor YAML, or uses a key twice.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {message}")]
pub struct SyntaxError {
    /// From 1; 0 when the parser doesn't say.
    pub line: usize,
    /// From 1; 0 when the parser doesn't say.
    pub column: usize,
    pub message: String,
}

/// Parses one JSON document, such as the `manifest_json` of a request.
pub fn parse_json(json: &[u8]) -> Result<Value, SyntaxError> {
    // One check of the whole text is cheaper than one of each string in it.
    let parsed = match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str::<Strict>(text),
        Err(_) => serde_json::from_slice::<Strict>(json),
    };
    parsed.map(|strict| strict.0).map_err(|e| json_error(&e, 0))
}

/// One document of a text.
pub(crate) struct Document {
    /// From 1, counting as YAML does: empty documents between two `---` count too.
    pub(crate) number: usize,
    pub(crate) value: Value,
}

/// All documents of a text, in order. A mistake costs the rest of its section between two `---`, no more.
pub(crate) fn documents(text: &str) -> (Vec<Document>, Vec<SyntaxError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    let mut number = 0;
    for section in sections(text) {
        let (values, error) = if is_json(section.text) { json(section) } else { yaml(section) };
        for value in values {
            number += 1;
            if !value.is_null() {
                found.push(Document { number, value });
            }
        }
        if let Some(error) = error {
            number += 1;
            errors.push(error);
        }
    }
    (found, errors)
}

/// What lies between two `---` lines, the leading one included.
#[derive(Clone, Copy)]
struct Section<'a> {
    text: &'a str,
    /// How many lines of the text come before.
    lines_before: usize,
}

/// Cuts a text at the lines that begin with `---`. YAML allows such a line nowhere else, not even in a quoted or block
/// string, and JSON not at all; so this cuts exactly at the borders of documents.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (line_number, line) in text.split_inclusive('\n').enumerate() {
        let is_marker =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']));
        if is_marker && at > start {
            sections.push(Section { text: &text[start..at], lines_before: start_line });
            (start, start_line) = (at, line_number);
        }
        at += line.len();
    }
    sections.push(Section { text: &text[start..], lines_before: start_line });
    // Comments and directives ahead of the first marker are no document.
    sections.retain(|s| s.text.lines().any(|l| !l.trim_start().is_empty() && !l.trim_start().starts_with(['#', '%'])));
    sections
}

/// JSON or YAML? YAML has braces too, but a JSON object goes on with a quoted key or ends. Deciding by the first
/// characters, not by trying both, keeps a slip in JSON from being read as YAML, where `{"a": }` means null.
fn is_json(section: &str) -> bool {
    let text = section.trim_start_matches("---").trim_start();
    let first_key = text.trim_start_matches(|c: char| c == '{' || c == '[' || c.is_ascii_whitespace());
    text.starts_with(['{', '[']) && (first_key.is_empty() || first_key.starts_with(['"', '}', ']']))
}

/// JSON documents one after the other, up to the first mistake.
fn json(section: Section<'_>) -> (Vec<Value>, Option<SyntaxError>) {
    let text = section.text.trim_start_matches("---");
    let mut values = Vec::new();
    for document in serde_json::Deserializer::from_str(text).into_iter::<Strict>() {
        match document {
            Ok(strict) => values.push(strict.0),
            Err(error) => return (values, Some(json_error(&error, section.lines_before))),
        }
    }
    (values, None)
}

fn json_error(error: &serde_json::Error, lines_before: usize) -> SyntaxError {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    let line = if error.line() == 0 { 0 } else { error.line() + lines_before };
    SyntaxError { line, column: error.column(), message: message.to_owned() }
}

/// Mostly one document; a `...` line can end one within a section.
fn yaml(section: Section<'_>) -> (Vec<Value>, Option<SyntaxError>) {
    let length = section.text.len();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            // Half of what JSON may have: a level of YAML takes 20 KiB of stack in a debug build, and 2 MiB is all that a
            // thread has. The deepest objects of Kubernetes, the schemas of custom resources, have about forty.
            max_depth: 64,
            // What is written out needs at least a byte a node; the limits that matter are those on aliases.
            max_nodes: length.saturating_add(1_000),
            max_events: length.saturating_mul(2).saturating_add(1_000),
            max_total_scalar_bytes: length.saturating_mul(2).saturating_add(1_000_000),
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: length.saturating_mul(16).saturating_add(1_000),
        },
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        // `yes`, `no`, `on`, `off` are words, and `007` is text: labels and node selectors hold such.
        strict_booleans: true,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        with_snippet: false,
        emit_comments: false,
    };
    match serde_saphyr::from_multiple_with_options(section.text, options) {
        // Null documents are left out; a section has at least one document.
        Ok(values) if values.is_empty() => (vec![Value::Null], None),
        Ok(values) => (values, None),
        Err(error) => (Vec::new(), Some(yaml_error(&error, section.lines_before))),
    }
}

fn yaml_error(error: &serde_saphyr::Error, lines_before: usize) -> SyntaxError {
    use serde_saphyr::MessageFormatter as _;
    let message = serde_saphyr::UserMessageFormatter.format_message(error).into_owned();
    let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let (line, column) = error.location().map_or((0, 0), |l| (number(l.line()), number(l.column())));
    let line = if line == 0 { 0 } else { line.saturating_add(lines_before) };
    SyntaxError { line, column, message }
}

/// A JSON value without repeated keys.
struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        At::Root.deserialize(deserializer).map(Strict)
    }
}

/// Where in the document the value being read is; only written out when there is an error.
#[derive(Clone, Copy)]
enum At<'a> {
    Root,
    Key(&'a At<'a>, &'a str),
    Index(&'a At<'a>, usize),
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Key(Self::Root, key) => f.write_str(key),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
            Self::Index(parent, i) => write!(f, "{parent}[{i}]"),
        }
    }
}

impl<'de> DeserializeSeed<'de> for At<'_> {
    type Value = Value;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for At<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }
    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }
    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }
    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }
    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }
    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = access.next_element_seed(At::Index(&self, list.len()))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            match map.entry(key) {
                Entry::Vacant(entry) => {
                    let value = access.next_value_seed(At::Key(&self, entry.key()))?;
                    entry.insert(value);
                }
                Entry::Occupied(entry) => {
                    let at = At::Key(&self, entry.key());
                    return Err(A::Error::custom(format_args!("duplicate key: {at} is given twice")));
                }
            }
        }
        Ok(Value::Object(map))
    }
}
