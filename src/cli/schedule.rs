//! `berth schedule`: where would this pod go, from files or from a running server.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

use super::{Exit, output};
use crate::api::pb::reason_count::Detail;
use crate::api::pb::scheduler_service_client::SchedulerServiceClient;
use crate::api::{client, pb, schedule_response};
use crate::engine::Override;
use crate::manifest::{self, Placed, PodManifest};
use crate::service::schedule::Request;
use crate::service::{ManualClock, Service, profiles::Profiles};

/// Decide where pods go, and say why not
///
/// The pods are those of FILE: Pods, or workloads (Deployment, StatefulSet, Job, ...) of whose template one pod is made.
/// The cluster is that of manifests (`kubectl get nodes,pods -A -o json > cluster.json` works as it is) or of a running
/// server. Each pod is decided by itself and no room is taken, unless --reserve is given.
///
/// Exit codes: 0 every pod was placed, 3 some pod fits nowhere, 2 wrong usage or input, 1 failed.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["cluster", "addr"]))]
pub(super) struct Args {
    /// The pods to place: JSON or YAML, - for standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Manifests of the cluster
    #[arg(long, value_name = "FILE", num_args = 1..)]
    cluster: Vec<PathBuf>,
    /// A running server
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// Scheduler profile; by default the one that the pod's schedulerName names
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Profiles to decide with: a KubeSchedulerConfiguration, JSON or YAML [default: kube-scheduler's default profile]
    #[arg(long, value_name = "FILE", conflicts_with = "addr")]
    scheduler_config: Option<PathBuf>,
    /// Weight of a score plugin, in place of the profile's; may be repeated
    #[arg(long = "weight", value_name = "PLUGIN=N", value_parser = weight)]
    weights: Vec<(String, i32)>,
    /// A plugin that is not to run; may be repeated
    #[arg(long = "disable", value_name = "PLUGIN")]
    disabled: Vec<String>,
    /// Hold the room of placed pods for 60 s (with --cluster: against the pods that follow in the file)
    #[arg(long)]
    reserve: bool,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    Table,
    Json,
    Yaml,
}

/// A pod's name and what became of it.
type Decided = (String, pb::ScheduleResponse);

/// Why there are no decisions.
enum Failure {
    /// What was given is wrong; each line is one mistake.
    Input(Vec<String>),
    /// The server can't be asked, or refuses.
    Remote(String),
}

pub(super) fn run(args: &Args) -> Exit {
    let decided = match decide(args) {
        Ok(decided) => decided,
        Err(Failure::Input(mistakes)) => {
            for mistake in mistakes {
                output::complain(format!("berth schedule: {mistake}"));
            }
            return Exit::Usage;
        }
        Err(Failure::Remote(error)) => {
            output::complain(format!("berth schedule: {error}"));
            return Exit::Failed;
        }
    };
    let text = match args.output {
        Format::Table => page(&decided),
        Format::Json => format!("{:#}", value(&decided)),
        Format::Yaml => match output::yaml(&value(&decided)) {
            Ok(yaml) => yaml,
            Err(error) => {
                output::complain(format!("berth schedule: {error}"));
                return Exit::Failed;
            }
        },
    };
    if !output::line(text) {
        return Exit::Failed;
    }
    let placed = |r: &pb::ScheduleResponse| matches!(r.outcome(), pb::Outcome::Placed | pb::Outcome::AlreadyBound);
    if decided.iter().all(|(_, response)| placed(response)) { Exit::Done } else { Exit::FitsNowhere }
}

fn decide(args: &Args) -> Result<Vec<Decided>, Failure> {
    let contents = manifest::read_pod_manifests(&args.file, manifest::Options::default());
    if !contents.errors.is_empty() {
        return Err(Failure::Input(contents.errors.iter().map(ToString::to_string).collect()));
    }
    if contents.objects.is_empty() {
        return Err(Failure::Input(vec![format!("{}: no pod and no workload in it", args.file.display())]));
    }
    for pod in &contents.objects {
        for warning in pod.warnings.iter().filter(|w| w.path != "metadata.uid") {
            output::complain(format!("berth schedule: warning: {}: {warning}", pod.place));
        }
    }
    match &args.addr {
        None => decide_here(args, contents.objects),
        Some(addr) => ask_server(args, addr, contents.objects),
    }
}

fn decide_here(args: &Args, pods: Vec<Placed<PodManifest>>) -> Result<Vec<Decided>, Failure> {
    // No reservation ends while the command runs, and the same input gives the same output.
    let service = Service::new(Profiles::default(), Arc::new(ManualClock::default()));
    if let Some(file) = &args.scheduler_config {
        let status = service.load_config(file);
        let status = status.map_err(|errors| Failure::Input(errors.iter().map(ToString::to_string).collect()))?;
        for note in &status.notes {
            output::complain(format!("berth schedule: note: {}: {note}", status.file));
        }
    }
    let loaded = service.load_files(&args.cluster);
    let loaded = loaded.map_err(|errors| Failure::Input(errors.iter().map(ToString::to_string).collect()))?;
    if loaded.nodes == 0 {
        output::complain("berth schedule: warning: there is no node in the cluster files");
    }
    let decide = |Placed { value: PodManifest { pod, .. }, warnings, .. }: Placed<PodManifest>| {
        let name = pod.meta.key();
        let overrides = Override {
            weights: args.weights.iter().map(|(plugin, weight)| (plugin.clone(), i64::from(*weight))).collect(),
            disable: args.disabled.iter().cloned().collect(),
            ..Override::default()
        };
        let (profile, dry_run) = (args.profile.clone(), !args.reserve);
        let request = Request { warnings, profile, dry_run, overrides, ..Request::new(pod) };
        let answer = service.schedule(request, &AtomicBool::new(false));
        let answer = answer.map_err(|error| Failure::Input(vec![error.to_string()]))?;
        Ok((name, schedule_response(answer)))
    };
    pods.into_iter().map(decide).collect()
}

fn ask_server(args: &Args, addr: &str, pods: Vec<Placed<PodManifest>>) -> Result<Vec<Decided>, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Remote(error.to_string()))?;
    runtime.block_on(async {
        let channel = client::connect(addr).await.map_err(|error| Failure::Remote(error.to_string()))?;
        let mut client = SchedulerServiceClient::new(channel);
        let mut decided = Vec::with_capacity(pods.len());
        for Placed { value: PodManifest { pod, manifest }, .. } in pods {
            // The manifest goes as it is: the server may know fields that this version drops.
            let source = pb::pod_source::Source::ManifestJson(manifest.to_string().into_bytes());
            let request = pb::ScheduleRequest {
                pod: Some(pb::PodSource { source: Some(source) }),
                profile: args.profile.clone().unwrap_or_default(),
                dry_run: !args.reserve,
                r#override: Some(pb::ProfileOverride {
                    score_weights: args.weights.iter().cloned().collect(),
                    disable: args.disabled.clone(),
                    ..Default::default()
                }),
                ..Default::default()
            };
            let answer = client.schedule(request).await;
            let answer = answer.map_err(|status| Failure::Remote(format!("{addr}: {}", status.message())))?;
            decided.push((pod.meta.key(), answer.into_inner()));
        }
        Ok(decided)
    })
}

