//! What the cache holds, as text for `diff` and eyes: the same view gives the same bytes.
//!
//! Everything is sorted by name. Nothing is shown that changes by itself (ages, times to live), but when a reservation ends.
//! Nodes are written some at a time, while the client reads, so that a large cluster needs no large buffer.

use std::fmt::Write as _;

use crate::cluster::Ordinal;
use crate::cluster::PodState;
use crate::cluster::readiness::Ready;
use crate::cluster::reservation::{Basis, Reservation};
use crate::model::{Pod, Str};
use crate::service::inspect::{AmountMap, amounts};
use crate::service::measure::Picture;

/// Nodes written at a time: with their pods some hundred microseconds of an async thread.
const NODES_AT_A_TIME: usize = 16;
/// Pods written at a time, of those that are on no node.
const PODS_AT_A_TIME: usize = 512;

/// The text, in chunks.
pub(super) struct Dump {
    picture: Picture,
    /// By name.
    nodes: Vec<Ordinal>,
    at: Place,
}

enum Place {
    Head,
    Nodes(usize),
    Elsewhere(usize),
    End,
}

impl Dump {
    pub(super) fn new(picture: Picture) -> Self {
        let mut rows: Vec<_> = picture.view.nodes().map(|row| (row.name().clone(), row.ordinal())).collect();
        rows.sort();
        let nodes = rows.into_iter().map(|(_, ordinal)| ordinal).collect();
        Self { picture, nodes, at: Place::Head }
    }

    fn head(&self) -> String {
        let Picture { view, reservations, info, ready, profiles, objects, elsewhere } = &self.picture;
        let ready = match ready {
            Ready::Files => "yes, from files".to_owned(),
            Ready::Snapshots => "yes, from snapshots".to_owned(),
            Ready::Manual => "yes, fed by hand".to_owned(),
            Ready::Waiting { kinds } if kinds.is_empty() => "no, waits for a node".to_owned(),
            Ready::Waiting { kinds } => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
                format!("no, waits for the snapshot of {}", names.join(", "))
            }
        };
        let mut text = String::new();
        let mut line = |name: &str, value: &str| {
            let _ = writeln!(text, "{name:<14}{value}");
        };
        line("revision", &view.revision().to_string());
        line("incarnation", &info.incarnation);
        line("ready", &ready);
        line("profiles", &profiles.iter().map(|name| plain(name)).collect::<Vec<_>>().join(" "));
        line(
            "objects",
            &objects.iter().map(|(kind, n)| format!("{}={n}", kind.as_str())).collect::<Vec<_>>().join(" "),
        );
        line("nodes", &view.node_count().to_string());
        line("pods", &format!("{} on nodes, {} elsewhere", view.pod_count(), elsewhere.len()));
        line("kept counts", &view.kept_keys().to_string());
        let _ = writeln!(text, "\nsources ({})", info.sources.len());
        for (name, source) in &info.sources {
            let name = if name.is_empty() { "(without hello)".to_owned() } else { plain(name) };
            let complete: Vec<&str> = source.complete.iter().map(|kind| kind.as_str()).collect();
            let (epoch, streams) = (source.epoch, source.streams);
            let _ = writeln!(text, "  {name} epoch={epoch} streams={streams} complete={}", complete.join(","));
        }
        let mut live: Vec<&Reservation> = reservations.iter().collect();
        live.sort_by_key(|r| key(&r.pod.pod));
        let _ = writeln!(text, "\nreservations ({})", live.len());
        for r in live {
            let basis = match &r.basis {
                Basis::Decided { .. } => "decided",
                Basis::Assumed => "assumed",
                Basis::Held { .. } => "held",
            };
            let (pod, node, id, ends) = (identity(&r.pod.pod), plain(r.node()), plain(&r.id), r.expires.0);
            let _ = writeln!(text, "  {pod} node={node} {basis} id={id} ends_unix_micros={ends}");
        }
        let _ = writeln!(text, "\nnodes ({})", self.nodes.len());
        text
    }

    fn some_nodes(&self, from: usize) -> String {
        let mut text = String::new();
        let view = &self.picture.view;
        let rows = self.nodes.iter().skip(from).take(NODES_AT_A_TIME).filter_map(|ordinal| view.node(*ordinal));
        for row in rows {
            let (allocatable, requested) = amounts(&row);
            let _ = writeln!(text, "  {}", plain(row.name()));
            let _ = writeln!(text, "    allocatable{}", list(&allocatable));
            let _ = writeln!(text, "    requested{}", list(&requested));
            let mut pods: Vec<&Pod> = row.pods().iter().map(|info| &*info.pod).collect();
            pods.sort_by_key(|pod| key(pod));
            for pod in pods {
                let reservations = &self.picture.reservations;
                let is_hold = reservations.of_pod(&pod.meta.uid).is_some_and(|r| matches!(r.basis, Basis::Held { .. }));
                let what = if is_hold { "hold" } else { "pod" };
                let state = PodState::of(pod, view, reservations).as_str();
                let _ = writeln!(text, "    {what} {} {state}", identity(pod));
            }
        }
        text
    }

    fn some_elsewhere(&self, from: usize) -> String {
        let all = &self.picture.elsewhere;
        let mut text = if from == 0 { format!("\npods elsewhere ({})\n", all.len()) } else { String::new() };
        for entry in all.iter().skip(from).take(PODS_AT_A_TIME) {
            let _ = write!(text, "  {} {}", identity(&entry.pod), entry.state.as_str());
            if !entry.node.is_empty() {
                let _ = write!(text, " node={}", plain(&entry.node));
            }
            text.push('\n');
        }
        text
    }
}

impl Iterator for Dump {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text;
        (text, self.at) = match self.at {
            Place::Head => (self.head(), Place::Nodes(0)),
            Place::Nodes(from) if from < self.nodes.len() => {
                (self.some_nodes(from), Place::Nodes(from + NODES_AT_A_TIME))
            }
            Place::Nodes(_) => (self.some_elsewhere(0), Place::Elsewhere(PODS_AT_A_TIME)),
            Place::Elsewhere(from) if from < self.picture.elsewhere.len() => {
                (self.some_elsewhere(from), Place::Elsewhere(from + PODS_AT_A_TIME))
            }
            Place::Elsewhere(_) | Place::End => {
                self.at = Place::End;
                return None;
            }
        };
        Some(text)
    }
}

fn key(pod: &Pod) -> (Str, Str, Str) {
    (pod.meta.namespace.clone(), pod.meta.name.clone(), pod.meta.uid.clone())
}

fn identity(pod: &Pod) -> String {
    format!("{}/{} uid={}", plain(&pod.meta.namespace), plain(&pod.meta.name), plain(&pod.meta.uid))
}

/// Thousandths of cpu, bytes of memory, pieces of anything else.
fn list(amounts: &AmountMap) -> String {
    let unit = |name: &str| if name == "cpu" { "m" } else { "" };
    amounts.iter().map(|(name, n)| format!(" {}={n}{}", plain(name), unit(name))).collect()
}

/// A name as it is, or quoted where it would break a line or a column.
fn plain(name: &str) -> String {
    let is_plain = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"');
    if is_plain { name.to_owned() } else { format!("{name:?}") }
}
