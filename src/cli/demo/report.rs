//! What the demo says: one JSON object, or a page for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use sha2::{Digest, Sha256};

use super::plan::Planned;
use crate::api::pb;

/// Everything that was measured.
pub(super) struct Report {
    pub(super) address: String,
    pub(super) nodes: usize,
    pub(super) pods: usize,
    /// Pod and node, for each placed pod.
    pub(super) placements: Vec<(String, String)>,
    /// Pod and refusal, in the order asked.
    pub(super) refusals: Vec<(String, pb::ScheduleResponse)>,
    pub(super) feed_seconds: f64,
    pub(super) schedule_seconds: f64,
    /// Sorted.
    pub(super) unary_micros: Vec<u64>,
    pub(super) unary_placed: usize,
    pub(super) before: Vec<pb::ResourceTotal>,
    pub(super) after: Vec<pb::ResourceTotal>,
    pub(super) revision: u64,
    pub(super) planned: Planned,
}

/// In hexadecimal digits.
pub(super) fn sha256(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Report {
    /// SHA-256 over the sorted lines `pod node`: two runs that place alike have the same.
    fn placements_sha256(&self) -> String {
        let mut lines: Vec<String> = self.placements.iter().map(|(pod, node)| format!("{pod} {node}\n")).collect();
        lines.sort();
        sha256(&lines.concat())
    }

    #[allow(clippy::cast_precision_loss)]
    fn decisions_per_second(&self) -> f64 {
        self.pods as f64 / self.schedule_seconds
    }

    /// The smallest time that `percent` of the calls didn't exceed.
    fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.unary_micros.len() * percent).div_ceil(100).max(1);
        self.unary_micros.get(rank - 1).copied().unwrap_or(0)
    }

    pub(super) fn json(&self) -> serde_json::Value {
        json!({
            "nodes": self.nodes,
            "pods": self.pods,
            "placed": self.placements.len(),
            "unplaced": self.refusals.len(),
            "placements_sha256": self.placements_sha256(),
            "stream_decisions_per_second": self.decisions_per_second().round(),
            "unary_p50_us": self.percentile(50),
            "unary_p99_us": self.percentile(99),
            "revision": self.revision,
            "plan": self.planned.json(),
        })
    }

    pub(super) fn text(&self) -> String {
        let mut page = String::new();
        // Writing to a String can't fail.
        let _ = self.write(&mut page);
        page
    }

    fn write(&self, page: &mut String) -> std::fmt::Result {
        writeln!(page, "Berth served on {}: the openb cluster of a real GPU fleet.\n", self.address)?;
        writeln!(page, "  {:>6} nodes fed in {:.2} s", self.nodes, self.feed_seconds)?;
        writeln!(page, "  {:>6} pods placed", self.placements.len())?;
        writeln!(page, "  {:>6} pods that fit nowhere", self.refusals.len())?;
        for (reason, count) in self.refusals_by_message() {
            writeln!(page, "         {count:>6}  {reason}")?;
        }
        writeln!(
            page,
            "\nUtilisation (requested of allocatable)\n{}",
            super::super::schedule::trimmed(&self.utilisation())
        )?;
        writeln!(page, "\nSpeed, over gRPC on loopback")?;
        writeln!(
            page,
            "  {:>9.0} decisions/s on one ScheduleStream, each holding its room",
            self.decisions_per_second()
        )?;
        writeln!(
            page,
            "  {:>9} us median, {} us p99 of {} unary Schedule calls (dry runs; {} would fit)",
            self.percentile(50),
            self.percentile(99),
            self.unary_micros.len(),
            self.unary_placed
        )?;
        writeln!(page, "\n  placements sha256 {}  revision {}", self.placements_sha256(), self.revision)?;
        if let Some((pod, refusal)) = self.refusals.first() {
            writeln!(page, "\nWhy not? The first pod that did not fit, in full: {pod}\n\n  {}\n", refusal.fit_message)?;
            writeln!(page, "{}", super::super::schedule::reasons_table(refusal))?;
        }
        self.planned.write(page)
    }

    /// Refusals by the kinds of reason in them, without the node counts that differ from pod to pod; most pods first.
    fn refusals_by_message(&self) -> Vec<(String, usize)> {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for (_, refusal) in &self.refusals {
            let mut reasons: Vec<&str> = refusal.reasons.iter().map(|r| r.reason.as_str()).collect();
            reasons.sort_unstable();
            // One text comes twice where some nodes could hold the pod if they were empty and others never could.
            reasons.dedup();
            *counts.entry(reasons.join(", ")).or_default() += 1;
        }
        let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
        counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        counts
    }

    fn utilisation(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([" resource", "before", "after", "", "allocatable"]);
        for total in &self.after {
            let requested = |totals: &[pb::ResourceTotal]| {
                totals.iter().find(|t| t.resource == total.resource).map_or(0, |t| t.requested)
            };
            let (before, after) = (requested(&self.before), requested(&self.after));
            table.add_row([
                format!(" {}", total.resource),
                format!("{:.1} %", percent(before, total.allocatable)),
                format!("{:.1} %", percent(after, total.allocatable)),
                bar(percent(after, total.allocatable)),
                amount(&total.resource, total.allocatable),
            ]);
        }
        for column in [1, 2, 4] {
            if let Some(column) = table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

#[allow(clippy::cast_precision_loss)]
fn percent(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 * 100.0 / whole as f64 }
}

/// Forty characters wide.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn bar(percent: f64) -> String {
    const WIDTH: usize = 40;
    let filled = ((percent / 100.0 * WIDTH as f64).round() as usize).min(WIDTH);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

/// An amount in the unit that people use for the resource.
fn amount(resource: &str, amount: i64) -> String {
    match resource {
        "cpu" => format!("{} cores", amount / 1000),
        "memory" | "ephemeral-storage" => format!("{} GiB", amount >> 30),
        _ => amount.to_string(),
    }
}
