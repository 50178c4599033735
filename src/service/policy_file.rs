//! The descheduler policy of the service's own, and its reloads: for requests for evictions that bring none.
//!
//! As with the profiles' file (`config_file`), content is compared, and a file with a mistake changes nothing but what is
//! told of it. Names of priority classes mean something only with a cluster: here they are taken as they are, and the text is
//! read again for each request, with the classes of then.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::Service;
use super::config_file::ConfigStatus;
use super::evict::AnyClass;
use crate::config::{self, ConfigError, descheduler};

/// What a look at the file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyReload {
    /// No file was named, or it is as it was.
    Unchanged,
    /// It is followed from now on; what in it has no effect.
    Done { notes: Vec<String> },
    /// It has mistakes; the policy is that of before.
    Refused(Vec<ConfigError>),
}

#[derive(Debug, Default)]
pub(super) struct PolicyFile(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    path: PathBuf,
    /// The content when it was last looked at, or why it couldn't be read.
    content: Result<String, Vec<ConfigError>>,
    /// The policy in force.
    text: Arc<str>,
    status: ConfigStatus,
}

impl Service {
    /// Takes the policy from a file, and remembers it for reloads.
    ///
    /// # Errors
    /// All mistakes of the file; nothing is changed then.
    pub fn load_policy(&self, path: &Path) -> Result<ConfigStatus, Vec<ConfigError>> {
        let text = config::text(path)?;
        let file = path.display().to_string();
        let notes = check(&text, &file)?;
        let status = ConfigStatus { file, loaded: self.now(), notes, refused: None };
        let in_force = Arc::from(text.as_str());
        let known = Known { path: path.to_owned(), content: Ok(text), text: in_force, status: status.clone() };
        *self.policy_file.0.lock() = Some(known);
        Ok(status)
    }

    /// Looks at the file again and, if its content changed or `always`, reads it. Blocks on the disk.
    pub fn reload_policy(&self, always: bool) -> PolicyReload {
        let mut known = self.policy_file.0.lock();
        let Some(Known { path, content, text, status }) = known.as_mut() else { return PolicyReload::Unchanged };
        let now_there = config::text(path);
        if !always && now_there == *content {
            return PolicyReload::Unchanged;
        }
        let read = now_there.clone().and_then(|text| Ok((check(&text, &status.file)?, text)));
        *content = now_there;
        match read {
            Ok((notes, new)) => {
                *text = new.into();
                (status.loaded, status.notes, status.refused) = (self.now(), notes.clone(), None);
                self.metrics.policy_reloaded(true);
                PolicyReload::Done { notes }
            }
            Err(errors) => {
                status.refused = Some((self.now(), errors.iter().map(ToString::to_string).collect()));
                self.metrics.policy_reloaded(false);
                PolicyReload::Refused(errors)
            }
        }
    }

    /// What is known of the file. None: no file was named.
    pub fn policy_status(&self) -> Option<ConfigStatus> {
        self.policy_file.0.lock().as_ref().map(|known| known.status.clone())
    }

    /// The file's name and the text in force.
    pub(super) fn own_policy(&self) -> Option<(String, Arc<str>)> {
        self.policy_file.0.lock().as_ref().map(|known| (known.status.file.clone(), known.text.clone()))
    }
}

/// Reads a text as far as that goes without a cluster: what in it has no effect.
fn check(text: &str, file: &str) -> Result<Vec<String>, Vec<ConfigError>> {
    match descheduler::from_text(text, &AnyClass) {
        Ok(read) => Ok(read.warnings.iter().map(ToString::to_string).collect()),
        Err(error) => {
            let in_file = |error| ConfigError::Field { file: file.to_owned(), error };
            Err(error.errors.into_iter().map(in_file).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLASS: &str = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: p\n  pluginConfig:\n  \
                         - name: DefaultEvictor\n    args: {priorityThreshold: {name: not-fed-yet}}\n";

    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("berth-{}-{name}", std::process::id()))
    }

    #[test]
    fn a_changed_policy_is_taken_a_wrong_one_is_told_and_changes_nothing() {
        let (service, path) = (Service::default(), file("policy.yaml"));
        std::fs::write(&path, CLASS).unwrap();
        service.load_policy(&path).unwrap();
        assert_eq!(service.reload_policy(false), PolicyReload::Unchanged);
        assert!(matches!(service.reload_policy(true), PolicyReload::Done { .. }));

        std::fs::write(&path, "apiVersion: descheduler/v1alpha2\nkind: Polic\nprofiles: 1\n").unwrap();
        let PolicyReload::Refused(errors) = service.reload_policy(false) else { panic!("a wrong policy was taken") };
        assert_eq!(errors.len(), 2, "all at once: {errors:?}");
        assert!(errors.iter().all(|error| error.to_string().starts_with(&path.display().to_string())), "{errors:?}");
        assert_eq!(service.reload_policy(false), PolicyReload::Unchanged, "told once");
        assert_eq!(&*service.own_policy().unwrap().1, CLASS);
        assert!(service.policy_status().unwrap().refused.is_some());

        std::fs::remove_file(&path).unwrap();
        assert!(matches!(service.reload_policy(false), PolicyReload::Refused(_)));
        std::fs::write(&path, CLASS.replace("not-fed-yet", "other")).unwrap();
        assert!(matches!(service.reload_policy(false), PolicyReload::Done { .. }));
        assert_eq!(service.policy_status().unwrap().refused, None);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn without_a_file_there_is_nothing_to_reload() {
        let service = Service::default();
        assert_eq!((service.reload_policy(true), service.policy_status()), (PolicyReload::Unchanged, None));
        assert!(service.load_policy(&file("no-such-policy.yaml")).is_err());
    }
}
