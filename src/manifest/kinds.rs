//! Which kind an object is, and which reader that kind has.

use serde_json::Value;

use super::Options;
use super::error::{Cut, unsupported};
use super::reader::{Issues, Reader};
use super::{metrics, node, pod, policy, storage, workload};
use crate::model::{Kind, Namespace, Object};

/// What an object says it is, or what the list that holds it says of its items.
#[derive(Clone, Copy, Default)]
pub(super) struct Type<'a> {
    pub(super) kind: &'a str,
    pub(super) api_version: &'a str,
}

impl<'a> Type<'a> {
    /// Reads `kind` and `apiVersion`; what isn't there comes from `implied`.
    pub(super) fn of(value: &'a Value, implied: Self) -> Self {
        let field = |name| value.get(name).and_then(Value::as_str).filter(|t| !t.is_empty());
        Self {
            kind: field("kind").unwrap_or(implied.kind),
            api_version: field("apiVersion").unwrap_or(implied.api_version),
        }
    }

    pub(super) fn group(self) -> &'a str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// Somebody else's kind that is called like one of Kubernetes', such as Knative's Service.
    fn is_foreign(self) -> bool {
        let group = self.group();
        group.contains('.') && !group.ends_with(".k8s.io")
    }

    /// The items that a list holds, if this is one, and what their type is when they don't say.
    pub(super) fn items(self, value: &'a Value) -> Option<(&'a [Value], Self)> {
        if let Value::Array(items) = value {
            return Some((items, Self::default()));
        }
        let kind = self.kind.strip_suffix("List")?;
        let items = value.get("items");
        if items.is_none() && !kind.is_empty() {
            return None;
        }
        let items: &[Value] = match items {
            None | Some(Value::Null) => &[],
            Some(Value::Array(items)) => items,
            Some(_) => return None,
        };
        let implied = if kind.is_empty() { Self::default() } else { Self { kind, api_version: self.api_version } };
        Some((items, implied))
    }
}

/// What to do with an object that isn't a list.
pub(super) enum Class {
    Read(Kind),
    /// Not a kind that Berth reads; its name, with the group where that tells it from one of Kubernetes'.
    Skip(String),
    /// A mistake in `kind`; the message.
    Broken(String),
}

pub(super) fn classify(kind: Type<'_>) -> Class {
    if let Some(known) = Kind::parse(kind.kind) {
        if kind.is_foreign() {
            return Class::Skip(format!("{}.{}", Cut(kind.kind), Cut(kind.group())));
        }
        return Class::Read(known);
    }
    if kind.kind.is_empty() {
        return Class::Broken(super::error::REQUIRED.to_owned());
    }
    match Kind::ALL.iter().find(|k| k.as_str().eq_ignore_ascii_case(kind.kind)) {
        Some(meant) => Class::Broken(unsupported(kind.kind, [meant.as_str()])),
        None => Class::Skip(Cut(kind.kind).to_string()),
    }
}

/// The API groups of a kind, the one of today first.
fn groups(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Node
        | Kind::Pod
        | Kind::Namespace
        | Kind::Service
        | Kind::PersistentVolume
        | Kind::PersistentVolumeClaim => &[""],
        Kind::ReplicationController => &["", "extensions"],
        Kind::ReplicaSet => &["apps", "extensions"],
        Kind::StatefulSet => &["apps"],
        Kind::PodDisruptionBudget => &["policy"],
        Kind::PriorityClass => &["scheduling.k8s.io"],
        Kind::RuntimeClass => &["node.k8s.io"],
        Kind::StorageClass | Kind::CsiNode | Kind::CsiDriver | Kind::CsiStorageCapacity | Kind::VolumeAttachment => {
            &["storage.k8s.io"]
        }
        Kind::NodeMetrics | Kind::PodMetrics => &["metrics.k8s.io"],
    }
}

/// Reports an `apiVersion` that isn't one of the kind's. Any version of the right group will do: the fields that Berth
/// reads have had the same names in all of them.
fn check_version(kind: Kind, api_version: &str, issues: &Issues) {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let digits = version.strip_prefix('v').unwrap_or_default();
    if digits.starts_with(|c: char| c.is_ascii_digit()) && groups(kind).contains(&group) {
        return;
    }
    let message = if api_version.is_empty() {
        super::error::REQUIRED.to_owned()
    } else {
        let version = if groups(kind) == ["metrics.k8s.io"] { "v1beta1" } else { "v1" };
        let usual = match groups(kind) {
            ["", ..] | [] => version.to_owned(),
            [group, ..] => format!("{group}/{version}"),
        };
        unsupported(api_version, [usual.as_str()])
    };
    issues.error("apiVersion".to_owned(), message);
}

/// Reads an object of a known kind. What comes out is only good if there are no issues.
pub(super) fn read(kind: Kind, api_version: &str, value: &Value, issues: &Issues, options: Options) -> Option<Object> {
    let r = &Reader::root(value, issues)?;
    check_version(kind, api_version, issues);
    Some(match kind {
        Kind::Node => node::node(r, options).into(),
        Kind::Pod => pod::pod(r, options).into(),
        Kind::Namespace => Namespace { meta: super::meta::meta(r, kind, options) }.into(),
        Kind::Service => workload::service(r, options).into(),
        Kind::ReplicationController => workload::replication_controller(r, options).into(),
        Kind::ReplicaSet => workload::replica_set(r, options).into(),
        Kind::StatefulSet => workload::stateful_set(r, options).into(),
        Kind::PodDisruptionBudget => policy::pod_disruption_budget(r, api_version, options).into(),
        Kind::PriorityClass => policy::priority_class(r, options).into(),
        Kind::RuntimeClass => policy::runtime_class(r, options).into(),
        Kind::PersistentVolume => storage::persistent_volume(r, options).into(),
        Kind::PersistentVolumeClaim => storage::persistent_volume_claim(r, options).into(),
        Kind::StorageClass => storage::storage_class(r, options).into(),
        Kind::CsiNode => storage::csi_node(r, options).into(),
        Kind::CsiDriver => storage::csi_driver(r, options).into(),
        Kind::CsiStorageCapacity => storage::csi_storage_capacity(r, options).into(),
        Kind::VolumeAttachment => storage::volume_attachment(r, options).into(),
        Kind::NodeMetrics => metrics::node_metrics(r, options).into(),
        Kind::PodMetrics => metrics::pod_metrics(r, options).into(),
    })
}

/// Reads a pod, likewise.
pub(super) fn read_pod(
    api_version: &str,
    value: &Value,
    issues: &Issues,
    options: Options,
) -> Option<crate::model::Pod> {
    let r = &Reader::root(value, issues)?;
    check_version(Kind::Pod, api_version, issues);
    Some(pod::pod(r, options))
}
