//! The configuration file that the profiles come from, and its reloads.
//!
//! [`Service::load_config`] reads it at the start, [`Service::reload_config`] again: whoever runs the process calls that on
//! a signal, and once a second to see whether the content changed. Content is compared, not a time or an inode, so that a
//! file replaced through a symbolic link (as the kubelet does with a ConfigMap) is seen as well.
//!
//! Promise: a file with a mistake changes nothing but what is told of it. Profiles change as a whole, and a decision under
//! way keeps those that it began with.

use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::Service;
use super::profiles::Profiles;
use crate::config::{self, ConfigError, SchedulerConfig};
use crate::model::Time;

/// What is known of the file; for whoever looks inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigStatus {
    pub file: String,
    /// When the profiles in force were read.
    pub loaded: Time,
    /// What the file says that has no effect.
    pub notes: Vec<String>,
    /// Since when the file can't be used, and all of its mistakes. None: what it says is in force.
    pub refused: Option<(Time, Vec<String>)>,
}

/// What a look at the file came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reload {
    /// No file was named, or it is as it was.
    Unchanged,
    /// Its profiles are in force, by name.
    Done { profiles: Vec<String>, notes: Vec<String> },
    /// It has mistakes; the profiles are those of before.
    Refused(Vec<ConfigError>),
}

#[derive(Debug, Default)]
pub(super) struct ConfigFile(Mutex<Option<Known>>);

#[derive(Debug)]
struct Known {
    path: PathBuf,
    /// The content when it was last looked at, or why it couldn't be read.
    content: Result<String, Vec<ConfigError>>,
    status: ConfigStatus,
}

impl Service {
    /// Takes the profiles from a file, and remembers it for reloads.
    ///
    /// # Errors
    /// All mistakes of the file; nothing is changed then.
    pub fn load_config(&self, path: &Path) -> Result<ConfigStatus, Vec<ConfigError>> {
        let text = config::text(path)?;
        let file = path.display().to_string();
        let SchedulerConfig { profiles, notes } = config::load(&text, &file)?;
        let status = ConfigStatus { file, loaded: self.now(), notes, refused: None };
        let mut known = self.config_file.0.lock();
        *known = Some(Known { path: path.to_owned(), content: Ok(text), status: status.clone() });
        self.set_profiles(Profiles::new(profiles));
        Ok(status)
    }

    /// Looks at the file again and, if its content changed or `always`, reads it. Blocks on the disk.
    pub fn reload_config(&self, always: bool) -> Reload {
        let mut known = self.config_file.0.lock();
        let Some(Known { path, content, status }) = known.as_mut() else { return Reload::Unchanged };
        let now_there = config::text(path);
        if !always && now_there == *content {
            return Reload::Unchanged;
        }
        let read = now_there.as_ref().map_err(Clone::clone).and_then(|text| config::load(text, &status.file));
        *content = now_there;
        match read {
            Ok(SchedulerConfig { profiles, notes }) => {
                let names = profiles.iter().map(|profile| profile.name().to_string()).collect();
                self.set_profiles(Profiles::new(profiles));
                (status.loaded, status.notes, status.refused) = (self.now(), notes.clone(), None);
                self.metrics.config_reloaded(true);
                Reload::Done { profiles: names, notes }
            }
            Err(errors) => {
                status.refused = Some((self.now(), errors.iter().map(ToString::to_string).collect()));
                self.metrics.config_reloaded(false);
                Reload::Refused(errors)
            }
        }
    }

    /// What is known of the file. None: no file was named.
    pub fn config_status(&self) -> Option<ConfigStatus> {
        self.config_file.0.lock().as_ref().map(|known| known.status.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of this process alone.
    fn file(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("berth-{}-{name}", std::process::id()))
    }

    fn text(profile: &str) -> String {
        format!(
            "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: \
             [{{schedulerName: {profile}}}]\n"
        )
    }

    fn names(service: &Service) -> Vec<String> {
        service.profiles().iter().map(|profile| profile.name().to_string()).collect()
    }

    #[test]
    fn a_changed_file_is_taken_a_wrong_one_is_told_and_changes_nothing() {
        let (service, path) = (Service::default(), file("reload.yaml"));
        std::fs::write(&path, text("one")).unwrap();
        service.load_config(&path).unwrap();
        assert_eq!(service.reload_config(false), Reload::Unchanged);
        assert!(matches!(service.reload_config(true), Reload::Done { .. }), "asked for, it is read even if unchanged");

        std::fs::write(&path, text("two")).unwrap();
        assert!(matches!(service.reload_config(false), Reload::Done { .. }));
        assert_eq!(names(&service), ["two"]);

        std::fs::write(&path, text("''")).unwrap();
        let Reload::Refused(errors) = service.reload_config(false) else { panic!("a wrong file was taken") };
        assert_eq!(errors.len(), 1);
        assert_eq!(service.reload_config(false), Reload::Unchanged, "told once");
        assert_eq!(names(&service), ["two"]);
        let (_, told) = service.config_status().unwrap().refused.unwrap();
        assert!(told[0].contains("profiles[0].schedulerName: Required value"), "{told:?}");

        std::fs::remove_file(&path).unwrap();
        assert!(matches!(service.reload_config(false), Reload::Refused(_)));
        std::fs::write(&path, text("two")).unwrap();
        assert!(matches!(service.reload_config(false), Reload::Done { .. }));
        assert_eq!(service.config_status().unwrap().refused, None);
        std::fs::remove_file(&path).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_swapped_behind_a_symbolic_link_is_seen() {
        let folder = file("configmap");
        for (version, profile) in [("v1", "one"), ("v2", "two")] {
            std::fs::create_dir_all(folder.join(version)).unwrap();
            std::fs::write(folder.join(version).join("config.yaml"), text(profile)).unwrap();
        }
        let (data, path) = (folder.join("..data"), folder.join("config.yaml"));
        std::os::unix::fs::symlink("v1", &data).unwrap();
        std::os::unix::fs::symlink("..data/config.yaml", &path).unwrap();
        let service = Service::default();
        service.load_config(&path).unwrap();
        std::os::unix::fs::symlink("v2", folder.join("..new")).unwrap();
        std::fs::rename(folder.join("..new"), &data).unwrap();
        assert!(matches!(service.reload_config(false), Reload::Done { .. }));
        assert_eq!(names(&service), ["two"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
