//! The pods of the classic tutorials, each decided by itself on the tutorials' cluster and held against
//! `tutorials/expected.txt`. To renew that file after a change that is meant: `BERTH_BLESS=1 cargo test --test tutorials`.

#![allow(clippy::unwrap_used, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use berth::manifest;
use berth::service::profiles::Profiles;
use berth::service::schedule::{Request, Verdict};
use berth::service::{ManualClock, Service};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tutorials").join(name)
}

#[test]
fn tutorial_pods_go_where_the_tutorials_say() {
    let service = Service::new(Profiles::default(), Arc::new(ManualClock::default()));
    let loaded = service.load_files(&[file("cluster.yaml")]).unwrap();
    assert_eq!((loaded.nodes, loaded.pods), (4, 0));
    let pods = manifest::read_pods(&file("pods.yaml"), manifest::Options::default());
    assert!(pods.errors.is_empty(), "{:?}", pods.errors);

    let mut text = String::new();
    for pod in pods.objects {
        let request = Request { dry_run: true, ..Request::new(pod.value) };
        let name = request.pod.meta.name.clone();
        let answer = service.schedule(request, &AtomicBool::new(false)).unwrap();
        match answer.verdict {
            Verdict::Placed { node, .. } => writeln!(text, "{name}: {node}").unwrap(),
            _ => writeln!(text, "{name}: {}", answer.fit_message).unwrap(),
        }
    }
    let expected = file("expected.txt");
    if std::env::var_os("BERTH_BLESS").is_some() {
        std::fs::write(&expected, &text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&expected).unwrap_or_default());
}
