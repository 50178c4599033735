//! The openb cluster (data/alibaba-gpu-v2023) as Kubernetes objects.
//!
//! A node has 110 pods, `nvidia.com/gpu: N` and `berth.dev/gpu-milli: 1000*N`. A pod on whole devices asks for both, a
//! pod on a part of one only for its thousandths, which are counted per node: which device of the node it gets is not
//! modelled. `gpu_spec` (`A|B`) becomes a required node affinity on the model's label.

use crate::api::pb;

const NODES: &str = include_str!("../../../data/alibaba-gpu-v2023/openb_node_list_all_node.csv");
const PODS: &str = include_str!("../../../data/alibaba-gpu-v2023/openb_pod_list_default.csv");

/// The label that the trace's authors put a node's GPU model in.
const MODEL_LABEL: &str = "alibabacloud.com/gpu-card-model";
const GPU: &str = "nvidia.com/gpu";
const GPU_MILLI: &str = "berth.dev/gpu-milli";
/// Where the trace's pods live.
pub(super) const NAMESPACE: &str = "openb";

/// A row that isn't as the data's README says.
#[derive(Debug, thiserror::Error)]
#[error("the openb data: {0}")]
pub(super) struct TraceError(String);

/// Columns of a row, by name.
struct Row<'a> {
    header: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Result<&str, TraceError> {
        let at = self.header.iter().position(|name| name == column);
        at.and_then(|i| self.record.get(i)).ok_or_else(|| TraceError(format!("no column {column}")))
    }

    fn number(&self, column: &str) -> Result<u64, TraceError> {
        let text = self.text(column)?;
        text.parse().map_err(|_| TraceError(format!("{column}: {text:?} is no number")))
    }
}

fn read<T>(text: &str, each: impl Fn(&Row<'_>) -> Result<T, TraceError>) -> Result<Vec<T>, TraceError> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let fail = |e: csv::Error| TraceError(e.to_string());
    let header = reader.headers().map_err(fail)?.clone();
    let records = reader.records().map(|record| each(&Row { header: &header, record: &record.map_err(fail)? }));
    records.collect()
}

/// The nodes, in file order.
pub(super) fn nodes() -> Result<Vec<pb::Node>, TraceError> {
    read(NODES, |row| {
        let (name, gpus) = (row.text("sn")?, row.number("gpu")?);
        let mut labels = vec![("kubernetes.io/hostname".to_owned(), name.to_owned())];
        let mut allocatable = vec![
            ("cpu".to_owned(), format!("{}m", row.number("cpu_milli")?)),
            ("memory".to_owned(), format!("{}Mi", row.number("memory_mib")?)),
            ("pods".to_owned(), "110".to_owned()),
        ];
        if gpus > 0 {
            labels.push((MODEL_LABEL.to_owned(), row.text("model")?.to_owned()));
            allocatable.push((GPU.to_owned(), gpus.to_string()));
            allocatable.push((GPU_MILLI.to_owned(), (1000 * gpus).to_string()));
        }
        Ok(pb::Node {
            metadata: Some(pb::ObjectMeta {
                name: name.to_owned(),
                uid: format!("node-{name}"),
                labels: labels.into_iter().collect(),
                ..Default::default()
            }),
            spec: None,
            status: Some(pb::NodeStatus {
                allocatable: allocatable.iter().cloned().collect(),
                capacity: allocatable.into_iter().collect(),
                ..Default::default()
            }),
        })
    })
}

/// The pods, in file order.
pub(super) fn pods() -> Result<Vec<pb::Pod>, TraceError> {
    read(PODS, |row| {
        let name = row.text("name")?;
        let (devices, milli) = (row.number("num_gpu")?, row.number("gpu_milli")?);
        let mut requests = vec![
            ("cpu".to_owned(), format!("{}m", row.number("cpu_milli")?)),
            ("memory".to_owned(), format!("{}Mi", row.number("memory_mib")?)),
        ];
        if devices > 0 {
            requests.push((GPU_MILLI.to_owned(), (devices * milli).to_string()));
            if milli == 1000 {
                requests.push((GPU.to_owned(), devices.to_string()));
            }
        }
        let models: Vec<String> =
            row.text("gpu_spec")?.split('|').filter(|m| !m.is_empty()).map(str::to_owned).collect();
        let container = pb::Container {
            name: "task".to_owned(),
            image: "registry.example/openb/task:1".to_owned(),
            resources: Some(pb::ResourceRequirements {
                requests: requests.into_iter().collect(),
                ..Default::default()
            }),
            ..Default::default()
        };
        Ok(pb::Pod {
            metadata: Some(pb::ObjectMeta {
                name: name.to_owned(),
                namespace: NAMESPACE.to_owned(),
                uid: format!("pod-{name}"),
                owner_references: vec![job(name)],
                ..Default::default()
            }),
            spec: Some(pb::PodSpec {
                containers: vec![container],
                affinity: (!models.is_empty()).then(|| requires_models(models)),
                ..Default::default()
            }),
            status: None,
        })
    })
}

/// The trace doesn't say what its tasks belong to; here each is that of a Job, which makes another if it is evicted.
fn job(name: &str) -> pb::OwnerReference {
    pb::OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: name.to_owned(),
        uid: format!("job-{name}"),
        controller: Some(true),
    }
}

fn requires_models(values: Vec<String>) -> pb::Affinity {
    let requirement = pb::NodeSelectorRequirement { key: MODEL_LABEL.to_owned(), operator: "In".to_owned(), values };
    let term = pb::NodeSelectorTerm { match_expressions: vec![requirement], match_fields: Vec::new() };
    pb::Affinity {
        node_affinity: Some(pb::NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(pb::NodeSelector {
                node_selector_terms: vec![term],
            }),
            preferred_during_scheduling_ignored_during_execution: Vec::new(),
        }),
        ..Default::default()
    }
}

/// The name of a pod of the trace.
pub(super) fn name(pod: &pb::Pod) -> &str {
    pod.metadata.as_ref().map_or("", |m| &m.name)
}

/// A pod like this one under another name.
pub(super) fn renamed(pod: &pb::Pod, name: &str) -> pb::Pod {
    let mut pod = pod.clone();
    if let Some(meta) = &mut pod.metadata {
        meta.name = name.to_owned();
        meta.uid = format!("pod-{name}");
    }
    pod
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(pod: &pb::Pod) -> Vec<(String, String)> {
        let spec = pod.spec.clone().unwrap_or_default();
        let resources = spec.containers[0].resources.clone().unwrap_or_default();
        resources.requests.into_iter().filter(|(name, _)| name.contains('/')).collect()
    }

    #[test]
    fn the_trace_has_its_published_size() {
        assert_eq!((nodes().unwrap().len(), pods().unwrap().len()), (1523, 8152));
    }

    #[test]
    fn whole_devices_ask_for_both_resources_and_parts_only_for_thousandths() {
        let pods = pods().unwrap();
        let named = |n: &str| pods.iter().find(|p| name(p) == n).unwrap();
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(requests(named("openb-pod-0000")), [pair(GPU_MILLI, "1000"), pair(GPU, "1")]);
        assert_eq!(requests(named("openb-pod-0001")), [pair(GPU_MILLI, "460")]);
        let devices: u64 = nodes()
            .unwrap()
            .iter()
            .map(|n| {
                let status = n.status.clone().unwrap_or_default();
                status.allocatable.get(GPU).map_or(0, |v| v.parse().unwrap())
            })
            .sum();
        assert_eq!(devices, 6212);
    }
}
