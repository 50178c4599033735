//! From text to JSON values: JSON, YAML, several documents in either, and where the text is broken.
//!
//! Stricter than the parsers by themselves: a key that stands twice in one object is an error in both languages, because
//! the two values can't both be meant. Bounded: nesting to 128 levels, and YAML's aliases to a small multiple of the text
//! that uses them, so that a few lines can't unfold into gigabytes.

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
pub(super) struct Document {
    /// From 1, counting as YAML does: empty documents between two `---` count too.
    pub(super) number: usize,
    pub(super) value: Value,
}

/// All documents of a text, in order. An error takes the rest of the section between two `---` with it, no more.
pub(super) fn documents(text: &str) -> (Vec<Document>, Vec<SyntaxError>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    let mut number = 0;
    for section in sections(text) {
        let values = match section.text.trim_start_matches("---").trim_start().as_bytes().first() {
            Some(b'{' | b'[') => json_or_flow_yaml(section),
            _ => yaml(section),
        };
        match values {
            Ok(values) => {
                for value in values {
                    number += 1;
                    if !value.is_null() {
                        found.push(Document { number, value });
                    }
                }
            }
            Err(error) => {
                number += 1;
                errors.push(error);
            }
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

/// JSON documents one after the other. Text that isn't JSON may still be YAML, which also has braces.
fn json_or_flow_yaml(section: Section<'_>) -> Result<Vec<Value>, SyntaxError> {
    let json = section.text.trim_start_matches("---");
    let stream = serde_json::Deserializer::from_str(json).into_iter::<Strict>();
    let values: Result<Vec<Strict>, _> = stream.collect();
    match values {
        Ok(values) => Ok(values.into_iter().map(|strict| strict.0).collect()),
        // When it is neither, the JSON error is the one to show.
        Err(error) => yaml(section).map_err(|_| json_error(&error, section.lines_before)),
    }
}

fn json_error(error: &serde_json::Error, lines_before: usize) -> SyntaxError {
    let text = error.to_string();
    let message = text.rfind(" at line ").map_or(text.as_str(), |end| &text[..end]);
    let line = if error.line() == 0 { 0 } else { error.line() + lines_before };
    SyntaxError { line, column: error.column(), message: message.to_owned() }
}

fn yaml(section: Section<'_>) -> Result<Vec<Value>, SyntaxError> {
    let length = section.text.len();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            // As deep as JSON may be.
            max_depth: 128,
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
    let mut values: Vec<Value> = serde_saphyr::from_multiple_with_options(section.text, options).map_err(|error| {
        use serde_saphyr::MessageFormatter as _;
        let message = serde_saphyr::UserMessageFormatter.format_message(&error).into_owned();
        let at = error.location().map_or((0, 0), |l| (l.line(), l.column()));
        let number = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
        let line = if at.0 == 0 { 0 } else { number(at.0).saturating_add(section.lines_before) };
        SyntaxError { line, column: number(at.1), message }
    })?;
    if values.is_empty() {
        // Null documents are left out; a section has at least one document.
        values.push(Value::Null);
    }
    Ok(values)
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
