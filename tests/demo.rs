//! The promise of the demo, in process: after the openb pods were placed no node is over its allocatable in any resource.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use berth::cluster::store::Origin;
use berth::cluster::view::ResourceId;
use berth::cluster::writer::Prepared;
use berth::manifest;
use berth::service::profiles::Profiles;
use berth::service::schedule::Request;
use berth::service::{ManualClock, Service};
use serde_json::{Value, json};

fn rows(file: &str) -> Vec<std::collections::BTreeMap<String, String>> {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/alibaba-gpu-v2023").join(file);
    let mut reader = csv::Reader::from_path(path).unwrap();
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn node(row: &std::collections::BTreeMap<String, String>) -> Value {
    let gpus: u64 = row["gpu"].parse().unwrap();
    let mut allocatable =
        json!({ "cpu": format!("{}m", row["cpu_milli"]), "memory": format!("{}Mi", row["memory_mib"]), "pods": "110" });
    if gpus > 0 {
        allocatable["nvidia.com/gpu"] = json!(gpus);
        allocatable["berth.dev/gpu-milli"] = json!(1000 * gpus);
    }
    json!({ "kind": "Node", "apiVersion": "v1", "metadata": { "name": row["sn"] }, "status": { "allocatable": allocatable } })
}

fn pod(row: &std::collections::BTreeMap<String, String>) -> Value {
    let (devices, milli): (u64, u64) = (row["num_gpu"].parse().unwrap(), row["gpu_milli"].parse().unwrap());
    let mut requests = json!({ "cpu": format!("{}m", row["cpu_milli"]), "memory": format!("{}Mi", row["memory_mib"]) });
    if devices > 0 {
        requests["berth.dev/gpu-milli"] = json!(devices * milli);
        if milli == 1000 {
            requests["nvidia.com/gpu"] = json!(devices);
        }
    }
    let container = json!({ "name": "c", "resources": { "requests": requests } });
    json!({ "kind": "Pod", "apiVersion": "v1", "metadata": { "name": row["name"] }, "spec": { "containers": [container] } })
}

#[test]
fn no_node_is_over_its_allocatable_in_any_resource() {
    let service = Service::new(Profiles::default(), Arc::new(ManualClock::default()));
    let options = manifest::Options::default();
    for row in rows("openb_node_list_all_node.csv") {
        let parsed = manifest::object(&node(&row), options).unwrap();
        let mut writer = service.cluster.writer();
        writer.begin();
        writer.upsert(Prepared::new(parsed.value), Origin::anonymous());
    }
    service.cluster.writer().readiness_mut().files_loaded();
    let mut placed = 0;
    for row in rows("openb_pod_list_default.csv") {
        let parsed = manifest::pod_from(&pod(&row), options).unwrap();
        let answer = service.schedule(Request::new(parsed.value), &AtomicBool::new(false)).unwrap();
        placed += usize::from(answer.verdict.node().is_some());
    }
    assert!(placed > 8_000, "only {placed} placed");
    let view = service.cluster.fork();
    assert_eq!(view.pod_count(), placed);
    let resources: Vec<ResourceId> = view.resources().names().iter().filter_map(|n| view.resources().get(n)).collect();
    for row in view.nodes() {
        for id in &resources {
            let (requested, allocatable) = (row.requested(*id), row.allocatable(*id));
            assert!(requested <= allocatable, "{} {:?}: {requested} of {allocatable}", row.name(), id);
        }
        assert!(i64::try_from(row.pods().len()).unwrap() <= row.allowed_pods());
    }
}
