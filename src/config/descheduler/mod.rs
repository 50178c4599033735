//! `DeschedulerPolicy` files: `descheduler/v1alpha2`, and `v1alpha1` as old posts show it (spec 3 and 4).
//!
//! Both become the same [`Policy`]. Where the descheduler drops what it doesn't know (spec 3.3), this is strict: a field out
//! of place is an error that says where it belongs. What is allowed but has no effect gives a warning.
//!
//! Promises: all errors at once; the same text gives the same policy; [`to_yaml`] of a policy reads back as the same policy.

mod durations;
mod enabled;
mod evictor;
mod fields;
mod hints;
mod lifetime;
mod plugins;
mod queries;
mod render;
mod utilization;
mod v1alpha1;
mod v1alpha2;
mod violations;

use std::fmt;
use std::path::Path;

use serde_json::Value;

use crate::evict::policy::Policy;
use crate::manifest::{Classes, FieldError, Issues, Reader, Warning, documents, unsupported};

pub use render::to_yaml;

const GROUP_VERSIONS: [&str; 2] = ["descheduler/v1alpha1", "descheduler/v1alpha2"];
const KIND: &str = "DeschedulerPolicy";

/// A policy that was read, and what is odd about its text.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyRead {
    pub policy: Policy,
    pub warnings: Vec<Warning>,
}

/// A policy that can't be used, with all its mistakes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct PolicyError {
    /// The file's name; empty if it was no file.
    pub file: String,
    /// Never empty.
    pub errors: Vec<FieldError>,
}

impl fmt::Display for PolicyError {
    /// A mistake a line: `policy.yaml: profiles[0].pluginConfig[0].nodeFit: unknown field; ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.errors.iter().enumerate() {
            let newline = if i == 0 { "" } else { "\n" };
            match self.file.as_str() {
                "" => write!(f, "{newline}{error}")?,
                file => write!(f, "{newline}{file}: {error}")?,
            }
        }
        Ok(())
    }
}

/// Reads a file of YAML or JSON. `classes` resolves names of priority classes.
///
/// # Errors
/// All mistakes of the file, or that it can't be read.
pub fn load(path: &Path, classes: &dyn Classes) -> Result<PolicyRead, PolicyError> {
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|e| PolicyError { file: file.clone(), errors: whole(e) })?;
    from_text(&text, classes).map_err(|e| PolicyError { file, ..e })
}

/// Reads a text of YAML or JSON.
///
/// # Errors
/// All mistakes of the text.
pub fn from_text(text: &str, classes: &dyn Classes) -> Result<PolicyRead, PolicyError> {
    let refused = |errors| PolicyError { file: String::new(), errors };
    let (documents, errors) = documents(text);
    if !errors.is_empty() {
        return Err(refused(errors.into_iter().flat_map(whole).collect()));
    }
    match documents.as_slice() {
        [document] => from_value(&document.value, classes),
        [] => Err(refused(whole("no document; expected a DeschedulerPolicy"))),
        several => Err(refused(whole(format!("{} documents; expected one DeschedulerPolicy", several.len())))),
    }
}

/// Reads a policy that is JSON already.
///
/// # Errors
/// All mistakes of the value.
pub fn from_value(value: &Value, classes: &dyn Classes) -> Result<PolicyRead, PolicyError> {
    let issues = Issues::default();
    let policy = Reader::root(value, &issues).and_then(|r| read(&r, &Sources { classes }));
    let refused = |errors| PolicyError { file: String::new(), errors };
    match (issues.finish(), policy) {
        (Ok(warnings), Some(policy)) => Ok(PolicyRead { policy, warnings }),
        (Err(errors), _) => Err(refused(errors)),
        // Nothing comes out without an error having been reported; said in one so that it can't be taken for a pass.
        (Ok(_), None) => Err(refused(whole("can't be read"))),
    }
}

fn whole(message: impl fmt::Display) -> Vec<FieldError> {
    vec![FieldError { path: String::new(), message: message.to_string() }]
}

/// What a policy refers to and doesn't hold.
struct Sources<'a> {
    classes: &'a dyn Classes,
}

fn read(r: &Reader<'_>, sources: &Sources<'_>) -> Option<Policy> {
    match r.text("kind") {
        Some(KIND) => {}
        Some(kind) => r.error_in("kind", unsupported(kind, [KIND])),
        None if r.has("kind") => {}
        None => r.required("kind"),
    }
    match r.text("apiVersion") {
        Some("descheduler/v1alpha1") => Some(v1alpha1::read(r, sources)),
        Some("descheduler/v1alpha2") => Some(v1alpha2::read(r, sources)),
        given => {
            match given {
                Some(version) => r.error_in("apiVersion", unsupported(version, GROUP_VERSIONS)),
                None if r.has("apiVersion") => {}
                None => r.required("apiVersion"),
            }
            // Read all the same, so that the other mistakes are told too.
            Some(if r.has("strategies") { v1alpha1::read(r, sources) } else { v1alpha2::read(r, sources) })
        }
    }
}
