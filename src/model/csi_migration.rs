//! How volumes count against a node's CSI drivers, those of the former in-tree types included (spec 4.11 and 4.12).
//!
//! The in-tree types live on as names for CSI drivers: an `awsElasticBlockStore` volume is a volume of `ebs.csi.aws.com`.
//! Driver names, handles and topology keys are those of `k8s.io/csi-translation-lib`. Pure functions of the objects; a
//! volume that upstream can't translate has no identity here and counts nowhere. Azure disks are known by their disk name,
//! which stands in for the URI that upstream takes: it tells disks apart as well, within one subscription.

use super::node_selector::{NodeOperator, NodeRequirement};
use super::storage::{PersistentVolume, PvSource};
use super::volume::VolumeSource;
use super::{NodeSelector, NodeSelectorTerm, Str};

/// The annotation of a CSINode that lists, separated by commas, the in-tree plugins that the node has migrated.
pub const MIGRATED_PLUGINS: &str = "storage.alpha.kubernetes.io/migrated-plugins";

const BETA_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const BETA_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const ZONE: &str = super::node::ZONE_LABEL;
const REGION: &str = super::node::REGION_LABEL;

/// An in-tree volume type that CSI drivers took over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum InTreePlugin {
    AwsElasticBlockStore,
    GcePersistentDisk,
    AzureDisk,
    Cinder,
    Portworx,
}

impl InTreePlugin {
    pub const ALL: [Self; 5] =
        [Self::AwsElasticBlockStore, Self::GcePersistentDisk, Self::AzureDisk, Self::Cinder, Self::Portworx];

    /// The provisioner that storage classes name.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "kubernetes.io/aws-ebs",
            Self::GcePersistentDisk => "kubernetes.io/gce-pd",
            Self::AzureDisk => "kubernetes.io/azure-disk",
            Self::Cinder => "kubernetes.io/cinder",
            Self::Portworx => "kubernetes.io/portworx-volume",
        }
    }

    /// The CSI driver that took it over.
    pub fn driver(self) -> &'static str {
        match self {
            Self::AwsElasticBlockStore => "ebs.csi.aws.com",
            Self::GcePersistentDisk => "pd.csi.storage.gke.io",
            Self::AzureDisk => "disk.csi.azure.com",
            Self::Cinder => "cinder.csi.openstack.org",
            Self::Portworx => "pxd.portworx.com",
        }
    }

    /// The node label under which the driver publishes zones; None where translation leaves the topology alone.
    fn topology_key(self) -> Option<&'static str> {
        match self {
            Self::AwsElasticBlockStore => Some("topology.ebs.csi.aws.com/zone"),
            Self::GcePersistentDisk => Some("topology.gke.io/zone"),
            Self::Cinder => Some("topology.cinder.csi.openstack.org/zone"),
            Self::AzureDisk | Self::Portworx => None,
        }
    }

    pub fn of_provisioner(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.name() == name)
    }

    pub fn of_volume(source: &PvSource) -> Option<Self> {
        match source {
            PvSource::AwsElasticBlockStore { .. } => Some(Self::AwsElasticBlockStore),
            PvSource::GcePersistentDisk { .. } => Some(Self::GcePersistentDisk),
            PvSource::AzureDisk { .. } => Some(Self::AzureDisk),
            PvSource::Cinder { .. } => Some(Self::Cinder),
            PvSource::Portworx { .. } => Some(Self::Portworx),
            PvSource::Csi { .. } | PvSource::Other => None,
        }
    }

    pub fn of_inline(source: &VolumeSource) -> Option<Self> {
        match source {
            VolumeSource::AwsElasticBlockStore { .. } => Some(Self::AwsElasticBlockStore),
            VolumeSource::GcePersistentDisk { .. } => Some(Self::GcePersistentDisk),
            VolumeSource::AzureDisk { .. } => Some(Self::AzureDisk),
            VolumeSource::Cinder { .. } => Some(Self::Cinder),
            VolumeSource::Portworx { .. } => Some(Self::Portworx),
            _ => None,
        }
    }
}

/// The driver that provisions for a storage class: its provisioner, or the driver that took that one over.
pub fn provisioning_driver(provisioner: &Str) -> Str {
    InTreePlugin::of_provisioner(provisioner).map_or_else(|| provisioner.clone(), |plugin| plugin.driver().into())
}

/// A volume as the limits of a CSI driver count it: ordered by driver first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VolumeId {
    pub driver: Str,
    pub handle: VolumeHandle,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VolumeHandle {
    /// The driver's own.
    Volume(Str),
    /// Of a claim that has no volume yet: each such claim counts as a volume of its own.
    Claim { namespace: Str, name: Str },
}

impl VolumeId {
    pub fn new(driver: &str, handle: &str) -> Self {
        Self { driver: driver.into(), handle: VolumeHandle::Volume(handle.into()) }
    }

