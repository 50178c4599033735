use super::*;
use crate::engine::testing_views::{decision, feasible, fit_message, prepared, refusal, try_decide, view_of};
use crate::model::node::ZONE_LABEL;
use crate::model::node_selector::{NODE_NAME_FIELD, NodeOperator, NodeRequirement, NodeSelectorTerm};
use crate::model::storage::{AccessMode, PvSource, SELECTED_NODE, VolumeMode};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, quantity, selector};
use crate::model::testing_storage::{
    ClaimBuilder, VolumeBuilder, allowed_on, capacity_driver, claim, claim_volume, csi_node, delayed_class,
    immediate_class, storage_capacity, volume,
};
use crate::model::volume::VolumeSource;
use crate::model::{LabelSelector, NodeSelector, Object};

const HOST: &str = crate::model::node::HOSTNAME_LABEL;
const NO_PV: &str = "node(s) didn't find available persistent volumes to bind";

fn user() -> PodBuilder {
    pod("p").volume("v", claim_volume("c"))
}

fn nodes() -> Vec<NodeBuilder> {
    vec![node("n1").zone("a"), node("n2").zone("b")]
}

/// A class without a provisioner and one with, besides these.
fn view(objects: Vec<Object>) -> View {
    let classes = [delayed_class("static", "kubernetes.io/no-provisioner"), delayed_class("dynamic", "csi.example")];
    view_of(nodes(), vec![], classes.map(Object::from).into_iter().chain(objects).collect())
}

fn waiting(name: &str) -> ClaimBuilder {
    claim(name).class("static")
}

fn on_shelf(name: &str) -> VolumeBuilder {
    volume(name).class("static").with(|v| v.volume_mode = VolumeMode::Filesystem)
}

/// `claim=volume`, or `claim=?` for one that is made, of the node that was chosen.
fn bindings(view: &View, pod: PodBuilder) -> Vec<String> {
    let decision = decision(view, pod);
    let text = |b: &VolumeBinding| {
        assert_eq!(Some(&b.node), decision.node());
        format!("{}={}", b.claim.1, b.volume.as_deref().unwrap_or("?"))
    };
    decision.bindings.iter().map(text).collect()
}

fn rejection(view: &View, pod: PodBuilder) -> String {
    prepared(view, pod, NAME, |filter| match filter {
        PreFilter::Reject(rejection) => {
            assert_eq!(rejection.code, Code::UnschedulableAndUnresolvable);
            rejection.message()
        }
        PreFilter::Skip => "skip".to_owned(),
        PreFilter::Error(error) => format!("error: {error}"),
        _ => "filter".to_owned(),
    })
}

// --- before nodes are looked at ---

#[test]
fn pods_without_claims_skip() {
    assert_eq!(rejection(&view(vec![]), pod("p").volume("v", VolumeSource::EmptyDir)), "skip");
}

#[test]
fn claims_that_are_missing_lost_or_being_deleted_reject_the_pod() {
    let message = |claims: Vec<Object>| rejection(&view(claims), user());
    assert_eq!(message(vec![]), "persistentvolumeclaim \"c\" not found");
    assert_eq!(
        message(vec![claim("c").bound_to("pv").with(|c| c.phase = "Lost".into()).build().into()]),
        "persistentvolumeclaim \"c\" bound to non-existent persistentvolume \"pv\""
    );
    let terminating = waiting("c").terminating().build();
    assert_eq!(message(vec![terminating.into()]), "persistentvolumeclaim \"c\" is being deleted");
    assert_eq!(message(vec![waiting("c").namespace("other").build().into()]), "persistentvolumeclaim \"c\" not found");
}

#[test]
fn an_ephemeral_claim_must_exist_and_be_the_pods_own() {
    let ephemeral = || pod("p").volume("v", VolumeSource::Ephemeral);
    assert_eq!(
        rejection(&view(vec![]), ephemeral()),
        "waiting for ephemeral volume controller to create the persistentvolumeclaim \"p-v\""
    );
    let owned_by = |uid: &str| {
        let owner = crate::model::OwnerReference {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: "p".into(),
            uid: uid.into(),
            controller: true,
        };
        view(vec![claim("p-v").class("dynamic").with(|c| c.meta.owners.push(owner)).build().into()])
    };
    let foreign = "PVC default/p-v was not created for pod default/p (pod is not owner)";
    assert_eq!(rejection(&owned_by("uid-default-old-p"), ephemeral()), foreign);
    assert_eq!(rejection(&view(vec![claim("p-v").class("dynamic").build().into()]), ephemeral()), foreign);
    assert_eq!(rejection(&owned_by("uid-default-p"), ephemeral()), "filter");
}

