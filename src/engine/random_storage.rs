//! Random storage objects and volumes for property tests, as [`super::random_cluster`] has nodes and pods.

use super::random_cluster::Dice;
use crate::model::node::{HOSTNAME_LABEL, ZONE_LABEL};
use crate::model::storage::{AccessMode, PvSource, SELECTED_NODE};
use crate::model::testing::selector;
use crate::model::testing_storage::{
    VolumeBuilder, allowed_on, attachment, capacity_driver, claim, claim_volume, csi_node, delayed_class,
    immediate_class, storage_capacity, volume,
};
use crate::model::volume::VolumeSource;
use crate::model::{Object, Str};

const DRIVER: &str = "csi.example";
const EBS: &str = "ebs.csi.aws.com";
const CLASSES: [&str; 3] = ["shelf", "made", "now"];
/// Few, so that claims, volumes and pods find each other.
const NAMES: usize = 4;
const NODES: usize = 10;

fn name(dice: &mut Dice, prefix: &str) -> String {
    format!("{prefix}{}", dice.below(NAMES))
}

fn random_volume_object(dice: &mut Dice) -> VolumeBuilder {
    let mut pv = volume(&name(dice, "pv")).class(dice.pick(&CLASSES)).size(dice.pick(&["1Gi", "2Gi", "5Gi"]));
    pv = match dice.below(4) {
        0 => pv.source(PvSource::AwsElasticBlockStore { volume_id: name(dice, "vol-").into() }),
        1 => pv,
        _ => pv.csi(DRIVER, &name(dice, "h")),
    };
    pv = match dice.below(4) {
        0 => pv.on_nodes(ZONE_LABEL, &[dice.pick(&["a", "b"]), "c"]),
        1 => pv.on_nodes(HOSTNAME_LABEL, &[&format!("n{}", dice.below(NODES))]),
        2 => pv.label(ZONE_LABEL, dice.pick(&["a", "b", "a__b"])),
        _ => pv,
    };
    if dice.one_in(3) {
        pv = pv.claimed_by(&name(dice, "c"));
    }
    if dice.one_in(3) { pv.with(|v| v.access_modes.push(AccessMode::ReadWriteMany)) } else { pv }
}

/// Claims are mostly such that some pod can use them.
pub(crate) fn random_storage_object(dice: &mut Dice, namespace: &str) -> Object {
    match dice.below(12) {
        0..=3 => {
            let modes = [AccessMode::ReadWriteOnce, AccessMode::ReadWriteMany, AccessMode::ReadWriteOncePod];
            let claim = claim(&name(dice, "c")).namespace(namespace).access(dice.pick(&modes));
            let claim = claim.size(dice.pick(&["1Gi", "2Gi", "3Gi"])).class(dice.pick(&CLASSES));
            match dice.below(6) {
                0 | 1 => claim.bound_to(&name(dice, "pv")).build().into(),
                2 => claim.annotation(SELECTED_NODE, &format!("n{}", dice.below(NODES))).build().into(),
                _ => claim.build().into(),
            }
        }
        4..=6 => random_volume_object(dice).build().into(),
        7 => match dice.below(4) {
            0 => immediate_class("now").into(),
            1 => delayed_class("shelf", "kubernetes.io/no-provisioner").into(),
            2 => allowed_on(delayed_class("made", DRIVER), ZONE_LABEL, &["a", "b"]).into(),
            _ => delayed_class("made", "kubernetes.io/aws-ebs").into(),
        },
        8 => {
            let limit = dice.pick(&[1, 2, 4]);
            csi_node(&format!("n{}", dice.below(NODES)), &[(DRIVER, limit), (EBS, limit)]).into()
        }
        9 => {
            let node = format!("n{}", dice.below(NODES));
            attachment(&name(dice, "va"), DRIVER, &node, &name(dice, "pv")).into()
        }
        10 => {
            let nodes = selector(&[(ZONE_LABEL, dice.pick(&["a", "b", "c"]))]);
            storage_capacity(&name(dice, "s"), "made", nodes, dice.pick(&["1Gi", "5Gi"])).into()
        }
        _ => capacity_driver(DRIVER).into(),
    }
}

/// A volume of a pod.
pub(crate) fn random_volume(dice: &mut Dice) -> VolumeSource {
    let read_only = dice.one_in(2);
    let id: Str = name(dice, "vol-").into();
    match dice.below(8) {
        0 => VolumeSource::GcePersistentDisk { pd_name: id, read_only },
        1 => VolumeSource::AwsElasticBlockStore { volume_id: id, read_only },
        2 => VolumeSource::EmptyDir,
        _ => claim_volume(&name(dice, "c")),
    }
}
