//! `spec.volumes` of a pod.

use rustc_hash::FxHashSet;

use super::error::{duplicate, invalid};
use super::names::dns_label_problem;
use super::reader::{Reader, str_of};
use crate::model::Str;
use crate::model::volume::{Volume, VolumeSource};

pub(super) fn volumes(spec: &Reader<'_>) -> Vec<Volume> {
    let mut seen: FxHashSet<Str> = FxHashSet::default();
    let list = spec.list("volumes", |r| {
        let name = r.required_str("name");
        if !name.is_empty() {
            if let Some(problem) = dns_label_problem(&name) {
                r.error_in("name", invalid(&name, problem));
            }
            if !seen.insert(name.clone()) {
                r.error_in("name", duplicate(&name));
            }
        }
        Some(Volume { name, source: source(r) })
    });
    list.unwrap_or_default()
}

fn source(r: &Reader<'_>) -> VolumeSource {
    // The field that is there names the type: look for that instead of asking for each of thirty.
    let fields = r.map().into_iter().flatten().filter(|(name, value)| *name != "name" && !value.is_null());
    for (field, _) in fields {
        let Some(s) = r.object(field) else { continue };
        return match field.as_str() {
            "persistentVolumeClaim" => {
                VolumeSource::PersistentVolumeClaim { claim: s.required_str("claimName"), read_only: read_only(&s) }
            }
            "ephemeral" => VolumeSource::Ephemeral,
            "emptyDir" => VolumeSource::EmptyDir,
            "hostPath" => VolumeSource::HostPath,
            "csi" => VolumeSource::Csi { driver: s.required_str("driver") },
            "image" => VolumeSource::Image { reference: s.str("reference") },
            "gcePersistentDisk" => {
                VolumeSource::GcePersistentDisk { pd_name: s.required_str("pdName"), read_only: read_only(&s) }
            }
            "awsElasticBlockStore" => {
                VolumeSource::AwsElasticBlockStore { volume_id: s.required_str("volumeID"), read_only: read_only(&s) }
            }
            "azureDisk" => VolumeSource::AzureDisk { disk_name: s.required_str("diskName") },
            "cinder" => VolumeSource::Cinder { volume_id: s.required_str("volumeID") },
            "portworxVolume" => VolumeSource::Portworx { volume_id: s.required_str("volumeID") },
            "iscsi" => VolumeSource::Iscsi { iqn: s.required_str("iqn"), read_only: read_only(&s) },
            "rbd" => VolumeSource::Rbd {
                monitors: s.texts("monitors"),
                // The API server's default.
                pool: str_of(s.text("pool").filter(|p| !p.is_empty()).unwrap_or("rbd")),
                image: s.required_str("image"),
                read_only: read_only(&s),
            },
            _ => VolumeSource::Other,
        };
    }
    // The API server's default for a volume without any source.
    VolumeSource::EmptyDir
}

fn read_only(source: &Reader<'_>) -> bool {
    source.flag("readOnly").unwrap_or(false)
}
