//! Reading the fields of a Policy as the decoder of its time did: keys match without regard to case, `null` is absent.
//!
//! Stricter in one thing: that decoder dropped keys that it didn't know, and with them what their writer wanted. Each getter
//! reports a wrong type once and then answers as if the field were absent, so that reading goes on.

use std::cell::RefCell;

use serde_json::{Map, Value};

use crate::manifest::FieldError;
use crate::manifest::error::REQUIRED;
use crate::manifest::near_miss::closest;

/// An object of the file and its path.
pub(super) struct Fields<'a> {
    map: &'a Map<String, Value>,
    path: String,
    issues: &'a RefCell<Vec<FieldError>>,
}

impl<'a> Fields<'a> {
    /// The whole file. None, with an error, if it isn't an object.
    pub(super) fn root(value: &'a Value, issues: &'a RefCell<Vec<FieldError>>, known: &[&str]) -> Option<Self> {
        Self::new(value, String::new(), issues, known)
    }

    fn new(value: &'a Value, path: String, issues: &'a RefCell<Vec<FieldError>>, known: &[&str]) -> Option<Self> {
        let Value::Object(map) = value else {
            issues.borrow_mut().push(FieldError { path, message: expected("an object", value) });
            return None;
        };
        let fields = Self { map, path, issues };
        let mut seen: Vec<&str> = Vec::new();
        for key in map.keys() {
            match known.iter().find(|field| field.eq_ignore_ascii_case(key)) {
                Some(field) if seen.contains(field) => fields.error(key, format!("duplicates {field}")),
                Some(field) => seen.push(field),
                None => {
                    let hint = closest(key, known.iter().copied())
                        .map(|field| format!("; did you mean {field}?"))
                        .unwrap_or_default();
                    fields.error(key, format!("unknown field{hint}"));
                }
            }
        }
        Some(fields)
    }

    pub(super) fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() { field.to_owned() } else { format!("{}.{field}", self.path) }
    }

    /// A mistake in a field of this object; of the object itself, if the field is empty.
    pub(super) fn error(&self, field: &str, message: impl Into<String>) {
        let path = if field.is_empty() { self.path.clone() } else { self.path_of(field) };
        self.issues.borrow_mut().push(FieldError { path, message: message.into() });
    }

    pub(super) fn get(&self, field: &str) -> Option<&'a Value> {
        let found = self.map.iter().find(|(key, _)| key.eq_ignore_ascii_case(field));
        found.map(|(_, value)| value).filter(|value| !value.is_null())
    }

    fn typed<T>(&self, field: &str, what: &str, cast: impl FnOnce(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.get(field)?;
        let cast = cast(value);
        if cast.is_none() {
            self.error(field, expected(what, value));
        }
        cast
    }

    pub(super) fn text(&self, field: &str) -> Option<&'a str> {
        self.typed(field, "a string", Value::as_str)
    }

    /// A string that must be there.
    pub(super) fn required_text(&self, field: &str) -> Option<&'a str> {
        match self.get(field) {
            None => self.error(field, REQUIRED),
            Some(Value::String(text)) if text.is_empty() => self.error(field, REQUIRED),
            Some(_) => return self.text(field),
        }
        None
    }

    pub(super) fn flag(&self, field: &str) -> Option<bool> {
        self.typed(field, "a boolean", Value::as_bool)
    }

    pub(super) fn integer(&self, field: &str) -> Option<i64> {
        self.typed(field, "a 64-bit integer", Value::as_i64)
    }

    pub(super) fn object(&self, field: &str, known: &[&str]) -> Option<Fields<'a>> {
        Self::new(self.get(field)?, self.path_of(field), self.issues, known)
    }

    /// The objects of a list. None: the list is absent, which isn't the same as empty.
    pub(super) fn list(&self, field: &str, known: &[&str]) -> Option<Vec<Fields<'a>>> {
        let items = self.typed(field, "a list", Value::as_array)?;
        let path = |i: usize| format!("{}[{i}]", self.path_of(field));
        let read = items.iter().enumerate().filter_map(|(i, item)| Self::new(item, path(i), self.issues, known));
        Some(read.collect())
    }

    /// The strings of a list; absent is empty.
    pub(super) fn texts(&self, field: &str) -> Vec<&'a str> {
        let items = self.typed(field, "a list", Value::as_array).into_iter().flatten().enumerate();
        let texts = items.filter_map(|(i, item)| {
            if item.as_str().is_none() {
                self.error(&format!("{field}[{i}]"), expected("a string", item));
            }
            item.as_str()
        });
        texts.collect()
    }
}

fn expected(what: &str, found: &Value) -> String {
    let kind = match found {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() || number.is_u64() => {
            return format!("expected {what}, found {number}");
        }
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    format!("expected {what}, found {kind}")
}