#[test]
fn immediate_claims_must_be_bound_already() {
    let message =
        |claim: ClaimBuilder| rejection(&view(vec![immediate_class("now").into(), claim.build().into()]), user());
    let unbound = "pod has unbound immediate PersistentVolumeClaims";
    assert_eq!(message(claim("c").class("now")), unbound);
    assert_eq!(message(claim("c")), unbound, "no class");
    assert_eq!(message(claim("c").class("gone")), unbound, "unknown class");
    let volume_named = waiting("c").with(|c| c.volume_name = "pv".into());
    assert_eq!(message(volume_named), unbound, "a volume by name is bound by the controller");
    assert_eq!(message(waiting("c")), "filter");
}

#[test]
fn a_class_without_binding_mode_is_an_error() {
    let mut class = delayed_class("unset", "x");
    class.binding_mode = None;
    let view = view(vec![class.into(), claim("c").class("unset").build().into()]);
    let error = try_decide(&view, user()).unwrap_err().to_string();
    let inner = "VolumeBindingMode not set for StorageClass \"unset\"";
    assert_eq!(error, format!("running PreFilter plugin \"VolumeBinding\": {inner}"));
}

// --- bound claims ---

fn bound(pv: VolumeBuilder) -> View {
    view(vec![claim("c").bound_to("pv").build().into(), pv.build().into()])
}

#[test]
fn a_bound_volume_must_reach_the_node() {
    let view = bound(volume("pv").on_nodes(ZONE_LABEL, &["a"]));
    assert_eq!(feasible(&view, user()), ["n1"]);
    let (plugin, code, reasons) = refusal(&view, user(), "n2").unwrap();
    assert_eq!((plugin, code), (NAME, Code::UnschedulableAndUnresolvable));
    assert_eq!(reasons, ["node(s) didn't match PersistentVolume's node affinity"]);
    assert!(bindings(&view, user()).is_empty(), "nothing is left to bind");
}

#[test]
fn a_volumes_affinity_sees_no_node_name() {
    let field = NodeRequirement { key: NODE_NAME_FIELD.into(), op: NodeOperator::In(vec!["n1".into()]) };
    let terms = vec![NodeSelectorTerm { expressions: vec![], fields: vec![field] }];
    let view = bound(volume("pv").with(|v| v.node_affinity = Some(NodeSelector { terms })));
    assert!(feasible(&view, user()).is_empty());
}

#[test]
fn a_volume_of_a_migrated_plugin_is_read_as_csi_where_the_node_says_so() {
    let ebs = PvSource::AwsElasticBlockStore { volume_id: "vol-1".into() };
    let pv = volume("pv").source(ebs).on_nodes(ZONE_LABEL, &["a"]).build();
    let zone = |name: &str, key: &str| node(name).label(key, "a");
    let driver_zone = "topology.ebs.csi.aws.com/zone";
    let migrated = |name: &str| {
        let mut csi_node = csi_node(name, &[]);
        let plugins = "kubernetes.io/gce-pd,kubernetes.io/aws-ebs";
        csi_node.meta.annotations.insert(crate::model::csi_migration::MIGRATED_PLUGINS.into(), plugins.into());
        Object::from(csi_node)
    };
    let nodes = vec![
        zone("old", ZONE_LABEL),
        zone("old-by-driver", driver_zone),
        zone("new", ZONE_LABEL),
        zone("new-by-driver", driver_zone),
    ];
    let objects = vec![claim("c").bound_to("pv").build().into(), pv.into(), migrated("new"), migrated("new-by-driver")];
    assert_eq!(feasible(&view_of(nodes, vec![], objects), user()), ["new-by-driver", "old"]);
}

