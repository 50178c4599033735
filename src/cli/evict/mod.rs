//! `berth evict`: which pods should move, from files or from a running server.

mod report;
mod story;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tonic_types::StatusExt;

use self::report::Asked;
use super::answer::parse_time;
use super::schedule::Format;
use super::{Exit, output};
use crate::api::pb::eviction_service_client::EvictionServiceClient;
use crate::api::pb::suggest_evictions_request::PolicySource as PbPolicy;
use crate::api::{client, evictions_response, pb};
use crate::evict;
use crate::model::Time;
use crate::service::evict::{PodName, PolicySource, Request};
use crate::service::profiles::Profiles;
use crate::service::{FieldError, Service, ServiceError, SystemClock};

pub(super) use report::{measure_value, pod};

/// Suggest which running pods should move, where to and why; nothing is evicted
///
/// The policy is a DeschedulerPolicy, descheduler/v1alpha2 or v1alpha1. The cluster is that of dumps
/// (`kubectl get nodes,pods,ns,rs,pdb,pv,pvc,sc,pc -A -o json > cluster.json` works as it is) or of a running server. Carry
/// the suggestions out in their order, through the eviction API, and stop after any of them if you like.
///
/// -o json and -o yaml print the fields of SuggestEvictionsResponse (proto/berth/v1/eviction.proto) under their JSON names:
/// suggestions, measures and leftAlone always, the others where they aren't at their default, numbers as numbers, enums
/// without their prefix, and view only of a server.
///
/// Exit codes: 0 there is a plan, be it empty, 2 wrong usage, policy or dump, 1 failed, or some strategy could not run.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("where").required(true).args(["cluster", "addr"]))]
pub(super) struct Args {
    /// The policy: YAML or JSON [default: with --addr, the server's own]
    #[arg(long, value_name = "FILE", required_unless_present = "addr")]
    policy: Option<PathBuf>,
    /// Manifests of the cluster
    #[arg(long, value_name = "DUMP", num_args = 1..)]
    cluster: Vec<PathBuf>,
    /// A running server
    #[arg(long, value_name = "HOST:PORT")]
    addr: Option<String>,
    /// Scheduler profiles that say where pods would go: a KubeSchedulerConfiguration [default: kube-scheduler's default]
    #[arg(long, value_name = "FILE", conflicts_with = "addr")]
    scheduler_config: Option<PathBuf>,
    /// How evictions are chosen
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Judge ages as of this RFC 3339 time [default: now; with --addr, by the server's clock]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Time>,
    /// Also tell the whole story of this pod: what protects it, what each strategy made of it, where it would go
    #[arg(long, value_name = "NAMESPACE/POD", value_parser = pod_name)]
    explain: Option<PodName>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// How evictions are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(super) enum Mode {
    /// Only moves that are proven to land
    #[default]
    Planned,
    /// As the descheduler does
    Compatible,
}

impl Mode {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Planned => "PLANNED",
            Self::Compatible => "COMPATIBLE",
        }
    }
}

/// Why there is no plan.
enum Failure {
    /// What was given is wrong; each line is one mistake.
    Input(Vec<String>),
    /// The server can't be asked, or refuses; or Berth itself failed.
    Failed(String),
}

pub(super) fn run(args: &Args) -> Exit {
    match answer(args) {
        Ok(exit) => exit,
        Err(Failure::Input(mistakes)) => {
            for mistake in mistakes {
                output::complain(format!("berth evict: {mistake}"));
            }
            Exit::Usage
        }
        Err(Failure::Failed(error)) => {
            output::complain(format!("berth evict: {error}"));
            Exit::Failed
        }
    }
}

