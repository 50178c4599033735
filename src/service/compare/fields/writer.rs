//! Writes fields down under their paths.

use std::collections::BTreeMap;
use std::fmt::Display;

use super::Fields;
use crate::model::{Labels, ResourceList, Str, Time};

pub(super) struct FieldWriter {
    fields: Fields,
    /// Where the writer stands; empty at the root.
    path: String,
}

/// The fields that `write` writes.
pub(super) fn list(write: impl FnOnce(&mut FieldWriter)) -> Fields {
    let mut writer = FieldWriter { fields: BTreeMap::new(), path: String::new() };
    write(&mut writer);
    writer.fields
}

impl FieldWriter {
    fn at(&mut self, suffix: &str, write: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        self.path.push_str(suffix);
        write(self);
        self.path.truncate(length);
    }

    fn put(&mut self, value: String) {
        self.fields.insert(self.path.clone(), value);
    }

    /// The fields of an object.
    pub(super) fn inside(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.at(&format!("{dot}{name}"), write);
    }

    /// A value whatever it is.
    pub(super) fn value(&mut self, name: &str, value: impl Display) {
        self.inside(name, |w| w.put(value.to_string()));
    }

    /// A text; an empty one is left out.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.value(name, text);
        }
    }

    pub(super) fn flag(&mut self, name: &str, is_set: bool) {
        self.flag_as(name, is_set, "true");
    }

    /// A value where it isn't the default.
    pub(super) fn flag_as(&mut self, name: &str, is_set: bool, value: &str) {
        if is_set {
            self.value(name, value);
        }
    }

    pub(super) fn option(&mut self, name: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.value(name, value);
        }
    }

    pub(super) fn time(&mut self, name: &str, time: Option<Time>) {
        let text = |time: Time| match jiff::Timestamp::from_microsecond(time.0) {
            Ok(at) => at.to_string(),
            Err(_) => format!("{} us", time.0),
        };
        self.option(name, time.map(text));
    }

    /// An object that may be absent; `{}` if it is there and has no fields, which for some fields is another thing.
    pub(super) fn some<T>(&mut self, name: &str, value: Option<T>, write: impl FnOnce(&mut Self, T)) {
        let Some(value) = value else { return };
        self.inside(name, |w| {
            let before = w.fields.len();
            write(w, value);
            if w.fields.len() == before {
                w.put("{}".to_owned());
            }
        });
    }

    /// A list of objects, by position.
    pub(super) fn each<T>(&mut self, name: &str, items: impl IntoIterator<Item = T>, write: impl Fn(&mut Self, T)) {
        self.inside(name, |w| {
            for (i, item) in items.into_iter().enumerate() {
                w.at(&format!("[{i}]"), |w| {
                    let before = w.fields.len();
                    write(w, item);
                    if w.fields.len() == before {
                        w.put("{}".to_owned());
                    }
                });
            }
        });
    }

    /// A list of texts, as one value.
    pub(super) fn texts(&mut self, name: &str, texts: &[Str]) {
        if !texts.is_empty() {
            self.value(name, format!("[{}]", texts.join(", ")));
        }
    }

    /// An entry of a map, at the present place.
    fn entry(&mut self, key: &str, value: impl Display) {
        self.at(&format!("[\"{key}\"]"), |w| w.put(value.to_string()));
    }

    pub(super) fn pairs(&mut self, name: &str, labels: &Labels) {
        self.inside(name, |w| w.pairs_here(labels));
    }

    pub(super) fn pairs_here(&mut self, labels: &Labels) {
        labels.iter().for_each(|(key, value)| self.entry(key, value));
    }

    pub(super) fn amounts(&mut self, name: &str, amounts: &ResourceList) {
        self.inside(name, |w| w.amounts_here(amounts));
    }

    pub(super) fn amounts_here(&mut self, amounts: &ResourceList) {
        amounts.iter().for_each(|(name, amount)| self.entry(name, amount));
    }
}