#[test]
fn reasons_of_bound_and_waiting_claims_are_told_together_in_upstreams_order() {
    let pod = || pod("p").volume("v", VolumeSource::Ephemeral).volume("w", claim_volume("c"));
    let owner = |c: &mut crate::model::storage::PersistentVolumeClaim| {
        c.meta.owners.push(crate::model::OwnerReference {
            api_version: "v1".into(),
            kind: "Pod".into(),
            name: "p".into(),
            uid: "uid-default-p".into(),
            controller: true,
        });
    };
    let ephemeral = || claim("p-v").bound_to("pv").with(owner).build();
    // Of an ephemeral claim, since VolumeZone doesn't look at those and so doesn't speak first.
    let missing = view(vec![ephemeral().into(), waiting("c").build().into()]);
    let gone = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)";
    assert_eq!(refusal(&missing, pod(), "n1").unwrap().2, [NO_PV, gone]);
    let elsewhere = volume("pv").on_nodes(ZONE_LABEL, &["x"]).build();
    let unreachable = view(vec![ephemeral().into(), elsewhere.into(), waiting("c").build().into()]);
    let affinity = "node(s) didn't match PersistentVolume's node affinity";
    assert_eq!(refusal(&unreachable, pod(), "n1").unwrap().2, [affinity, NO_PV]);
    assert_eq!(fit_message(&unreachable, pod()), format!("0/2 nodes are available: 2 {NO_PV}, 2 {affinity}."));
}

// --- existing volumes for waiting claims ---

fn chosen(claim: ClaimBuilder, volumes: Vec<VolumeBuilder>) -> String {
    let volumes = volumes.into_iter().map(|v| Object::from(v.build()));
    bindings(&view(volumes.chain([claim.build().into()]).collect()), user()).join(" ")
}

#[test]
fn the_smallest_volume_that_is_big_enough_is_chosen() {
    let shelf = || vec![on_shelf("big").size("20Gi"), on_shelf("right").size("5Gi"), on_shelf("small").size("1Gi")];
    assert_eq!(chosen(waiting("c").size("2Gi"), shelf()), "c=right");
    assert_eq!(chosen(waiting("c").size("5Gi"), shelf()), "c=right", "an exact fit");
    assert_eq!(chosen(waiting("c").size("21Gi"), shelf()), "");
    assert_eq!(chosen(waiting("c"), vec![on_shelf("b"), on_shelf("a")]), "c=a", "equal ones by name");
}

#[test]
fn a_volume_must_suit_the_claim_in_every_respect() {
    let refused = |claim: ClaimBuilder, volume: VolumeBuilder| chosen(claim, vec![volume]).is_empty();
    assert!(!refused(waiting("c"), on_shelf("pv")));
    assert!(refused(waiting("c"), on_shelf("pv").class("other")));
    assert!(refused(waiting("c"), on_shelf("pv").class("")));
    assert!(refused(waiting("c"), on_shelf("pv").with(|v| v.phase = "Released".into())));
    assert!(refused(waiting("c"), on_shelf("pv").claimed_by("other")));
    assert!(refused(waiting("c"), on_shelf("pv").with(|v| v.volume_mode = VolumeMode::Block)));
    assert!(refused(waiting("c"), on_shelf("pv").with(|v| v.attributes_class = "gold".into())));
    assert!(refused(waiting("c"), on_shelf("pv").terminating()));
    assert!(refused(waiting("c").access(AccessMode::ReadWriteMany), on_shelf("pv")));
    let both = |v: &mut PersistentVolume| v.access_modes.push(AccessMode::ReadWriteMany);
    assert!(!refused(waiting("c").access(AccessMode::ReadWriteMany), on_shelf("pv").with(both)));
    assert!(refused(waiting("c").selector(&[("tier", "fast")]), on_shelf("pv")));
    assert!(!refused(waiting("c").selector(&[("tier", "fast")]), on_shelf("pv").label("tier", "fast")));
}