    /// The identity of a persistent volume; None unless it is a CSI volume or of a migrated type.
    pub fn of_volume(volume: &PersistentVolume) -> Option<Self> {
        let plugin = InTreePlugin::of_volume(&volume.source);
        let migrated = |handle: &str| Some(Self::new(plugin?.driver(), handle));
        match &volume.source {
            PvSource::Csi { driver, handle } => {
                Some(Self { driver: driver.clone(), handle: VolumeHandle::Volume(handle.clone()) })
            }
            PvSource::AwsElasticBlockStore { volume_id } => migrated(ebs_handle(volume_id)?),
            PvSource::GcePersistentDisk { pd_name } => migrated(&gce_handle(volume, pd_name)?),
            PvSource::AzureDisk { disk_name: id }
            | PvSource::Cinder { volume_id: id }
            | PvSource::Portworx { volume_id: id } => migrated(id),
            PvSource::Other => None,
        }
    }

    /// The identity of a volume that a pod names itself; None unless it is of a migrated type.
    pub fn of_inline(source: &VolumeSource) -> Option<Self> {
        let driver = InTreePlugin::of_inline(source)?.driver();
        match source {
            VolumeSource::AwsElasticBlockStore { volume_id, .. } => Some(Self::new(driver, ebs_handle(volume_id)?)),
            VolumeSource::GcePersistentDisk { pd_name, .. } => {
                Some(Self::new(driver, &zonal_disk(UNSPECIFIED, pd_name)))
            }
            VolumeSource::AzureDisk { disk_name: id }
            | VolumeSource::Cinder { volume_id: id }
            | VolumeSource::Portworx { volume_id: id } => Some(Self::new(driver, id)),
            _ => None,
        }
    }
}

/// `vol-1` and its URL forms `aws:///vol-1` and `aws://zone/vol-1` are one volume.
fn ebs_handle(id: &str) -> Option<&str> {
    let Some(rest) = id.strip_prefix("aws://") else { return Some(id) };
    let (_zone, path) = rest.split_once('/')?;
    let id = path.trim_matches('/');
    (id.starts_with("vol-") && !id.contains('/')).then_some(id)
}

const UNSPECIFIED: &str = "UNSPECIFIED";

fn zonal_disk(zone: &str, name: &str) -> String {
    format!("projects/{UNSPECIFIED}/zones/{zone}/disks/{name}")
}

/// A persistent disk is named with its zone or region; an inline one never is, so the same disk inline and through a volume
/// with zone labels counts twice, as upstream.
fn gce_handle(volume: &PersistentVolume, name: &str) -> Option<String> {
    let label = |key| volume.meta.labels.get(key).filter(|v| !v.is_empty());
    let Some(label) = label(BETA_ZONE).or_else(|| label(ZONE)) else { return Some(zonal_disk(UNSPECIFIED, name)) };
    let zones: Vec<&str> = label.split(ZONE_DELIMITER).collect();
    if let [zone] = zones.as_slice() {
        return Some(zonal_disk(zone, name));
    }
    let mut regions = zones.iter().map(|zone| match zone.split('-').collect::<Vec<_>>().as_slice() {
        [locale, region, _] => Some(format!("{locale}-{region}")),
        _ => None,
    });
    let region = regions.next()??;
    regions
        .all(|r| r.as_ref() == Some(&region))
        .then(|| format!("projects/{UNSPECIFIED}/regions/{region}/disks/{name}"))
}

/// Separates the zones in the zone label of a volume that several zones share.
pub const ZONE_DELIMITER: &str = "__";

/// What the node affinity of a volume of a migrated type becomes once it is read as a CSI volume: the zone label is replaced
/// by the driver's, or the volume's zone labels become a requirement. None where translation changes nothing.
pub fn translated_affinity(volume: &PersistentVolume) -> Option<NodeSelector> {
    let key = InTreePlugin::of_volume(&volume.source)?.topology_key()?;
    let mut selector = volume.node_affinity.clone().unwrap_or_default();
    let asks_for = |selector: &NodeSelector, key: &str| expressions(selector).any(|e| &*e.key == key);
    let labelled = |key| volume.meta.labels.contains_key(key);
    // Which generation of labels the volume speaks: its affinity decides before its own labels do.
    let beta = if asks_for(&selector, ZONE) {
        false
    } else {
        asks_for(&selector, BETA_ZONE) || (!labelled(ZONE) && labelled(BETA_ZONE))
    };
    let zone = if beta { BETA_ZONE } else { ZONE };
    let mut changed = false;
    if expressions(&selector).any(|e| &*e.key == zone && has_values(&e.op)) {
        changed |= rename(&mut selector, zone, key);
    } else if let Some(label) = volume.meta.labels.get(zone) {
        let mut zones: Vec<Str> =
            label.split(ZONE_DELIMITER).map(str::trim).filter(|z| !z.is_empty()).map(Str::from).collect();
        zones.sort();
        zones.dedup();
        if !zones.is_empty() {
            if selector.terms.is_empty() {
                selector.terms.push(NodeSelectorTerm::default());
            }
            for term in &mut selector.terms {
                term.expressions.push(NodeRequirement { key: key.into(), op: NodeOperator::In(zones.clone()) });
            }
            changed = true;
        }
    }
    if beta && expressions(&selector).any(|e| &*e.key == BETA_REGION && has_values(&e.op)) {
        changed |= rename(&mut selector, BETA_REGION, REGION);
    }
    changed.then_some(selector)
}

