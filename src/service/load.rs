//! Loads manifests from files, so that a user without Kubernetes has a cluster to ask about.

use std::path::PathBuf;

use super::Service;
use crate::cluster::store::Origin;
use crate::cluster::writer::Prepared;
use crate::manifest::{self, FileError, Placed};
use crate::model::{Kind, Object};

/// What came of it.
#[derive(Debug, Default)]
pub struct Loaded {
    pub nodes: usize,
    pub pods: usize,
    pub others: usize,
    /// Objects of kinds that aren't read, by kind.
    pub skipped: Vec<(String, usize)>,
    /// Remarks, each with its place.
    pub warnings: Vec<String>,
}

impl Service {
    /// Reads all files and, if none has a mistake, writes their objects in one revision.
    ///
    /// # Errors
    /// Every mistake in every file; nothing was written.
    pub fn load_files(&self, files: &[PathBuf]) -> Result<Loaded, Vec<FileError>> {
        let contents = manifest::read_files(files, manifest::Options::default());
        if !contents.errors.is_empty() {
            return Err(contents.errors);
        }
        let mut loaded = Loaded { skipped: contents.skipped.into_iter().collect(), ..Loaded::default() };
        let mut pods = Vec::new();
        let mut writer = self.cluster.writer();
        writer.begin();
        for Placed { value, place, warnings } in contents.objects {
            loaded.warnings.extend(warnings.iter().map(|w| format!("{place}: {w}")));
            match value.kind() {
                Kind::Node => loaded.nodes += 1,
                Kind::Pod => {
                    // Pods come last: their classes may stand anywhere in the files.
                    loaded.pods += 1;
                    pods.push((value, place));
                    continue;
                }
                _ => loaded.others += 1,
            }
            writer.upsert(Prepared::new(value), Origin::file());
        }
        for (object, place) in pods {
            let mut warnings = Vec::new();
            let object = match object {
                Object::Pod(mut pod) => {
                    manifest::apply_classes(std::sync::Arc::make_mut(&mut pod), &self.cluster, &mut warnings);
                    Object::Pod(pod)
                }
                other => other,
            };
            loaded.warnings.extend(warnings.iter().map(|w| format!("{place}: {w}")));
            writer.upsert(Prepared::new(object), Origin::file());
        }
        writer.readiness_mut().files_loaded();
        Ok(loaded)
    }
}