#[test]
fn a_local_volume_brings_the_pod_to_its_node() {
    let local = |name: &str, host: &str| on_shelf(name).on_nodes(HOST, &[host]);
    let all = |claim: ClaimBuilder| {
        let local = [local("small", "n2").size("5Gi"), local("big", "n1").size("9Gi")];
        view(local.map(|v| v.build().into()).into_iter().chain([claim.build().into()]).collect())
    };
    assert_eq!(feasible(&all(waiting("c")), user()), ["n1", "n2"]);
    let view = all(waiting("c").size("6Gi"));
    assert_eq!((feasible(&view, user()), bindings(&view, user())), (vec!["n1".to_owned()], vec!["c=big".to_owned()]));
    let (plugin, code, reasons) = refusal(&view, user(), "n2").unwrap();
    assert_eq!((plugin, code, reasons), (NAME, Code::UnschedulableAndUnresolvable, vec![NO_PV.to_owned()]));
}

#[test]
fn a_volume_reserved_for_the_claim_wins_outright() {
    let reserved = || on_shelf("mine").size("50Gi").claimed_by("c");
    let shelf = |mine: VolumeBuilder| vec![mine, on_shelf("small").size("1Gi")];
    assert_eq!(chosen(waiting("c"), shelf(reserved())), "c=mine");
    // Neither its phase, nor its access modes, nor the claim's selector matter.
    let pending = reserved().with(|v| v.phase = "Pending".into());
    assert_eq!(chosen(waiting("c").access(AccessMode::ReadWriteMany), shelf(pending)), "c=mine");
    assert_eq!(chosen(waiting("c").selector(&[("a", "b")]), vec![reserved()]), "c=mine");
    // Size, mode, attributes class and class do, and then others are looked at.
    assert_eq!(chosen(waiting("c"), shelf(reserved().size("1Mi"))), "c=small");
    assert_eq!(chosen(waiting("c"), shelf(reserved().with(|v| v.volume_mode = VolumeMode::Block))), "c=small");
    assert_eq!(chosen(waiting("c"), shelf(reserved().with(|v| v.attributes_class = "gold".into()))), "c=small");
    assert_eq!(chosen(waiting("c"), shelf(reserved().class("other"))), "c=small");
    // It is the claim's by uid, where it names one.
    let of_uid = |uid: &str| reserved().with(|v| v.claim_ref.as_mut().unwrap().uid = uid.into());
    assert_eq!(chosen(waiting("c"), shelf(of_uid("uid-default-c"))), "c=mine");
    assert_eq!(chosen(waiting("c"), shelf(of_uid("uid-of-an-older-c"))), "c=small");
}

#[test]
fn where_the_reserved_volume_does_not_reach_no_other_is_taken() {
    let objects = vec![
        on_shelf("mine").claimed_by("c").on_nodes(ZONE_LABEL, &["b"]).build().into(),
        on_shelf("free").build().into(),
        waiting("c").build().into(),
    ];
    assert_eq!(feasible(&view(objects), user()), ["n2"]);
}

#[test]
fn claims_choose_by_size_the_smallest_first() {
    let pod = || pod("p").volume("v", claim_volume("large")).volume("w", claim_volume("small"));
    let volumes = [on_shelf("five").size("5Gi"), on_shelf("six").size("6Gi")].map(|v| Object::from(v.build()));
    let claims = [waiting("large").size("5Gi"), waiting("small").size("1Gi")].map(|c| Object::from(c.build()));
    let view = view(volumes.into_iter().chain(claims).collect());
    assert_eq!(bindings(&view, pod()), ["large=six", "small=five"]);
    assert!(feasible(&view, pod().volume("x", claim_volume("small"))).is_empty(), "a volume is chosen once");
}

#[test]
fn a_claim_named_twice_is_matched_twice_and_bound_once() {
    let twice = || user().volume("again", claim_volume("c"));
    let with = |volumes: &[&str]| {
        let volumes = volumes.iter().map(|name| Object::from(on_shelf(name).build()));
        view(volumes.chain([waiting("c").build().into()]).collect())
    };
    assert!(feasible(&with(&["a"]), twice()).is_empty());
    assert_eq!(bindings(&with(&["a", "b"]), twice()), ["c=a"]);
}

// --- provisioning ---

fn dynamic(class: crate::model::storage::StorageClass, more: Vec<Object>) -> View {
    let claim = claim("c").class("made").size("5Gi").build();
    view([class.into(), claim.into()].into_iter().chain(more).collect())
}