fn expressions(selector: &NodeSelector) -> impl Iterator<Item = &NodeRequirement> {
    selector.terms.iter().flat_map(|t| &t.expressions)
}

fn has_values(op: &NodeOperator) -> bool {
    match op {
        NodeOperator::In(values) | NodeOperator::NotIn(values) => !values.is_empty(),
        NodeOperator::Gt(_) | NodeOperator::Lt(_) => true,
        NodeOperator::Exists | NodeOperator::DoesNotExist | NodeOperator::Invalid => false,
    }
}

fn rename(selector: &mut NodeSelector, from: &str, to: &str) -> bool {
    let mut changed = false;
    for expression in selector.terms.iter_mut().flat_map(|t| &mut t.expressions) {
        if &*expression.key == from {
            expression.key = to.into();
            changed = true;
        }
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing_storage::{node_terms, volume};

    fn handle(volume: &PersistentVolume) -> Option<String> {
        match VolumeId::of_volume(volume)?.handle {
            VolumeHandle::Volume(handle) => Some(handle.to_string()),
            VolumeHandle::Claim { .. } => None,
        }
    }

    #[test]
    fn an_ebs_volume_has_one_identity_under_all_its_names() {
        let id = |text: &str| {
            handle(&volume("pv").source(PvSource::AwsElasticBlockStore { volume_id: text.into() }).build())
        };
        for name in ["vol-1", "aws:///vol-1", "aws://zone-a/vol-1"] {
            assert_eq!(id(name).as_deref(), Some("vol-1"), "{name}");
        }
        assert_eq!(id("aws://zone-a/disk-1"), None);
    }

    #[test]
    fn a_gce_disk_is_named_with_its_zone_or_region() {
        let disk = |zones: Option<&str>| {
            let builder = volume("pv").source(PvSource::GcePersistentDisk { pd_name: "d".into() });
            handle(&zones.into_iter().fold(builder, |b, z| b.label(ZONE, z)).build())
        };
        assert_eq!(disk(None).as_deref(), Some("projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"));
        assert_eq!(disk(Some("us-east1-a")).as_deref(), Some("projects/UNSPECIFIED/zones/us-east1-a/disks/d"));
        let regional = disk(Some("us-east1-a__us-east1-b"));
        assert_eq!(regional.as_deref(), Some("projects/UNSPECIFIED/regions/us-east1/disks/d"));
        assert_eq!(disk(Some("us-east1-a__us-west1-b")), None);
        assert_eq!(disk(Some("a__b")), None);
    }

    #[test]
    fn translation_speaks_the_drivers_topology() {
        let ebs = PvSource::AwsElasticBlockStore { volume_id: "vol-1".into() };
        let key = "topology.ebs.csi.aws.com/zone";
        for (from, to) in [(ZONE, key), (BETA_ZONE, key)] {
            let pv = volume("pv").source(ebs.clone()).on_nodes(from, &["a"]).build();
            assert_eq!(translated_affinity(&pv), Some(node_terms(to, &["a"])), "{from}");
        }
        let labelled = volume("pv").source(ebs.clone()).label(ZONE, "b__ a").build();
        assert_eq!(translated_affinity(&labelled), Some(node_terms(key, &["a", "b"])));
        assert_eq!(translated_affinity(&volume("pv").source(ebs).build()), None);
        let csi = volume("pv").csi("x.example", "h").label(ZONE, "a").build();
        assert_eq!(translated_affinity(&csi), None);
        let azure = volume("pv").source(PvSource::AzureDisk { disk_name: "d".into() }).label(ZONE, "a").build();
        assert_eq!(translated_affinity(&azure), None);
    }

    #[test]
    fn affinity_decides_the_labels_generation_before_the_volumes_own_labels() {
        let pv = volume("pv")
            .source(PvSource::Cinder { volume_id: "c".into() })
            .label(ZONE, "x")
            .on_nodes(BETA_ZONE, &["a"])
            .build();
        assert_eq!(translated_affinity(&pv), Some(node_terms("topology.cinder.csi.openstack.org/zone", &["a"])));
    }
}
