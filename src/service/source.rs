//! An object as a client hands it over, in whichever form, up to the point where its fields are read.
//!
//! Feed and scheduling take the same three forms and refuse the same things, so both go through here. What is wrong with
//! the form itself is a [`Refusal`]; mistakes that a lossy form brought with it ([`Source::Value`]'s `errors`) are reported
//! together with those in the fields, since a client wants to see all of them at once.

use serde_json::Value;

use super::{FieldError, ServiceError};
use crate::manifest::{self, ManifestError, Parsed};
use crate::model::{Object, Pod};

/// Bytes that an object may have in the form in which it comes.
pub const MAX_OBJECT_BYTES: usize = 3 * 512 * 1024;

#[derive(Debug)]
pub enum Source {
    /// The JSON of the object.
    Value {
        value: Value,
        /// What could not be taken over from the form that the client used.
        errors: Vec<FieldError>,
        /// Size of that form.
        bytes: usize,
    },
    /// The same as JSON text.
    Json(Vec<u8>),
    /// The client sent none.
    Absent,
}

impl From<Value> for Source {
    fn from(value: Value) -> Self {
        Self::Value { value, errors: Vec::new(), bytes: 0 }
    }
}

/// Why a source holds no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("nothing is given; set one of the forms")]
    Absent,
    #[error("not JSON: {0}")]
    Syntax(manifest::SyntaxError),
    #[error("object has {0} bytes, at most {MAX_OBJECT_BYTES} are taken")]
    TooLarge(usize),
    #[error(transparent)]
    Invalid(#[from] ManifestError),
}

/// The JSON of an object that has a form Berth can read.
#[derive(Debug)]
pub(super) struct Document {
    value: Value,
    errors: Vec<FieldError>,
}

impl Source {
    pub(super) fn open(self) -> Result<Document, Refusal> {
        match self {
            Self::Absent => Err(Refusal::Absent),
            Self::Value { bytes, .. } if bytes > MAX_OBJECT_BYTES => Err(Refusal::TooLarge(bytes)),
            Self::Value { value, errors, .. } => Ok(Document { value, errors }),
            Self::Json(text) if text.len() > MAX_OBJECT_BYTES => Err(Refusal::TooLarge(text.len())),
            Self::Json(text) => {
                let value = manifest::parse_json(&text).map_err(Refusal::Syntax)?;
                Ok(Document { value, errors: Vec::new() })
            }
        }
    }

    /// The pod that the source stands for; a workload's template will do.
    ///
    /// # Errors
    /// Paths of the pod's own mistakes are relative to the manifest, as `kubectl` shows them; `field` is the path for
    /// mistakes in how it was handed over.
    pub fn pod(self, field: &str) -> Result<Parsed<Pod>, ServiceError> {
        let document = self.open().map_err(|refusal| ServiceError::invalid(field, refusal.to_string()))?;
        document.pod(manifest::Options::default()).map_err(|error| ServiceError::InvalidObject(Box::new(error)))
    }
}

impl Document {
    pub(super) fn kind(&self) -> &str {
        self.value.get("kind").and_then(Value::as_str).unwrap_or_default()
    }

    pub(super) fn object(self, options: manifest::Options) -> Result<Parsed<Object>, ManifestError> {
        let read = manifest::object(&self.value, options);
        self.check(read)
    }

    pub(super) fn pod(self, options: manifest::Options) -> Result<Parsed<Pod>, ManifestError> {
        let read = manifest::pod_from(&self.value, options);
        self.check(read)
    }

    /// Adds the mistakes of the form to those of the fields; of two about one field, the form's is the cause.
    fn check<T>(self, read: Result<Parsed<T>, ManifestError>) -> Result<Parsed<T>, ManifestError> {
        if self.errors.is_empty() {
            return read;
        }
        let mut error = match read {
            Err(error) => error,
            Ok(_) => {
                let meta = |field: &str| {
                    let text = self.value.get("metadata").and_then(|m| m.get(field)).and_then(Value::as_str);
                    text.unwrap_or_default().to_owned()
                };
                let (kind, name, namespace) = (self.kind().to_owned(), meta("name"), meta("namespace"));
                ManifestError { kind, name, namespace, errors: Vec::new() }
            }
        };
        let mut errors = self.errors;
        errors.extend(
            error.errors.into_iter().filter(|e| errors.iter().all(|form| form.path != e.path)).collect::<Vec<_>>(),
        );
        errors.truncate(manifest::MAX_REPORTED);
        error.errors = errors;
        Err(error)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn mistakes_of_form_and_of_fields_come_together_and_once() {
        let lost = |path: &str| FieldError { path: path.into(), message: "lost".into() };
        let source = Source::Value {
            value: json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
                "spec": {"priority": 99_999_999_999_i64, "containers": []}}),
            errors: vec![lost("spec.priority"), lost("spec.x")],
            bytes: 10,
        };
        let Err(ServiceError::InvalidObject(error)) = source.pod("pod") else { panic!("refused") };
        let paths: Vec<&str> = error.errors.iter().map(|e| e.path.as_str()).collect();
        assert_eq!(paths, ["spec.priority", "spec.x", "spec.containers"]);
        assert_eq!(error.object(), "Pod default/a");
    }

    #[test]
    fn an_object_over_the_limit_is_not_even_parsed() {
        let text = vec![b'{'; MAX_OBJECT_BYTES + 1];
        assert_eq!(Source::Json(text).open().err(), Some(Refusal::TooLarge(MAX_OBJECT_BYTES + 1)));
    }

    #[test]
    fn a_key_given_twice_is_a_syntax_error() {
        let refusal = Source::Json(br#"{"kind":"Pod","kind":"Node"}"#.to_vec()).open().unwrap_err();
        assert!(matches!(refusal, Refusal::Syntax(_)), "{refusal}");
    }
}
