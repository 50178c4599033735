//! Configuration files: what users of kube-scheduler and the descheduler have already, read as those read it.
//!
//! Descheduler policies are in [`descheduler`]; all else here is about scheduling.
//!
//! `service` and `cli` call [`load`], [`read`] and [`from_value`]; they give the profiles of the engine, complete with their
//! plugins' arguments, and notes on settings that are right and have no effect here. Reading is strict: unknown fields and
//! fields given twice are mistakes.
//!
//! Promises: a file is taken as a whole or not at all; all its mistakes are told at once, each with its path and with
//! upstream's text where upstream has one; no input makes this panic; nothing is read but the file itself.

pub mod descheduler;
mod error;
pub mod policy;
pub mod scheduler;

use std::path::Path;

use serde_json::Value;

pub use error::{ConfigError, Lines};

use crate::engine::Profile;
use crate::manifest::FieldError;
use crate::manifest::error::{REQUIRED, unsupported};
use crate::manifest::reader::{Issues, Reader};
use crate::manifest::syntax::documents;

/// What a file says about scheduling.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Never empty, each with a name of its own.
    pub profiles: Vec<Profile>,
    /// What the file says that has no effect here, and why; one sentence each.
    pub notes: Vec<String>,
}

/// The largest file that is read: a configuration with hundreds of profiles is far below it.
const MAX_BYTES: u64 = 4 << 20;

/// Reads a file.
///
/// # Errors
/// All mistakes of the file.
pub fn read(path: &Path) -> Result<SchedulerConfig, Vec<ConfigError>> {
    load(&text(path)?, &path.display().to_string())
}

/// The text of a file.
///
/// # Errors
/// Why it can't be read.
pub fn text(path: &Path) -> Result<String, Vec<ConfigError>> {
    let unreadable = |reason| vec![ConfigError::Unreadable { file: path.display().to_string(), reason }];
    let read = || {
        let mut file = std::fs::File::open(path)?;
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::Read::take(&mut file, MAX_BYTES + 1), &mut bytes)?;
        Ok::<_, std::io::Error>(bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() as u64 > MAX_BYTES => {
            Err(unreadable(format!("is larger than {} MiB", MAX_BYTES >> 20)))
        }
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| unreadable("isn't UTF-8 text".to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(unreadable("no such file".to_owned())),
        Err(error) => Err(unreadable(format!("can't be read: {error}"))),
    }
}

/// Reads the text of a file, JSON or YAML; `file` is what it is called in messages.
///
/// # Errors
/// All mistakes of the text.
pub fn load(text: &str, file: &str) -> Result<SchedulerConfig, Vec<ConfigError>> {
    let (found, broken) = documents(text);
    if !broken.is_empty() {
        let errors = broken.into_iter().map(|error| ConfigError::Syntax { file: file.to_owned(), error });
        return Err(errors.collect());
    }
    let reason = match found.as_slice() {
        [document] => return from_value(&document.value, file),
        [] => "holds no document",
        _ => "holds several documents, expected one",
    };
    Err(vec![ConfigError::Unreadable { file: file.to_owned(), reason: reason.to_owned() }])
}

/// Reads a parsed document.
///
/// # Errors
/// All mistakes of the document.
pub fn from_value(value: &Value, file: &str) -> Result<SchedulerConfig, Vec<ConfigError>> {
    let issues = Issues::strict();
    let read = Reader::root(value, &issues).and_then(|r| by_kind(&r));
    let in_file = |error: FieldError| ConfigError::Field { file: file.to_owned(), error };
    match (issues.finish(), read) {
        (Ok(warnings), Some(mut config)) => {
            config.notes.extend(warnings.iter().map(ToString::to_string));
            Ok(config)
        }
        (Ok(_), None) => Err(vec![in_file(FieldError { path: String::new(), message: "can't be read".to_owned() })]),
        (Err(errors), _) => Err(errors.into_iter().map(in_file).collect()),
    }
}

/// The kinds of files that there are.
const KINDS: [&str; 2] = [scheduler::KIND, policy::KIND];

fn by_kind(r: &Reader<'_>) -> Option<SchedulerConfig> {
    // Before the reader is asked for the kind: the keys of these files match without regard to case.
    if policy::is_policy(r.value()) {
        return policy::read(r);
    }
    match r.text("kind").unwrap_or_default() {
        scheduler::KIND => scheduler::read(r),
        "" if r.has("kind") => None,
        "" => {
            r.error_in("kind", format!("{REQUIRED}: one of {}", KINDS.join(", ")));
            None
        }
        other => {
            r.error_in("kind", unsupported(other, KINDS));
            None
        }
    }
}

#[cfg(test)]
mod tests;