#[test]
fn a_claim_without_a_volume_is_provisioned_if_its_class_can() {
    let class = |provisioner: &str| dynamic(delayed_class("made", provisioner), vec![]);
    assert_eq!(bindings(&class("csi.example"), user()), ["c=?"]);
    for provisioner in ["", "kubernetes.io/no-provisioner"] {
        assert_eq!(refusal(&class(provisioner), user(), "n1").unwrap().2, [NO_PV], "{provisioner}");
    }
    let shelf = dynamic(delayed_class("made", "csi.example"), vec![volume("pv").class("made").build().into()]);
    assert_eq!(bindings(&shelf, user()), ["c=pv"], "an existing volume comes first");
}

#[test]
fn allowed_topologies_are_alternatives_and_an_empty_one_allows_nothing() {
    let class = || delayed_class("made", "csi.example");
    assert_eq!(feasible(&dynamic(allowed_on(class(), ZONE_LABEL, &["a"]), vec![]), user()), ["n1"]);
    let two = allowed_on(allowed_on(class(), ZONE_LABEL, &["a"]), HOST, &["n2"]);
    assert_eq!(feasible(&dynamic(two, vec![]), user()), ["n1", "n2"]);
    let mut empty = class();
    empty.allowed_topologies.push(NodeSelectorTerm::default());
    assert_eq!(refusal(&dynamic(empty, vec![]), user(), "n1").unwrap().2, [NO_PV]);
}

#[test]
fn capacity_counts_only_for_drivers_that_ask_for_it() {
    let class = || delayed_class("made", "csi.example");
    let zone_a = || selector(&[(ZONE_LABEL, "a")]);
    let with = |capacities: Vec<crate::model::storage::CsiStorageCapacity>| {
        let driver = Object::from(capacity_driver("csi.example"));
        dynamic(class(), [driver].into_iter().chain(capacities.into_iter().map(Object::from)).collect())
    };
    let places = |capacity| feasible(&with(vec![capacity]), user());
    let mut silent = capacity_driver("csi.example");
    silent.storage_capacity = false;
    assert_eq!(feasible(&dynamic(class(), vec![silent.into()]), user()).len(), 2);
    assert_eq!(refusal(&with(vec![]), user(), "n1").unwrap().2, ["node(s) did not have enough free storage"]);
    assert_eq!(places(storage_capacity("s", "made", zone_a(), "5Gi")), ["n1"]);
    assert!(places(storage_capacity("s", "made", zone_a(), "4Gi")).is_empty());
    assert!(places(storage_capacity("s", "other", zone_a(), "50Gi")).is_empty());
    assert!(places(storage_capacity("s", "made", LabelSelector::Nothing, "50Gi")).is_empty());
    assert_eq!(places(storage_capacity("s", "made", LabelSelector::everything(), "50Gi")).len(), 2);
    // The largest single volume, where told, and not the sum of what is free.
    let mut pieces = storage_capacity("s", "made", zone_a(), "50Gi");
    pieces.maximum_volume_size = Some(quantity("4Gi"));
    assert!(places(pieces).is_empty());
    let mut unknown = storage_capacity("s", "made", zone_a(), "50Gi");
    unknown.capacity = None;
    assert!(places(unknown).is_empty());
    let two = vec![storage_capacity("s", "made", zone_a(), "1Gi"), storage_capacity("t", "made", zone_a(), "9Gi")];
    assert_eq!(feasible(&with(two), user()), ["n1"], "some object suffices");
}

#[test]
fn a_selected_node_is_the_only_one_and_no_existing_volume_is_looked_for() {
    let claim = |node: &str| claim("c").class("dynamic").annotation(SELECTED_NODE, node).build();
    let shelf = || volume("pv").class("dynamic").build();
    let selected = view(vec![claim("n2").into(), shelf().into()]);
    assert_eq!(
        (feasible(&selected, user()), bindings(&selected, user())),
        (vec!["n2".to_owned()], vec!["c=?".to_owned()])
    );
    assert_eq!(refusal(&selected, user(), "n1").unwrap().2, [NO_PV]);
}
