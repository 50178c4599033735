//! A pod that the predicate alone rejects.

use super::*;

#[test]
fn check_node_condition() {
    let refusal = rejects_alone(named("CheckNodeCondition"), scene([reporting("Ready", "Unknown")], []), &pod("p"));
    assert_eq!(refusal, "CheckNodeCondition UU: node(s) were not ready");
}

#[test]
fn check_node_unschedulable() {
    // It is part of every Policy, so that there is none without it to compare with; the node has no taint.
    let profile = predicates(json!([]));
    let verdict = scene([node("n").cordoned()], []).profile(profile).decide(pod("p"));
    assert_eq!(verdict.refusal("n"), "NodeUnschedulable UU: node(s) were unschedulable");
}

#[test]
fn general_predicates() {
    let taken = pod("taken").host_port("", "TCP", 80).on("n");
    let scene = scene([node("n").cpu("1")], [taken]);
    let p = pod("p").cpu("2").host_port("", "TCP", 80).node_selector("disk", "ssd");
    let text = "NodeResourcesFit UU: Insufficient cpu, node(s) didn't have free ports for the requested pod ports, \
                node(s) didn't match Pod's node affinity/selector";
    assert_eq!(rejects_alone(named("GeneralPredicates"), scene, &p), text);
}

#[test]
fn host_name() {
    for name in ["HostName", "PodFitsHost"] {
        let elsewhere = pod("p").with(|p| p.spec.node_name = "elsewhere".into());
        let refusal = rejects_alone(named(name), scene([node("n")], []), &elsewhere);
        assert_eq!(refusal, "NodeName UU: node(s) didn't match the requested node name");
    }
}

#[test]
fn pod_fits_host_ports() {
    for name in ["PodFitsHostPorts", "PodFitsPorts"] {
        let scene = scene([node("n")], [pod("taken").host_port("", "TCP", 80).on("n")]);
        let refusal = rejects_alone(named(name), scene, &pod("p").host_port("", "TCP", 80));
        assert_eq!(refusal, "NodePorts U: node(s) didn't have free ports for the requested pod ports");
    }
}

#[test]
fn match_node_selector() {
    let p = pod("p").node_selector("disk", "ssd");
    let refusal = rejects_alone(named("MatchNodeSelector"), scene([node("n")], []), &p);
    assert_eq!(refusal, "NodeAffinity UU: node(s) didn't match Pod's node affinity/selector");
}

#[test]
fn pod_fits_resources() {
    let scene = scene([node("n").cpu("1")], [pod("big").cpu("1").on("n")]);
    let refusal = rejects_alone(named("PodFitsResources"), scene, &pod("p").cpu("1"));
    assert_eq!(refusal, "NodeResourcesFit U: Insufficient cpu");
}

#[test]
fn no_disk_conflict() {
    let refusal = rejects_alone(named("NoDiskConflict"), in_use(ebs, 1), &pod("p").volume("v", ebs(0)));
    assert_eq!(refusal, "VolumeRestrictions U: node(s) had no available disk");
}

#[test]
fn pod_tolerates_node_taints() {
    let tainted = scene([node("n").taint("k", "v", Effect::NoSchedule)], []);
    let verdict = tainted.clone().profile(predicates(json!([]))).decide(pod("p"));
    assert_eq!(verdict.refusal("n"), "TaintToleration UU: node(s) had untolerated taint(s)");
    let tolerating = pod("p").tolerates("k", None, None);
    assert_eq!(tainted.profile(predicates(json!([]))).decide(tolerating).feasible(), ["n"]);
}

