//! ImageLocality (spec 5.6): prefers nodes that already have the pod's images, the more so the larger they are and the
//! more nodes have them.

use rustc_hash::FxHashMap;

use crate::cluster::NodeRow;
use crate::engine::cost::{Share, Sizes, units};
use crate::engine::plugin::{Cycle, MAX_SCORE, NodeScore, Plugin, PreScore, ScorePlugin};
use crate::model::Pod;
use crate::model::volume::VolumeSource;

const MIB: i64 = 1024 * 1024;
/// Sums below this score nothing.
const MIN_THRESHOLD: i64 = 23 * MIB;
/// Sums above this, for each container, score the most.
const MAX_THRESHOLD_PER_CONTAINER: i64 = 1000 * MIB;

#[derive(Debug)]
pub struct ImageLocality;

impl Plugin for ImageLocality {
    fn name(&self) -> &'static str {
        "ImageLocality"
    }

    fn score(&self) -> Option<&dyn ScorePlugin> {
        Some(self)
    }

    fn cost(&self, sizes: &Sizes<'_>) -> Share {
        let images = units(images(sizes.pod).count());
        // A text is made for each.
        Share { prepare_score: images.saturating_mul(8), ..Share::a_node(0, 1 + images) }
    }
}

/// An image without a tag means `:latest`. Only that is normalised: `nginx` isn't `registry.example/library/nginx`.
fn normalized(image: &str) -> String {
    let tag_follows_path = match (image.rfind(':'), image.rfind('/')) {
        (Some(colon), Some(slash)) => colon > slash,
        (Some(_), None) => true,
        (None, _) => false,
    };
    if tag_follows_path { image.to_owned() } else { format!("{image}:latest") }
}

fn images(pod: &Pod) -> impl Iterator<Item = &str> {
    let containers = pod.spec.init_containers.iter().chain(&pod.spec.containers).map(|c| &*c.image);
    let volumes = pod.spec.volumes.iter().filter_map(|v| match &v.source {
        VolumeSource::Image { reference } => Some(&**reference),
        _ => None,
    });
    containers.chain(volumes)
}

impl ScorePlugin for ImageLocality {
    fn prepare<'a>(&'a self, cycle: &Cycle<'a>, _feasible: &[NodeRow<'a>]) -> PreScore<'a> {
        let pod = cycle.pod.pod;
        let nodes = cycle.view.node_count();
        let mut worth: FxHashMap<String, (i64, i64)> = FxHashMap::default();
        for image in images(pod) {
            let name = normalized(image);
            if let Some((size, having)) = cycle.view.images().get(&name) {
                worth.entry(name).or_insert((scaled(size, having, nodes), 0)).1 += 1;
            }
        }
        if worth.is_empty() {
            // No node has any of the images: 0 everywhere.
            return PreScore::Skip;
        }
        let containers = pod.spec.init_containers.len() + pod.spec.containers.len();
        let containers = i64::try_from(containers).unwrap_or(i64::MAX);
        PreScore::Score(Box::new(Score {
            worth: worth.into_iter().map(|(name, (size, times))| (name, size.saturating_mul(times))).collect(),
            max_threshold: MAX_THRESHOLD_PER_CONTAINER.saturating_mul(containers),
        }))
    }
}

/// The size, in proportion to how many nodes have the image.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn scaled(size: i64, having: usize, nodes: usize) -> i64 {
    (size as f64 * (having as f64 / nodes as f64)) as i64
}

struct Score {
    /// What having each image is worth, in bytes.
    worth: Vec<(String, i64)>,
    max_threshold: i64,
}

impl NodeScore for Score {
    fn score(&self, node: &NodeRow<'_>) -> i64 {
        let here = self.worth.iter().filter(|(name, _)| node.fixed().has_image(name)).map(|(_, worth)| *worth);
        // Sizes are what nodes report, also negative ones: added up exactly, so that their order doesn't matter.
        let sum = here.map(i128::from).sum::<i128>();
        let sum = i64::try_from(sum).unwrap_or(if sum > 0 { i64::MAX } else { 0 });
        // A pod without containers can't exist; it would have no span to scale to.
        if sum <= MIN_THRESHOLD || self.max_threshold <= MIN_THRESHOLD {
            return 0;
        }
        MAX_SCORE * (sum.min(self.max_threshold) - MIN_THRESHOLD) / (self.max_threshold - MIN_THRESHOLD)
    }
}

#[cfg(test)]
#[path = "image_locality_tests.rs"]
mod tests;
