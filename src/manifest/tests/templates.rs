//! Pods from the templates of workloads.

use serde_json::{Value, json};

use super::super::{Item, Options, derived_uid, pod_from, pods};
use crate::model::testing::quantity;
use crate::model::volume::VolumeSource;

fn template() -> Value {
    json!({
        "metadata": {"name": "ignored", "namespace": "ignored", "labels": {"app": "web"}, "annotations": {"a": "1"}},
        "spec": {"containers": [{"name": "main", "resources": {"limits": {"cpu": "1"}}}]},
    })
}

fn workload(api_version: &str, kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "shop", "uid": "w1"},
           "spec": spec})
}

#[test]
fn every_workload_stands_for_its_pod() {
    let plain = json!({"template": template()});
    let cron = json!({"jobTemplate": {"spec": {"template": template()}}});
    for (api_version, kind, spec, name) in [
        ("apps/v1", "Deployment", &plain, "web-pod"),
        ("extensions/v1beta1", "Deployment", &plain, "web-pod"),
        ("apps/v1", "ReplicaSet", &plain, "web-pod"),
        ("apps/v1beta2", "StatefulSet", &plain, "web-0"),
        ("extensions/v1beta1", "DaemonSet", &plain, "web-pod"),
        ("batch/v1", "Job", &plain, "web-pod"),
        ("batch/v1beta1", "CronJob", &cron, "web-pod"),
        ("v1", "ReplicationController", &plain, "web-pod"),
    ] {
        let parsed = pod_from(&workload(api_version, kind, spec), Options::default()).unwrap_or_else(|e| panic!("{e}"));
        let pod = parsed.value;
        assert_eq!((&*pod.meta.namespace, &*pod.meta.name), ("shop", name), "{kind}");
        assert_eq!(pod.meta.uid, derived_uid("Pod", "shop", name));
        assert_eq!(pod.meta.labels, [("app", "web")].into_iter().collect());
        assert_eq!(pod.meta.annotations, [("a", "1")].into_iter().collect());
        let owner = pod.meta.controller().unwrap();
        assert_eq!((&*owner.api_version, &*owner.kind, &*owner.name, &*owner.uid), (api_version, kind, "web", "w1"));
        assert_eq!(pod.spec.containers[0].resources.requests["cpu"], quantity("1"));
        assert_eq!(&*pod.spec.scheduler_name, "default-scheduler");
        assert_eq!(parsed.warnings.len(), 1);
        assert_eq!(parsed.warnings[0].to_string(), format!("pod {name} is made from the template of {kind} web"));
    }
    let mut bare = json!({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "web"}});
    bare["template"] = template();
    let pod = pod_from(&bare, Options::default()).unwrap().value;
    assert_eq!(
        (pod.meta.key(), &pod.meta.owners[0].uid),
        ("default/web-pod".to_owned(), &derived_uid("PodTemplate", "default", "web"))
    );
}

#[test]
fn a_pod_stands_for_itself() {
    let value = super::pod_with(&json!({}));
    assert_eq!(pod_from(&value, Options::default()).unwrap().value, super::pod(&value));
}

#[test]
fn a_pod_of_a_stateful_set_gets_its_claims() {
    let mut template = template();
    template["spec"]["volumes"] = json!([{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}]);
    let claims = json!([{"metadata": {"name": "data"}, "spec": {}}]);
    let value = workload("apps/v1", "StatefulSet", &json!({"template": template, "volumeClaimTemplates": claims}));
    let volumes = pod_from(&value, Options::default()).unwrap().value.spec.volumes;
    let claim = VolumeSource::PersistentVolumeClaim { claim: "data-web-0".into(), read_only: false };
    assert_eq!(
        volumes.iter().map(|v| (&*v.name, &v.source)).collect::<Vec<_>>(),
        [("tmp", &VolumeSource::EmptyDir), ("data", &claim)]
    );
}

#[test]
fn mistakes_in_a_template_have_their_whole_path() {
    let mut template = template();
    template["spec"]["containers"][0]["resources"]["limits"]["cpu"] = json!("1x");
    template["metadata"]["labels"]["app"] = json!(1);
    let value = workload("batch/v1", "CronJob", &json!({"jobTemplate": {"spec": {"template": template}}}));
    let error = pod_from(&value, Options::default()).unwrap_err();
    assert_eq!(error.object(), "CronJob shop/web");
    let at = "spec.jobTemplate.spec.template";
    assert_eq!(
        super::lines(&error)[0],
        format!("{at}.metadata.labels[app]: expected a string, found a number (quote it)")
    );
    assert!(super::lines(&error)[1].starts_with(&format!("{at}.spec.containers[0].resources.limits[cpu]: quantities")));
    let error = pod_from(&workload("apps/v1", "Deployment", &json!({})), Options::default()).unwrap_err();
    assert_eq!(super::lines(&error), ["spec.template: Required value"]);
    let error = pod_from(&workload("batch/v1", "CronJob", &json!({})), Options::default()).unwrap_err();
    assert_eq!(super::lines(&error), ["spec.jobTemplate.spec.template: Required value"]);
}

#[test]
fn other_kinds_are_refused_with_what_is_accepted() {
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}});
    assert_eq!(
        pod_from(&service, Options::default()).unwrap_err().to_string(),
        "Service default/web is invalid: kind: Unsupported value: \"Service\": supported values: \"CronJob\", \
         \"DaemonSet\", \"Deployment\", \"Job\", \"Pod\", \"PodTemplate\", \"ReplicaSet\", \"ReplicationController\", \
         \"StatefulSet\""
    );
}

#[test]
fn pods_of_a_list_leave_other_kinds_aside() {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}},
        workload("apps/v1", "Deployment", &json!({"template": template()})),
        {"apiVersion": "v1", "kind": "ConfigMap"},
    ]});
    let found = pods(&list, Options::default());
    assert!(matches!(&found[0], Item::Skipped { kind } if kind == "Service"));
    assert!(matches!(&found[1], Item::Read(parsed) if &*parsed.value.meta.name == "web-pod"));
    assert!(matches!(&found[2], Item::Skipped { kind } if kind == "ConfigMap"));
}