#[test]
fn pod_tolerates_node_no_execute_taints() {
    // PodToleratesNodeTaints is always there and judges the same taints, so that this one shows when it comes first.
    let first = json!([{ "name": "PodToleratesNodeNoExecuteTaints", "order": 1 }]);
    let refusal = |effect| {
        let tainted = scene([node("n").taint("k", "v", effect)], []);
        tainted.profile(predicates(first.clone())).decide(pod("p")).refusal("n")
    };
    let text = "PodToleratesNodeNoExecuteTaints UU: node(s) had untolerated taint(s)";
    assert_eq!(refusal(Effect::NoExecute), text);
    assert_eq!(refusal(Effect::NoSchedule), "TaintToleration UU: node(s) had untolerated taint(s)");
}

#[test]
fn check_node_label_presence() {
    let rule = |presence: bool| {
        let argument = json!({ "labelsPresence": { "labels": ["rack"], "presence": presence } });
        json!({ "name": "Racks", "argument": argument })
    };
    let text = "CheckNodeLabelPresence UU: node(s) didn't have the requested labels";
    assert_eq!(rejects_alone(rule(true), scene([node("n")], []), &pod("p")), text);
    assert_eq!(rejects_alone(rule(false), scene([node("n").label("rack", "a")], []), &pod("p")), text);
}

#[test]
fn check_service_affinity() {
    let rule = json!({ "name": "SameRack", "argument": { "serviceAffinity": { "labels": ["rack"] } } });
    let nodes = [node("n").label("rack", "a"), node("m").label("rack", "b")];
    let scene = scene(nodes, [pod("first").label("app", "web").on("m")]).object(service("s", &[("app", "web")]));
    let refusal = rejects_alone(rule, scene, &pod("p").label("app", "web"));
    assert_eq!(refusal, "CheckServiceAffinity U: node(s) didn't match service affinity");
}

const EXCEEDED: &str = "node(s) exceed max volume count";

#[test]
fn max_ebs_volume_count() {
    let refusal = rejects_alone(named("MaxEBSVolumeCount"), in_use(ebs, 39), &wanting(ebs));
    assert_eq!(refusal, format!("MaxEBSVolumeCount U: {EXCEEDED}"));
    // Where the type was left to its CSI driver, today's plugin counts.
    let migrated = in_use(ebs, 1).object(csi_node("n", &[("ebs.csi.aws.com", 1)]));
    let refusal = rejects_alone(named("MaxEBSVolumeCount"), migrated, &wanting(ebs));
    assert_eq!(refusal, format!("NodeVolumeLimits U: {EXCEEDED}"));
}

#[test]
fn max_ebs_volume_count_is_25_wherever_the_instance_type_has_t3_in_it() {
    let typed = |volumes: usize| {
        let user = (0..volumes).fold(pod("user"), |p, i| p.volume(&format!("v{i}"), ebs(i))).on("n");
        let scene = scene([node("n").label("beta.kubernetes.io/instance-type", "x.t3foo")], [user]);
        scene.profile(predicates(json!([named("MaxEBSVolumeCount")]))).decide(wanting(ebs)).feasible().len()
    };
    assert_eq!((typed(24), typed(25)), (1, 0));
}

#[test]
fn max_gce_pd_volume_count() {
    let refusal = rejects_alone(named("MaxGCEPDVolumeCount"), in_use(gce, 16), &wanting(gce));
    assert_eq!(refusal, format!("MaxGCEPDVolumeCount U: {EXCEEDED}"));
}

#[test]
fn max_azure_disk_volume_count() {
    let refusal = rejects_alone(named("MaxAzureDiskVolumeCount"), in_use(azure, 16), &wanting(azure));
    assert_eq!(refusal, format!("MaxAzureDiskVolumeCount U: {EXCEEDED}"));
}

#[test]
fn max_cinder_volume_count() {
    let refusal = rejects_alone(named("MaxCinderVolumeCount"), in_use(cinder, 256), &wanting(cinder));
    assert_eq!(refusal, format!("MaxCinderVolumeCount U: {EXCEEDED}"));
}

