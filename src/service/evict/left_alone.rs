//! What was left alone, counted: a row for each strategy and reason, with some of the pods.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::evict::evictor::Protection;
use crate::evict::outcome::{LeftAlone, LeftAlonePod};
use crate::evict::policy::PluginName;
use crate::model::{Pod, Str};

/// Pods that a strategy left alone for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftAloneCount {
    pub strategy: PluginName,
    pub profile: Str,
    /// [`LeftAlone::kind`].
    pub kind: &'static str,
    /// What tells rows of a kind apart; empty for kinds without.
    pub detail: String,
    pub pods: usize,
    /// How many pods each protection speaks for, most first. A pod may have several.
    pub protections: Vec<(&'static str, usize)>,
    /// The first by namespace, name and uid.
    pub examples: Vec<Example>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    pub pod: Arc<Pod>,
    pub node: Str,
    pub message: String,
}

/// Counts pods, each once a row however often the strategy came by it; most pods first, then by strategy, profile, kind and
/// detail.
pub fn count_left_alone(left_alone: &[LeftAlonePod], max_examples: usize) -> Vec<LeftAloneCount> {
    let mut rows: BTreeMap<(PluginName, &Str, &'static str, String), BTreeMap<_, &LeftAlonePod>> = BTreeMap::new();
    for left in left_alone {
        let meta = &left.pod.meta;
        let pods = rows.entry((left.strategy, &left.profile, left.why.kind(), detail(&left.why))).or_default();
        pods.entry((&meta.namespace, &meta.name, &meta.uid)).or_insert(left);
    }
    let mut counts: Vec<LeftAloneCount> = rows
        .into_iter()
        .map(|((strategy, profile, kind, detail), pods)| {
            let example = |left: &&LeftAlonePod| Example {
                pod: left.pod.clone(),
                node: left.node.clone(),
                message: left.why.to_string(),
            };
            LeftAloneCount {
                strategy,
                profile: profile.clone(),
                kind,
                detail,
                pods: pods.len(),
                protections: protections(pods.values().copied()),
                examples: pods.values().take(max_examples).map(example).collect(),
            }
        })
        .collect();
    counts.sort_by_key(|count| std::cmp::Reverse(count.pods));
    counts
}

/// What is counted apart within a kind. Never what differs from pod to pod.
fn detail(why: &LeftAlone) -> String {
    match why {
        LeftAlone::Limit(limit) => limit.to_string(),
        LeftAlone::BudgetExhausted(budget) => budget.to_string(),
        LeftAlone::NoLanding { message } => message.to_string(),
        LeftAlone::NoGain { why, .. } => why.to_string(),
        LeftAlone::Undoes { strategy, .. } => strategy.as_str().to_owned(),
        LeftAlone::UnknownProfile(name) => name.to_string(),
        LeftAlone::Unsupported(what) => what.to_string(),
        _ => String::new(),
    }
}

fn protections<'a>(pods: impl Iterator<Item = &'a LeftAlonePod>) -> Vec<(&'static str, usize)> {
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    for left in pods {
        if let LeftAlone::Protected(protections) = &left.why {
            let names: BTreeSet<&'static str> = protections.iter().map(Protection::name).collect();
            names.into_iter().for_each(|name| *counts.entry(name).or_default() += 1);
        }
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, pods)| std::cmp::Reverse(*pods));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::testing::pod;

    fn left(name: &str, strategy: PluginName, why: LeftAlone) -> LeftAlonePod {
        let pod = Arc::new(pod(name).build());
        LeftAlonePod { pod, node: "n1".into(), strategy, profile: "p".into(), why }
    }

    fn no_landing(message: &str) -> LeftAlone {
        LeftAlone::NoLanding { message: message.into() }
    }

    #[test]
    fn rows_are_told_apart_by_strategy_kind_and_the_schedulers_message() {
        let (taints, low) = (PluginName::RemovePodsViolatingNodeTaints, PluginName::LowNodeUtilization);
        let all = [
            left("a", low, no_landing("0/2 nodes are available: 2 Insufficient cpu.")),
            left("b", low, no_landing("0/2 nodes are available: 2 Too many pods.")),
            left("c", low, no_landing("0/2 nodes are available: 2 Too many pods.")),
            left("c", taints, no_landing("0/2 nodes are available: 2 Too many pods.")),
            left("d", low, LeftAlone::ReturnedToSource),
        ];
        let rows: Vec<_> =
            count_left_alone(&all, 5).into_iter().map(|row| (row.strategy, row.kind, row.detail, row.pods)).collect();
        let (full, few) = ("0/2 nodes are available: 2 Too many pods.", "0/2 nodes are available: 2 Insufficient cpu.");
        assert_eq!(
            rows,
            [
                (low, "NO_LANDING", full.to_owned(), 2),
                (low, "NO_LANDING", few.to_owned(), 1),
                (low, "RETURNED_TO_SOURCE", String::new(), 1),
                (taints, "NO_LANDING", full.to_owned(), 1),
            ]
        );
    }

    #[test]
    fn a_pod_counts_once_a_row_and_under_each_of_its_protections() {
        let both = || LeftAlone::Protected(vec![Protection::BarePods, Protection::PodsWithPVC]);
        let strategy = PluginName::PodLifeTime;
        let all = [
            left("b", strategy, LeftAlone::Protected(vec![Protection::PodsWithPVC])),
            left("a", strategy, both()),
            left("a", strategy, both()),
        ];
        let [row] = &count_left_alone(&all, 1)[..] else { panic!("one reason") };
        assert_eq!((row.pods, row.protections.as_slice()), (2, &[("PodsWithPVC", 2), ("BarePods", 1)][..]));
        let names: Vec<_> = row.examples.iter().map(|example| &*example.pod.meta.name).collect();
        assert_eq!(names, ["a"], "the first by name");
    }
}
