//! Reading fields of a JSON value with the path at hand.
//!
//! A [`Reader`] is a value plus the way that led to it, a chain of borrowed steps on the stack: nothing is allocated until
//! there is something to report. Each getter reports a wrong type once and then answers as if the field were absent, so
//! that reading goes on and finds the other mistakes too. `null` is absent everywhere.
//!
//! Invariant: a reader on which fields are read holds an object or null; whatever makes readers checks that first.

use std::cell::{Cell, RefCell};

use serde_json::{Map, Value};

use super::error::{Cut, FieldError, MAX_REPORTED, REQUIRED, Warning, invalid, invalid_number, unsupported};
use super::near_miss::{Level, closest};
use super::shared::shared;
use crate::model::{Quantity, Str, Time};

/// What was found wrong or odd with one object so far.
#[derive(Default)]
pub(crate) struct Issues {
    errors: RefCell<Vec<FieldError>>,
    warnings: RefCell<Vec<Warning>>,
    unreported: Cell<usize>,
    strict: bool,
}

impl Issues {
    /// Where unknown fields are mistakes: configuration files, which upstream decodes strictly.
    pub(crate) fn strict() -> Self {
        Self { strict: true, ..Self::default() }
    }

    pub(crate) fn error(&self, path: String, message: String) {
        let mut errors = self.errors.borrow_mut();
        if errors.len() < MAX_REPORTED {
            errors.push(FieldError { path, message });
        } else {
            self.unreported.set(self.unreported.get() + 1);
        }
    }

    pub(crate) fn warn(&self, path: String, message: String) {
        let mut warnings = self.warnings.borrow_mut();
        if warnings.len() < MAX_REPORTED {
            warnings.push(Warning { path, message });
        }
    }

    /// The warnings, if there were no errors; else the errors.
    pub(crate) fn finish(self) -> Result<Vec<Warning>, Vec<FieldError>> {
        let mut errors = self.errors.into_inner();
        if errors.is_empty() {
            return Ok(self.warnings.into_inner());
        }
        let unreported = self.unreported.get();
        if unreported > 0 {
            errors.push(FieldError { path: String::new(), message: format!("and {unreported} further errors") });
        }
        Err(errors)
    }
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Index(usize),
    Key(&'a str),
}

#[derive(Clone, Copy)]
pub(crate) struct Reader<'a> {
    value: &'a Value,
    parent: Option<&'a Reader<'a>>,
    step: Step<'a>,
    issues: &'a Issues,
}

impl<'a> Reader<'a> {
    /// The whole object. None, with an error, if it isn't one.
    pub(crate) fn root(value: &'a Value, issues: &'a Issues) -> Option<Self> {
        let reader = Self { value, parent: None, step: Step::Root, issues };
        if !value.is_object() {
            reader.error(expected("an object", value));
            return None;
        }
        Some(reader)
    }