/// `ImageLocality=5`.
fn weight(text: &str) -> Result<(String, i32), String> {
    let (plugin, weight) = text.split_once('=').ok_or("expected PLUGIN=N")?;
    let weight = weight.parse().map_err(|_| format!("{weight:?} is no whole number"))?;
    Ok((plugin.to_owned(), weight))
}

fn page(decided: &[Decided]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["POD", "OUTCOME", "NODE", "SCORE", "FEASIBLE"]);
    for (pod, response) in decided {
        let dash = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
        table.add_row([
            pod.clone(),
            outcome(response).to_owned(),
            dash(&response.node),
            response.score.to_string(),
            format!("{}/{}", response.feasible_nodes, response.nodes_evaluated),
        ]);
    }
    let mut page = trimmed(&table);
    for (pod, response) in decided.iter().filter(|(_, r)| !r.fit_message.is_empty()) {
        page.push_str(&format!("\n\n{pod}: {}", response.fit_message));
        if !response.reasons.is_empty() {
            page.push_str(&format!("\n\n{}", reasons_table(response)));
        }
        if let Some(preemption) = &response.preemption {
            page.push_str(&format!("\n\n{}", preemption_text(preemption)));
        }
    }
    page
}

/// Who would have to leave, or why that doesn't help.
fn preemption_text(preemption: &pb::Preemption) -> String {
    let Some(proposal) = &preemption.proposal else { return preemption.message.clone() };
    let name = |victim: &pb::Victim| {
        let pod = victim.pod.clone().unwrap_or_default();
        let budget = if victim.violates_pdb { ", breaks a PodDisruptionBudget" } else { "" };
        format!("{}/{} (priority {}{budget})", pod.namespace, pod.name, victim.priority)
    };
    let victims: Vec<String> = proposal.victims.iter().map(name).collect();
    let candidates = preemption.candidate_count;
    let of = if candidates > 1 { format!(", the best of {candidates} nodes") } else { String::new() };
    format!("It would fit on {}{of}, without {}. Nothing was evicted.", proposal.node, victims.join(", "))
}

