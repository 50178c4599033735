//! The objects that the cache is compared with.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use super::Key;
use crate::model::{Kind, Object};
use crate::service::feed::{Ack, MAX_EVENTS, read_objects};
use crate::service::source::Source;
use crate::service::{FieldError, Service, ServiceError};

/// Objects that one comparison takes: several times the largest clusters there are. They take a few hundred MB.
pub const MAX_OBJECTS: usize = 1_000_000;

/// What is true, as somebody else lists it.
#[derive(Debug, Default)]
pub struct Truth {
    /// By kind, namespace and name; of an object that was told twice the last word counts.
    objects: BTreeMap<Kind, FxHashMap<Key, Object>>,
    /// The kinds of which it has all objects; None: those of which it has any.
    covers: Option<BTreeSet<Kind>>,
    batches: u64,
    taken: usize,
    /// What was refused, and what was remarked.
    pub remarks: Ack,
}

impl Truth {
    /// A truth that has all objects of these kinds.
    ///
    /// # Errors
    /// Names that are no kinds.
    pub fn covering(names: &[String]) -> Result<Self, ServiceError> {
        let kinds: Vec<Result<Kind, FieldError>> = names.iter().enumerate().map(|(i, name)| parse(i, name)).collect();
        let errors: Vec<FieldError> = kinds.iter().filter_map(|kind| kind.clone().err()).collect();
        if !errors.is_empty() {
            return Err(ServiceError::Invalid(errors));
        }
        let kinds: BTreeSet<Kind> = kinds.into_iter().flatten().collect();
        Ok(Self { covers: (!kinds.is_empty()).then_some(kinds), ..Self::default() })
    }

    /// Takes a batch in. Objects that can't be read are refused alone, and told in `remarks`.
    ///
    /// # Errors
    /// The batch has over 1,024 objects, or all of them together are over [`MAX_OBJECTS`].
    pub fn add(&mut self, service: &Service, batch: Vec<Source>) -> Result<(), ServiceError> {
        if batch.len() > MAX_EVENTS {
            let message = format!("must have at most {MAX_EVENTS} items, has {}", batch.len());
            return Err(ServiceError::invalid("objects", message));
        }
        self.taken += batch.len();
        if self.taken > MAX_OBJECTS {
            return Err(ServiceError::TooManyObjects { most: MAX_OBJECTS });
        }
        self.batches += 1;
        let objects = read_objects(&service.cluster, self.batches, batch, &mut self.remarks);
        self.extend(objects);
        Ok(())
    }

    pub fn extend(&mut self, objects: impl IntoIterator<Item = Object>) {
        for object in objects {
            self.objects.entry(object.kind()).or_default().insert(super::key(&object), object);
        }
    }

    pub(super) fn kinds_seen(&self) -> impl Iterator<Item = Kind> {
        self.objects.keys().copied()
    }

    pub(super) fn covered(&self) -> BTreeSet<Kind> {
        self.covers.clone().unwrap_or_else(|| self.kinds_seen().collect())
    }

    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Object)> {
        self.objects.get(&kind).into_iter().flatten()
    }

    pub(super) fn get(&self, kind: Kind, key: &Key) -> Option<&Object> {
        self.objects.get(&kind)?.get(key)
    }

    pub(super) fn has(&self, kind: Kind, key: &Key) -> bool {
        self.get(kind, key).is_some()
    }
}

fn parse(i: usize, name: &str) -> Result<Kind, FieldError> {
    let error = || FieldError { path: format!("kinds[{i}]"), message: format!("{name:?} is no kind that Berth reads") };
    Kind::parse(name).ok_or_else(error)
}