    fn below<'s>(&'s self, step: Step<'s>, value: &'s Value) -> Reader<'s>
    where
        'a: 's,
    {
        Reader { value, parent: Some(self), step, issues: self.issues }
    }

    /// Where this value is, such as `spec.containers[0].resources.requests[cpu]`.
    pub(crate) fn path(&self) -> String {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(reader) = at {
            steps.push(reader.step);
            at = reader.parent;
        }
        let mut path = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Root => {}
                Step::Field(name) => {
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(name);
                }
                Step::Index(i) => path.push_str(&format!("[{i}]")),
                Step::Key(key) => path.push_str(&format!("[{}]", Cut(key))),
            }
        }
        path
    }

    fn path_of(&self, field: &str) -> String {
        self.below(Step::Field(field), &Value::Null).path()
    }

    pub(crate) fn error(&self, message: impl Into<String>) {
        self.issues.error(self.path(), message.into());
    }

    /// A mistake in a field of this object, be it there or not.
    pub(crate) fn error_in(&self, field: &str, message: impl Into<String>) {
        self.issues.error(self.path_of(field), message.into());
    }

    pub(crate) fn required(&self, field: &str) {
        self.error_in(field, REQUIRED);
    }

    pub(crate) fn warn_in(&self, field: &str, message: impl Into<String>) {
        self.issues.warn(self.path_of(field), message.into());
    }

    pub(crate) fn warn(&self, message: impl Into<String>) {
        self.issues.warn(self.path(), message.into());
    }

    /// Warns about fields that look like misspelt ones; where reading is strict, refuses all unknown ones.
    pub(crate) fn known(&self, level: &Level) {
        if self.issues.strict {
            return self.only(&level.fields());
        }
        if let Value::Object(map) = self.value {
            level.misspelt(map, |key, meant| {
                self.warn_in(key, format!("unknown field; did you mean {meant}?"));
            });
        }
    }

    /// Refuses all fields but these.
    pub(crate) fn only(&self, fields: &[&str]) {
        self.only_or(fields, |_| None);
    }

    /// Refuses all other fields, and says where such a field belongs if `hint` knows it, or which it looks like.
    pub(crate) fn only_or(&self, fields: &[&str], hint: impl Fn(&str) -> Option<String>) {
        let Value::Object(map) = self.value else { return };
        for key in map.keys().filter(|key| !fields.contains(&key.as_str())) {
            let absent = fields.iter().copied().filter(|field| !map.contains_key(*field));
            let advice = hint(key).or_else(|| closest(key, absent).map(|meant| format!("did you mean {meant}?")));
            let advice = advice.map(|advice| format!("; {advice}")).unwrap_or_default();
            self.error_in(&Cut(key).to_string(), format!("unknown field{advice}"));
        }
    }

    pub(crate) fn value(&self) -> &'a Value {
        self.value
    }

    fn get(&self, field: &str) -> Option<&'a Value> {
        match self.value {
            Value::Object(map) => map.get(field).filter(|v| !v.is_null()),
            _ => None,
        }
    }

    pub(crate) fn has(&self, field: &str) -> bool {
        self.get(field).is_some()
    }

    fn typed<T>(&self, field: &str, what: &str, cast: impl FnOnce(&'a Value) -> Option<T>) -> Option<T> {
        let value = self.get(field)?;
        let cast = cast(value);
        if cast.is_none() {
            self.error_in(field, expected(what, value));
        }
        cast
    }

    /// A field that holds an object.
    pub(crate) fn object<'s>(&'s self, field: &'s str) -> Option<Reader<'s>>
    where
        'a: 's,
    {
        self.typed(field, "an object", |v| v.is_object().then_some(v)).map(|v| self.below(Step::Field(field), v))
    }

    /// A field that holds an object, or an empty one in its place.
    pub(crate) fn object_or_empty<'s>(&'s self, field: &'s str) -> Reader<'s>
    where
        'a: 's,
    {
        self.object(field).unwrap_or_else(|| self.below(Step::Field(field), &Value::Null))
    }

    /// A field of any type.
    pub(crate) fn any<'s>(&'s self, field: &'s str) -> Option<Reader<'s>>
    where
        'a: 's,
    {
        self.get(field).map(|v| self.below(Step::Field(field), v))
    }

    pub(crate) fn text(&self, field: &str) -> Option<&'a str> {
        self.typed(field, "a string", Value::as_str)
    }

    /// A string that other objects are likely to have too; absent is empty.
    pub(crate) fn str(&self, field: &str) -> Str {
        self.text(field).map(shared).unwrap_or_default()
    }

    /// A string that is this object's own; absent is empty.
    pub(crate) fn own_str(&self, field: &str) -> Str {
        self.text(field).map(str_of).unwrap_or_default()
    }

    /// A string that must be there and not be empty.
    pub(crate) fn required_str(&self, field: &str) -> Str {
        self.non_empty(field, REQUIRED)
    }

    /// The same with the text for its absence.
    pub(crate) fn non_empty(&self, field: &str, message: &str) -> Str {
        let text = if self.has(field) { self.text(field) } else { Some("") };
        if text == Some("") {
            self.error_in(field, message);
        }
        text.map(shared).unwrap_or_default()
    }

    pub(crate) fn flag(&self, field: &str) -> Option<bool> {
        self.typed(field, "a boolean", Value::as_bool)
    }

    /// A whole number: `3`, and also `3.0`, since a protobuf Struct knows only floats.
    pub(crate) fn integer(&self, field: &str) -> Option<i64> {
        let value = self.get(field)?;
        let number = whole(value);
        if number.is_none() {
            let fits = value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0);
            let what = if fits { "must fit in 64 bits" } else { "must be an integer" };
            self.error_in(
                field,
                if value.is_number() { invalid_number(value, what) } else { expected("an integer", value) },
            );
        }
        number
    }

    /// A whole number from 0.
    pub(crate) fn unsigned(&self, field: &str) -> Option<u64> {
        if let Some(number) = self.get(field).and_then(Value::as_u64) {
            return Some(number);
        }
        let number = self.integer(field)?;
        let natural = u64::try_from(number).ok();
        if natural.is_none() {
            self.error_in(field, invalid_number(number, "must be greater than or equal to 0"));
        }
        natural
    }

    pub(crate) fn int32(&self, field: &str) -> Option<i32> {
        let number = self.integer(field)?;
        let small = i32::try_from(number).ok();
        if small.is_none() {
            self.error_in(field, invalid_number(number, "must fit in 32 bits"));
        }
        small
    }

    /// One of the given words; the default when it is absent, or empty as Go writes that. None: a mistake, reported.
    pub(crate) fn choice_or<T: Copy>(&self, field: &str, words: &[(&str, T)], default: T) -> Option<T> {
        match self.get(field) {
            None => Some(default),
            Some(Value::String(text)) if text.is_empty() => Some(default),
            Some(_) => self.choice(field, words),
        }
    }

    /// One of the given words; None when it is absent, empty or a mistake.
    pub(crate) fn choice<T: Copy>(&self, field: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(field).filter(|t| !t.is_empty())?;
        let found = words.iter().find(|(word, _)| *word == text);
        if found.is_none() {
            self.error_in(field, unsupported(text, words.iter().map(|(word, _)| *word)));
        }
        found.map(|(_, choice)| *choice)
    }

    /// One of the given words, which must be there.
    pub(crate) fn required_choice<T: Copy>(&self, field: &str, words: &[(&str, T)]) -> Option<T> {
        match self.get(field) {
            None => self.required(field),
            Some(Value::String(text)) if text.is_empty() => self.required(field),
            Some(_) => return self.choice(field, words),
        }
        None
    }

    /// RFC 3339, with microseconds at most.
    pub(crate) fn time(&self, field: &str) -> Option<Time> {
        let text = self.text(field)?;
        let parsed = super::parse_time(text);
        if parsed.is_none() {
            self.error_in(field, invalid(text, "must be an RFC 3339 time such as \"2026-03-01T00:00:00Z\""));
        }
        parsed
    }

    /// The value itself as a quantity: a string, or a number as it is written.
    pub(crate) fn as_quantity(&self) -> Option<Quantity> {
        let parsed = match self.value {
            Value::String(text) => text.parse(),
            Value::Number(number) => match number.as_i64() {
                Some(units) => return Some(Quantity::from_units(units)),
                None => number.to_string().parse(),
            },
            other => {
                self.error(expected("a quantity", other));
                return None;
            }
        };
        match parsed {
            Ok(quantity) => Some(quantity),
            Err(error) => {
                self.error(error.to_string());
                None
            }
        }
    }

    /// The elements of a list of objects that `read` makes something of. None: the list is absent.
    ///
    /// A null element counts as an empty object, as Go decodes it.
    pub(crate) fn list<T>(&self, field: &str, mut read: impl FnMut(&Reader<'_>) -> Option<T>) -> Option<Vec<T>> {
        let items = self.typed(field, "a list", Value::as_array)?;
        let list = self.below(Step::Field(field), &Value::Null);
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let reader = list.below(Step::Index(i), item);
            if item.is_object() || item.is_null() {
                out.extend(read(&reader));
            } else {
                reader.error(expected("an object", item));
            }
        }
        Some(out)
    }

    /// Visits the elements of a list of any type. False: it is absent (or not a list, which is reported).
    pub(crate) fn items(&self, field: &str, mut visit: impl FnMut(&Reader<'_>)) -> bool {
        let Some(items) = self.typed(field, "a list", Value::as_array) else { return false };
        let list = self.below(Step::Field(field), &Value::Null);
        for (i, item) in items.iter().enumerate() {
            visit(&list.below(Step::Index(i), item));
        }
        true
    }

    /// A list of strings, each looked at by `check`. None: the list is absent.
    pub(crate) fn checked_texts(&self, field: &str, mut check: impl FnMut(&str, &Reader<'_>)) -> Option<Vec<Str>> {
        let items = self.typed(field, "a list", Value::as_array)?;
        let list = self.below(Step::Field(field), &Value::Null);
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            let reader = list.below(Step::Index(i), item);
            match item.as_str() {
                Some(text) => {
                    check(text, &reader);
                    out.push(shared(text));
                }
                None => reader.error(expected("a string", item)),
            }
        }
        Some(out)
    }

    /// A list of strings; absent is empty.
    pub(crate) fn texts(&self, field: &str) -> Vec<Str> {
        self.checked_texts(field, |_, _| {}).unwrap_or_default()
    }

    /// Visits the entries of a map. False: it is absent (or not a map, which is reported).
    pub(crate) fn entries(&self, field: &str, mut visit: impl FnMut(&'a str, &Reader<'_>)) -> bool {
        let Some(map) = self.typed(field, "an object", Value::as_object) else { return false };
        let parent = self.below(Step::Field(field), &Value::Null);
        for (key, value) in map {
            visit(key, &parent.below(Step::Key(key), value));
        }
        true
    }

    /// The value itself as a string; null is empty.
    pub(crate) fn as_text(&self) -> Option<&'a str> {
        match self.value {
            Value::String(text) => Some(text),
            Value::Null => Some(""),
            other => {
                self.error(expected("a string", other));
                None
            }
        }
    }

    pub(crate) fn map(&self) -> Option<&'a Map<String, Value>> {
        self.value.as_object()
    }
}

/// A whole number that fits, in whatever way it is written.
pub(crate) fn whole(value: &Value) -> Option<i64> {
    // The first float that an i64 can't hold; all whole floats below it convert exactly.
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    value.as_i64().or_else(|| {
        let float = value.as_f64().filter(|_| value.is_f64())?;
        #[allow(clippy::cast_possible_truncation)] // In range and whole, as just checked.
        (float.fract() == 0.0 && (-LIMIT..LIMIT).contains(&float)).then_some(float as i64)
    })
}

pub(crate) fn str_of(text: &str) -> Str {
    // `Str::default()` is one shared empty string, `"".into()` an allocation.
    if text.is_empty() { Str::default() } else { Str::from(text) }
}

/// What was expected and what was found; for the usual slip of YAML, how to mend it.
pub(crate) fn expected(what: &str, found: &Value) -> String {
    let (kind, hint) = match found {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("a boolean", " (quote it)"),
        Value::Number(_) => ("a number", " (quote it)"),
        Value::String(_) => ("a string", ""),
        Value::Array(_) => ("a list", ""),
        Value::Object(_) => ("an object", ""),
    };
    format!("expected {what}, found {kind}{}", if what == "a string" { hint } else { "" })
}