#[test]
fn max_csi_volume_count() {
    for name in ["MaxCSIVolumeCount", "MaxCSIVolumeCountPred"] {
        let scene = ["a", "b"].into_iter().fold(scene([node("n")], []), |scene, name| {
            let pv = format!("pv-{name}");
            let bound = volume(&pv).csi("csi.example", name).claimed_by(name).build();
            scene.object(claim(name).bound_to(&pv).build()).object(bound)
        });
        let mut scene = scene.object(csi_node("n", &[("csi.example", 1)]));
        scene.put(pod("user").volume("v", claim_volume("a")).on("n"));
        let refusal = rejects_alone(named(name), scene, &pod("p").volume("v", claim_volume("b")));
        assert_eq!(refusal, format!("NodeVolumeLimits U: {EXCEEDED}"));
    }
}

#[test]
fn check_volume_binding() {
    let waiting = scene([node("n")], [])
        .object(delayed_class("static", "kubernetes.io/no-provisioner"))
        .object(claim("c").class("static").build());
    let refusal = rejects_alone(named("CheckVolumeBinding"), waiting, &pod("p").volume("v", claim_volume("c")));
    assert_eq!(refusal, "VolumeBinding UU: node(s) didn't find available persistent volumes to bind");
}

#[test]
fn no_volume_zone_conflict() {
    let zone = crate::model::node::ZONE_LABEL;
    let zoned = scene([node("n").zone("a")], [])
        .object(volume("pv").label(zone, "b").claimed_by("c").build())
        .object(claim("c").bound_to("pv").build());
    let refusal = rejects_alone(named("NoVolumeZoneConflict"), zoned, &pod("p").volume("v", claim_volume("c")));
    assert_eq!(refusal, "VolumeZone UU: node(s) had no available volume zone");
}

#[test]
fn check_node_memory_pressure() {
    let pressed = || scene([reporting("MemoryPressure", "True")], []);
    let refusal = rejects_alone(named("CheckNodeMemoryPressure"), pressed(), &pod("p"));
    assert_eq!(refusal, "CheckNodeMemoryPressure UU: node(s) had memory pressure");
    let profile = predicates(json!([named("CheckNodeMemoryPressure")]));
    assert_eq!(pressed().profile(profile).decide(pod("burstable").cpu("1m")).feasible(), ["n"]);
}

#[test]
fn check_node_pid_pressure() {
    let scene = scene([reporting("PIDPressure", "True")], []);
    let refusal = rejects_alone(named("CheckNodePIDPressure"), scene, &pod("p").cpu("1"));
    assert_eq!(refusal, "CheckNodePIDPressure UU: node(s) had pid pressure");
}

#[test]
fn check_node_disk_pressure() {
    let scene = scene([reporting("DiskPressure", "True")], []);
    let refusal = rejects_alone(named("CheckNodeDiskPressure"), scene, &pod("p").cpu("1"));
    assert_eq!(refusal, "CheckNodeDiskPressure UU: node(s) had disk pressure");
}

#[test]
fn even_pods_spread() {
    let scene = scene([node("n").zone("a"), node("m").zone("b")], [pod("one").label("app", "web").on("n")]);
    let zone = crate::model::node::ZONE_LABEL.into();
    let when = WhenUnsatisfiable::DoNotSchedule;
    let spread = TopologySpreadConstraint::new(1, zone, when, selector(&[("app", "web")]));
    let refusal = rejects_alone(named("EvenPodsSpread"), scene, &pod("p").label("app", "web").spread(spread));
    assert_eq!(refusal, "PodTopologySpread U: node(s) didn't match pod topology spread constraints");
}

#[test]
fn match_inter_pod_affinity() {
    let scene = scene([node("n")], [pod("one").label("app", "web").on("n")]);
    let p = pod("p").pod_anti_affinity("kubernetes.io/hostname", selector(&[("app", "web")]));
    let refusal = rejects_alone(named("MatchInterPodAffinity"), scene, &p);
    assert_eq!(refusal, "InterPodAffinity U: node(s) didn't match pod anti-affinity rules");
}