/// The same for programs.
fn preemption_value(preemption: &pb::Preemption) -> Value {
    let victim = |victim: &pb::Victim| {
        let pod = victim.pod.clone().unwrap_or_default();
        json!({
            "pod": format!("{}/{}", pod.namespace, pod.name),
            "priority": victim.priority,
            "violatesPdb": victim.violates_pdb,
        })
    };
    let proposal = preemption.proposal.as_ref().map(|candidate| {
        let victims: Vec<Value> = candidate.victims.iter().map(victim).collect();
        json!({ "node": candidate.node, "victims": victims, "pdbViolations": candidate.pdb_violations })
    });
    json!({
        "status": preemption.status().as_str_name().trim_start_matches("PREEMPTION_STATUS_"),
        "message": preemption.message,
        "proposal": proposal,
        "candidateCount": preemption.candidate_count,
    })
}

/// The reasons of a refusal with their numbers, as a table for people.
pub(super) fn reasons_table(response: &pb::ScheduleResponse) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["NODES", "PLUGIN", "REASON", "DETAIL", "EXAMPLE"]);
    for reason in &response.reasons {
        table.add_row([
            reason.nodes.to_string(),
            reason.plugin.clone(),
            reason.reason.clone(),
            detail(reason),
            reason.example_node.clone(),
        ]);
    }
    if let Some(column) = table.column_mut(0) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    trimmed(&table)
}

/// The table without blanks at line ends.
pub(super) fn trimmed(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

fn detail(reason: &pb::ReasonCount) -> String {
    match &reason.detail {
        Some(Detail::InsufficientResource(r)) => {
            let unit = |amount: i64| match r.resource.as_str() {
                "cpu" => format!("{amount}m"),
                "memory" | "ephemeral-storage" => format!("{}Mi", amount.div_euclid(1 << 20)),
                _ => amount.to_string(),
            };
            format!("asks {}, at most {} free", unit(r.requested), unit(r.max_free))
        }
        Some(Detail::UntoleratedTaint(t)) => format!("{}={}:{}", t.key, t.value, t.effect),
        Some(Detail::PortConflict(p)) => format!("{}/{} on {}", p.port, p.protocol, p.host_ip),
        Some(Detail::TopologySpread(t)) => match t.skew {
            Some(skew) => format!("{}: skew {skew}, at most {}", t.topology_key, t.max_skew),
            None => format!("no label {}", t.topology_key),
        },
        Some(Detail::NodeAffinity(_)) | None => String::new(),
    }
}

fn outcome(response: &pb::ScheduleResponse) -> &'static str {
    match response.outcome() {
        pb::Outcome::Placed => "placed",
        pb::Outcome::Unschedulable => "unschedulable",
        pb::Outcome::AlreadyBound => "already-bound",
        pb::Outcome::Gated => "gated",
        pb::Outcome::Unsupported => "unsupported",
        pb::Outcome::Unspecified => "unknown",
    }
}

/// For programs: the fields of ScheduleResponse under their JSON names, those at their default left out.
fn value(decided: &[Decided]) -> Value {
    let decisions: Vec<Value> = decided
        .iter()
        .map(|(pod, r)| {
            let reasons: Vec<Value> = r
                .reasons
                .iter()
                .map(|reason| {
                    json!({
                        "plugin": reason.plugin,
                        "code": reason.code().as_str_name().trim_start_matches("STATUS_CODE_"),
                        "reason": reason.reason,
                        "nodes": reason.nodes,
                        "exampleNode": reason.example_node,
                        "detail": detail(reason),
                    })
                })
                .collect();
            let mut decision = json!({
                "pod": pod,
                "outcome": r.outcome().as_str_name().trim_start_matches("OUTCOME_"),
                "node": r.node,
                "score": r.score,
                "reservationId": r.reservation.as_ref().map_or("", |held| &held.id),
                "fitMessage": r.fit_message,
                "message": r.message,
                "reasons": reasons,
                "unsupported": r.unsupported,
                "nodesEvaluated": r.nodes_evaluated,
                "feasibleNodes": r.feasible_nodes,
                "profile": r.profile,
            });
            if let Some(preemption) = &r.preemption {
                decision["preemption"] = preemption_value(preemption);
            }
            if let Some(fields) = decision.as_object_mut() {
                fields.retain(|_, v| v.as_str() != Some("") && v.as_array().is_none_or(|list| !list.is_empty()));
            }
            decision
        })
        .collect();
    json!({ "decisions": decisions })
}
