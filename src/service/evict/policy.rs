//! Policies as requests hand them over, and the service's own.

use super::PolicySource;
use crate::cluster::Snapshot;
use crate::config::descheduler::{self, PolicyError, PolicyRead};
use crate::evict::Policy;
use crate::manifest::{Classes, Warning};
use crate::model::pod::PreemptionPolicy;
use crate::model::{Kind, Object, ResourceList, Str};
use crate::service::source::MAX_OBJECT_BYTES;
use crate::service::{FieldError, Service, ServiceError};

/// Where mistakes of a policy are said to be.
const FIELD: &str = "policy";

/// A policy that is to be followed.
pub(super) struct Read {
    pub policy: Policy,
    pub warnings: Vec<Warning>,
    /// The service's own file.
    pub file: Option<String>,
}

impl Service {
    /// Reads a policy with the priority classes of a snapshot. Mistakes of the request's are added to the others; an error
    /// is about the service's own policy.
    pub(super) fn read_policy(
        &self,
        source: PolicySource,
        snapshot: &Snapshot,
        mistakes: &mut Vec<FieldError>,
    ) -> Result<Read, ServiceError> {
        let classes = ClassesOf(snapshot);
        let (read, form) = match source {
            PolicySource::Own => return self.read_own_policy(&classes),
            PolicySource::Read(policy) => {
                return Ok(Read { policy: *policy, warnings: Vec::new(), file: None });
            }
            PolicySource::Value { bytes, .. } if bytes > MAX_OBJECT_BYTES => (Err(too_large(bytes)), Vec::new()),
            PolicySource::Text(text) if text.len() > MAX_OBJECT_BYTES => (Err(too_large(text.len())), Vec::new()),
            PolicySource::Value { value, errors, .. } => (descheduler::from_value(&value, &classes), errors),
            PolicySource::Text(text) => (descheduler::from_text(&text, &classes), Vec::new()),
        };
        // Of two mistakes about one field, the form's is the cause.
        let of_reader = read.as_ref().err().map(|error| error.errors.clone()).unwrap_or_default();
        let of_reader = of_reader.into_iter().filter(|e| form.iter().all(|f| f.path != e.path)).collect::<Vec<_>>();
        mistakes
            .extend(form.into_iter().chain(of_reader).map(|error| FieldError { path: within(&error.path), ..error }));
        let PolicyRead { policy, warnings } =
            read.unwrap_or_else(|_| PolicyRead { policy: Policy::default(), warnings: Vec::new() });
        let warnings = warnings.into_iter().map(|warning| Warning { path: within(&warning.path), ..warning });
        Ok(Read { policy, warnings: warnings.collect(), file: None })
    }

    /// A class that the file names may not be known: then the file can't be used now, though nothing is wrong with it.
    fn read_own_policy(&self, classes: &dyn Classes) -> Result<Read, ServiceError> {
        let (file, text) = self.own_policy().ok_or(ServiceError::NoPolicy)?;
        match descheduler::from_text(&text, classes) {
            Ok(PolicyRead { policy, warnings }) => Ok(Read { policy, warnings, file: Some(file) }),
            Err(error) => Err(ServiceError::PolicyFile { file, errors: error.errors }),
        }
    }
}

fn within(path: &str) -> String {
    match path {
        "" => FIELD.to_owned(),
        path if path.starts_with('[') => format!("{FIELD}{path}"),
        path => format!("{FIELD}.{path}"),
    }
}

fn too_large(bytes: usize) -> PolicyError {
    let message = format!("policy has {bytes} bytes, at most {MAX_OBJECT_BYTES} are taken");
    PolicyError { file: String::new(), errors: vec![FieldError { path: String::new(), message }] }
}

/// The priority classes of a snapshot.
struct ClassesOf<'a>(&'a Snapshot);

impl Classes for ClassesOf<'_> {
    fn priority(&self, name: &str) -> Option<(i32, PreemptionPolicy)> {
        match self.0.view.objects().get(Kind::PriorityClass, &Str::default(), &name.into())? {
            Object::PriorityClass(class) => Some((class.value, class.preemption_policy)),
            _ => None,
        }
    }

    // Policies name priority classes and nothing else.
    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)> {
        None
    }

    fn overhead(&self, _: &str) -> Option<ResourceList> {
        None
    }
}

/// Knows every priority class: for a look at a file before any class was fed.
pub(in crate::service) struct AnyClass;

impl Classes for AnyClass {
    fn priority(&self, _: &str) -> Option<(i32, PreemptionPolicy)> {
        Some((0, PreemptionPolicy::PreemptLowerPriority))
    }

    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)> {
        None
    }

    fn overhead(&self, _: &str) -> Option<ResourceList> {
        None
    }
}