fn answer(args: &Args) -> Result<Exit, Failure> {
    let policy = args.policy.as_deref().map(Policy::read).transpose()?;
    let (plan, asked) = match &args.addr {
        None => (plan_here(args, policy.as_ref())?, Asked::Files),
        Some(addr) => (ask_server(args, addr, policy.as_ref())?, Asked::Server),
    };
    for warning in &plan.warnings {
        let path = in_policy(&warning.field).unwrap_or(&warning.field);
        let file = policy.as_ref().map_or(plan.policy_file.as_str(), |policy| &policy.file);
        output::complain(format!("berth evict: warning: {}", mistake(file, path, &warning.message)));
    }
    let text = match args.output {
        Format::Table => report::page(&plan),
        Format::Json => format!("{:#}", report::value(&plan, asked)),
        Format::Yaml => output::yaml(&report::value(&plan, asked)).map_err(Failure::Failed)?,
    };
    Ok(if output::line(text) && plan.failures.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The text of the policy, and what its file is called.
struct Policy {
    file: String,
    text: String,
}

impl Policy {
    fn read(path: &Path) -> Result<Self, Failure> {
        let file = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| Failure::Input(vec![format!("{file}: {error}")]))?;
        Ok(Self { file, text })
    }
}

fn plan_here(args: &Args, policy: Option<&Policy>) -> Result<pb::SuggestEvictionsResponse, Failure> {
    let input = |errors: Vec<String>| Failure::Input(errors);
    let service = Service::new(Profiles::default(), Arc::new(SystemClock));
    if let Some(file) = &args.scheduler_config {
        let status = service.load_config(file);
        let status = status.map_err(|errors| input(errors.iter().map(ToString::to_string).collect()))?;
        for note in &status.notes {
            output::complain(format!("berth evict: note: {}: {note}", status.file));
        }
    }
    let loaded = service.load_files(&args.cluster);
    let loaded = loaded.map_err(|errors| input(errors.iter().map(ToString::to_string).collect()))?;
    if loaded.nodes == 0 {
        output::complain("berth evict: warning: there is no node in the cluster files");
    }
    let source = policy.map_or(PolicySource::Own, |policy| PolicySource::Text(policy.text.clone()));
    let request =
        Request { mode: args.mode.into(), now: args.now, explain: args.explain.clone(), ..Request::new(source) };
    match service.suggest_evictions(request, &AtomicBool::new(false)) {
        Ok(answer) => Ok(evictions_response(&answer)),
        Err(ServiceError::Invalid(mistakes)) => Err(input(told(policy, mistakes))),
        Err(error @ ServiceError::NotFound { .. }) => Err(input(vec![error.to_string()])),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

fn ask_server(args: &Args, addr: &str, policy: Option<&Policy>) -> Result<pb::SuggestEvictionsResponse, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Failed(error.to_string()))?;
    let request = pb::SuggestEvictionsRequest {
        policy_source: policy.map(|policy| PbPolicy::PolicyText(policy.text.clone())),
        mode: match args.mode {
            Mode::Planned => pb::EvictionMode::Planned,
            Mode::Compatible => pb::EvictionMode::Compatible,
        }
        .into(),
        now: args.now.map(timestamp),
        explain_pod: args.explain.clone().map(|pod| pb::ObjectRef {
            kind: "Pod".to_owned(),
            namespace: pod.namespace,
            name: pod.name,
            uid: pod.uid,
        }),
        ..Default::default()
    };
    runtime.block_on(async {
        let channel = client::connect(addr).await.map_err(|error| Failure::Failed(error.to_string()))?;
        let answer = EvictionServiceClient::new(channel).suggest_evictions(request).await;
        answer.map(tonic::Response::into_inner).map_err(|status| {
            let violations = status.get_details_bad_request().map(|bad| bad.field_violations).unwrap_or_default();
            let mistakes = violations.into_iter().map(|v| FieldError { path: v.field, message: v.description });
            match status.code() {
                tonic::Code::InvalidArgument => match told(policy, mistakes.collect()) {
                    none if none.is_empty() => Failure::Input(vec![format!("{addr}: {}", status.message())]),
                    mistakes => Failure::Input(mistakes),
                },
                tonic::Code::NotFound => Failure::Input(vec![format!("{addr}: {}", status.message())]),
                _ => Failure::Failed(format!("{addr}: {}", status.message())),
            }
        })
    })
}

/// Mistakes as people look for them: those of the policy by its file.
fn told(policy: Option<&Policy>, mistakes: Vec<FieldError>) -> Vec<String> {
    let tell = |error: FieldError| match (policy, in_policy(&error.path)) {
        (Some(policy), Some(path)) => mistake(&policy.file, path, &error.message),
        _ => error.to_string(),
    };
    mistakes.into_iter().map(tell).collect()
}

/// The path within the policy; None for one of another field of the request.
fn in_policy(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("policy")?;
    match rest.as_bytes().first() {
        None | Some(b'[') => Some(rest),
        Some(b'.') => rest.get(1..),
        Some(_) => None,
    }
}

fn mistake(file: &str, path: &str, message: &str) -> String {
    let places = [file, path].into_iter().filter(|place| !place.is_empty());
    places.chain([message]).collect::<Vec<_>>().join(": ")
}

/// `default/web-1`; without a namespace it is `default`.
fn pod_name(text: &str) -> Result<PodName, String> {
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err("expected NAMESPACE/POD, such as default/web-1".to_owned());
    }
    Ok(PodName { namespace: namespace.to_owned(), name: name.to_owned(), uid: String::new() })
}

fn timestamp(time: Time) -> prost_types::Timestamp {
    let nanos = time.0.rem_euclid(1_000_000) * 1_000;
    prost_types::Timestamp { seconds: time.0.div_euclid(1_000_000), nanos: i32::try_from(nanos).unwrap_or_default() }
}

impl From<Mode> for evict::Mode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Planned => Self::Planned,
            Mode::Compatible => Self::Compatible,
        }
    }
}
