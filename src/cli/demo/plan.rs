//! The demo's end: after a round of maintenance, which pods should move to use the nodes that came back?

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use tonic::transport::Channel;

use super::Failure;
use super::maintenance::Maintenance;
use super::report::sha256;
use crate::api::pb;
use crate::api::pb::eviction_service_client::EvictionServiceClient;
use crate::api::pb::suggest_evictions_request::PolicySource;
use crate::cli::evict::{measure_value, pod};
use crate::cli::schedule::trimmed;

/// At most 20 % of everything in use counts as empty, as the nodes that came back are; more than 70 % of processors or memory
/// or 90 % of GPUs as too full.
const POLICY: &str = "
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
maxNoOfPodsToEvictTotal: 200
profiles:
- name: after-maintenance
  pluginConfig:
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 20, memory: 20, berth.dev/gpu-milli: 20}
      targetThresholds: {cpu: 70, memory: 70, berth.dev/gpu-milli: 90}
  plugins:
    balance: {enabled: [LowNodeUtilization]}
";
/// Suggestions that the page shows.
const SHOWN: usize = 5;

/// What was found.
pub(super) struct Planned {
    pub(super) maintenance: Maintenance,
    pub(super) plan: pb::SuggestEvictionsResponse,
    pub(super) seconds: f64,
}

pub(super) async fn ask(channel: &Channel, maintenance: Maintenance) -> Result<Planned, Failure> {
    let request = pb::SuggestEvictionsRequest {
        policy_source: Some(PolicySource::PolicyText(POLICY.to_owned())),
        mode: pb::EvictionMode::Planned.into(),
        ..Default::default()
    };
    let begun = Instant::now();
    let plan = EvictionServiceClient::new(channel.clone()).suggest_evictions(request).await?.into_inner();
    if let Some(failure) = plan.failures.first() {
        return Err(format!("{}: {}", failure.strategy, failure.message).into());
    }
    Ok(Planned { maintenance, plan, seconds: begun.elapsed().as_secs_f64() })
}

fn node(suggestion: &pb::EvictionSuggestion) -> &str {
    suggestion.landing.as_ref().map_or("", |landing| &landing.node)
}

/// Pods left alone, by the kind of reason, and what was said of the first; most pods first.
fn left_alone(plan: &pb::SuggestEvictionsResponse) -> Vec<(&str, u32, String)> {
    let mut kinds: BTreeMap<&str, (u32, String)> = BTreeMap::new();
    for row in &plan.left_alone {
        let (pods, example) = kinds.entry(&row.kind).or_default();
        *pods += row.pods;
        if let Some(first) = row.examples.first().filter(|_| example.is_empty()) {
            *example = format!("{}: {}", pod(first.pod.as_ref()), first.message);
        }
    }
    let mut kinds: Vec<_> = kinds.into_iter().map(|(kind, (pods, example))| (kind, pods, example)).collect();
    kinds.sort_by_key(|(kind, pods, _)| (std::cmp::Reverse(*pods), *kind));
    kinds
}

impl Planned {
    pub(super) fn json(&self) -> serde_json::Value {
        let Maintenance { nodes, evicted, waited, waiting } = self.maintenance;
        let moves = self.plan.suggestions.iter();
        // In their order: a plan is a sequence.
        let lines = moves.map(|s| format!("{} {} {}\n", pod(s.pod.as_ref()), s.node, node(s))).collect::<String>();
        let left: serde_json::Map<String, serde_json::Value> =
            left_alone(&self.plan).into_iter().map(|(kind, pods, _)| (kind.to_owned(), pods.into())).collect();
        json!({
            "nodes_returned": nodes,
            "pods_evicted": evicted,
            "pods_waited": waited,
            "pods_waiting": waiting,
            "suggestions": self.plan.suggestions.len(),
            "suggestions_sha256": sha256(&lines),
            "measures": self.plan.measures.iter().map(measure_value).collect::<Vec<_>>(),
            "left_alone": left,
            "decisions": self.plan.decisions,
            "ms": (self.seconds * 1e3).round(),
        })
    }

    pub(super) fn write(&self, page: &mut String) -> std::fmt::Result {
        let Maintenance { nodes, evicted, waited, waiting } = self.maintenance;
        writeln!(page, "\nThen {nodes} nodes were cordoned, emptied and came back")?;
        write!(page, "  {evicted:>6} pods were evicted and placed anew, {waited} of them once the nodes were back")?;
        writeln!(page, "{}", if waiting > 0 { format!("; {waiting} wait") } else { String::new() })?;
        let suggestions = &self.plan.suggestions;
        writeln!(page, "\nWhich pods should move now? LowNodeUtilization, planned in {:.2} s", self.seconds)?;
        writeln!(page, "  {:>6} pods, each with the node that it would get; nothing was evicted", suggestions.len())?;
        for suggestion in suggestions.iter().take(SHOWN) {
            let name = suggestion.pod.as_ref().map_or("", |pod| &pod.name);
            writeln!(page, "         {name}  {} -> {}  {}", suggestion.node, node(suggestion), suggestion.reason)?;
        }
        if suggestions.len() > SHOWN {
            writeln!(page, "         and {} more", suggestions.len() - SHOWN)?;
        }
        for gain in self.plan.measures.iter().filter_map(|measure| measure.gain.as_ref()) {
            writeln!(page, "  {}: {} before, {} with the plan carried out", gain.metric, gain.before, gain.after)?;
        }
        let left = left_alone(&self.plan);
        if !left.is_empty() {
            let mut table = Table::new();
            table.load_style(presets::NOTHING).set_header(["  LEFT ALONE", "WHY", "EXAMPLE"]);
            for (kind, pods, example) in left {
                table.add_row([pods.to_string(), kind.to_owned(), example]);
            }
            if let Some(column) = table.column_mut(0) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            writeln!(page, "{}", trimmed(&table))?;
        }
        Ok(())
    }
}
