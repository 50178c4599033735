//! `berth serve`: the service itself.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::{Exit, output};
use crate::api::server::SERVICES;
use crate::app::{self, AppError, Setup};
use crate::config::{self, ConfigError};
use crate::model::Kind;
use crate::service::Service;
use crate::service::config_file::ConfigStatus;
use crate::service::load::Loaded;
use crate::telemetry::log::{self, Format};

/// Remarks on the files that are printed one by one; a cluster may have thousands of the same.
const MAX_WARNINGS: usize = 20;

/// Serve decisions over gRPC until SIGTERM or SIGINT
///
/// Without --cluster nothing is known yet: feed it with FeedService, from a controller or by hand.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address to listen on; port 0 is any free port
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051")]
    addr: String,
    /// Manifests to begin with: JSON or YAML, also of several objects, such as `kubectl get nodes,pods -A -o json`
    #[arg(long, value_name = "FILE", num_args = 1..)]
    cluster: Vec<PathBuf>,
    /// Profiles: a KubeSchedulerConfiguration, JSON or YAML [default: kube-scheduler's default profile]
    ///
    /// Read again on SIGHUP, and within about a second when its content changes. A file with mistakes is refused as a whole:
    /// at the start with exit code 2, later with the profiles of before staying in force.
    #[arg(long, value_name = "FILE")]
    scheduler_config: Option<PathBuf>,
    /// What evictions are suggested by unless a request says otherwise: a DeschedulerPolicy, v1alpha2 or v1alpha1
    ///
    /// Read again as --scheduler-config is. Names of priority classes are looked up for each request.
    #[arg(long, value_name = "FILE")]
    descheduler_policy: Option<PathBuf>,
    /// Address of the admin port, or none [default: 127.0.0.1:10251; a free port if --addr has another port than 50051]
    ///
    /// It answers over plain HTTP: /metrics, /healthz, /readyz, /debug/cache, /debug/log.
    #[arg(long, value_name = "HOST:PORT")]
    admin_addr: Option<String>,
    /// Listen beyond this machine without encryption
    #[arg(long)]
    insecure: bool,
    /// Kinds whose snapshot a feed must have finished before decisions are made [default: Node,Pod]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    require: Option<Vec<Kind>>,
    /// The longest that a decision may take, whatever deadline its caller gives it, such as 500ms or 10s
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = decision_time)]
    max_decision_time: Duration,
    /// What to log to standard error, such as warn,berth=debug [default: RUST_LOG, else info]
    #[arg(long, value_name = "FILTER")]
    log: Option<String>,
    /// How log lines are written: text, or a JSON object a line
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LogFormat {
    Text,
    Json,
}

impl From<LogFormat> for Format {
    fn from(format: LogFormat) -> Self {
        match format {
            LogFormat::Text => Self::Text,
            LogFormat::Json => Self::Json,
        }
    }
}

/// A time between a millisecond, which any usual decision takes less than, and an hour.
fn decision_time(text: &str) -> Result<Duration, String> {
    let read: jiff::SignedDuration = text.parse().map_err(|_| "write it as 10s, 500ms or 1m".to_owned())?;
    let bounds = Duration::from_millis(1)..=Duration::from_secs(3_600);
    let time = Duration::try_from(read).ok().filter(|time| bounds.contains(time));
    time.ok_or_else(|| "must be between 1ms and 1h".to_owned())
}

/// The port of `--addr` unless another is named.
const DEFAULT_PORT: u16 = 50051;
/// Where kube-scheduler, up to 1.22, answered the same questions over plain HTTP.
const DEFAULT_ADMIN_PORT: u16 = 10251;

pub(super) fn run(args: &Args) -> Exit {
    match serve(args) {
        Ok(()) => Exit::Done,
        Err((message, exit)) => {
            output::complain(message);
            exit
        }
    }
}

fn serve(args: &Args) -> Result<(), (String, Exit)> {
    let usage = |error: String| (format!("berth serve: {error}"), Exit::Usage);
    let addr = resolve("--addr", &args.addr).map_err(usage)?;
    let admin = admin_addr(args.admin_addr.as_deref(), addr).map_err(usage)?;
    for addr in [Some(addr), admin].into_iter().flatten() {
        app::check_addr(addr, args.insecure).map_err(|e| usage(e.to_string()))?;
    }
    let log = log::start(args.log.as_deref(), args.log_format.into()).map_err(|e| usage(e.to_string()))?;
    let mut service = Service::default();
    service.set_max_decision_time(args.max_decision_time);
    let service = Arc::new(service);
    if let Some(kinds) = &args.require {
        service.cluster.writer().readiness_mut().require(kinds.iter().copied());
    }
    if let Some(file) = &args.scheduler_config {
        load_file(service.load_config(file), "configuration")?;
    }
    if let Some(file) = &args.descheduler_policy {
        load_file(service.load_policy(file), "descheduler policy")?;
    }
    let loaded = if args.cluster.is_empty() { None } else { Some(load(&service, &args.cluster)?) };
    let config = args.scheduler_config.as_ref().map(|_| profiles_line(&service));
    let policy = service.policy_status().map(|status| status.file);
    let setup = Setup { service, addr, admin: admin.map(|addr| (addr, log)) };
    let served = app::run(setup, |addr, admin| {
        output::line(greeting(addr, admin, loaded.as_ref(), config.clone(), policy.clone(), args.require.as_deref()));
    });
    served.map_err(|error| {
        let exit = if matches!(error, AppError::BeyondLoopback(_)) { Exit::Usage } else { Exit::Failed };
        (format!("berth serve: {error}"), exit)
    })
}

/// Says what became of a file; `what` is its name in messages.
fn load_file(loaded: Result<ConfigStatus, Vec<ConfigError>>, what: &str) -> Result<(), (String, Exit)> {
    let status = loaded.map_err(|errors| {
        let noun = if errors.len() == 1 { "mistake" } else { "mistakes" };
        let text = format!("berth serve: {} {noun} in the {what}\n{}", errors.len(), config::Lines(&errors));
        (text, Exit::Usage)
    })?;
    for note in &status.notes {
        output::complain(format!("note: {}: {note}", status.file));
    }
    Ok(())
}

/// The profiles in force and where they come from.
fn profiles_line(service: &Service) -> String {
    let names: Vec<String> = service.profiles().iter().map(|profile| profile.name().to_string()).collect();
    let file = service.config_status().map(|status| status.file).unwrap_or_default();
    format!("{} of {file}", names.join(", "))
}

fn load(service: &Service, files: &[PathBuf]) -> Result<Loaded, (String, Exit)> {
    let loaded = service.load_files(files).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        let noun = if errors.len() == 1 { "mistake" } else { "mistakes" };
        (format!("berth serve: {} {noun}, nothing was loaded\n{}", errors.len(), lines.join("\n")), Exit::Usage)
    })?;
    for warning in loaded.warnings.iter().take(MAX_WARNINGS) {
        output::complain(format!("warning: {warning}"));
    }
    if let Some(more @ 1..) = loaded.warnings.len().checked_sub(MAX_WARNINGS) {
        output::complain(format!("warning: and {more} more of them"));
    }
    Ok(loaded)
}

/// The address of the admin port; None: no such port. Without a word about it, Berths that were told different ports don't
/// get into each other's way.
fn admin_addr(option: Option<&str>, addr: SocketAddr) -> Result<Option<SocketAddr>, String> {
    match option {
        Some("none") => Ok(None),
        Some(option) => resolve("--admin-addr", option).map(Some),
        None => {
            let port = if addr.port() == DEFAULT_PORT { DEFAULT_ADMIN_PORT } else { 0 };
            Ok(Some((IpAddr::V4(Ipv4Addr::LOCALHOST), port).into()))
        }
    }
}

/// The address to listen on. Of several that a name stands for, one of IPv4: that is what people type.
fn resolve(option: &str, addr: &str) -> Result<SocketAddr, String> {
    let found = addr.to_socket_addrs();
    let mut found: Vec<SocketAddr> = found.map_err(|error| format!("{option} {addr}: {error}"))?.collect();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| format!("{option} {addr}: no such host"))
}

/// A kind as people write it: `Node`, `node`, `nodes`.
pub(super) fn kind(text: &str) -> Result<Kind, String> {
    let wanted = text.trim().to_ascii_lowercase();
    let is_meant = |kind: &&Kind| {
        let name = kind.as_str().to_ascii_lowercase();
        let plural = match name.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None if name.ends_with('s') => format!("{name}es"),
            None => format!("{name}s"),
        };
        wanted == name || wanted == plural
    };
    Kind::ALL.iter().find(is_meant).copied().ok_or_else(|| {
        let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
        format!("there is {}", names.join(", "))
    })
}

fn greeting(
    addr: SocketAddr,
    admin: Option<SocketAddr>,
    loaded: Option<&Loaded>,
    profiles: Option<String>,
    policy: Option<String>,
    required: Option<&[Kind]>,
) -> String {
    // Whoever listens on all addresses is asked on one of them.
    let to_ask = |addr: SocketAddr| -> SocketAddr {
        if addr.ip().is_unspecified() { (IpAddr::V4(Ipv4Addr::LOCALHOST), addr.port()).into() } else { addr }
    };
    let ask = to_ask(addr);
    let mut text = format!("berth {} serves on {addr}\n", env!("CARGO_PKG_VERSION"));
    let mut entry = |name: &str, value: String| {
        let _ = writeln!(text, "  {name:<9}{value}");
    };
    match loaded {
        Some(loaded) => {
            let Loaded { nodes, pods, others, skipped, .. } = loaded;
            entry("cluster", format!("{nodes} nodes, {pods} pods, {others} other objects"));
            if !skipped.is_empty() {
                let kinds: Vec<String> = skipped.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
                entry("skipped", format!("{} (kinds that Berth doesn't read)", kinds.join(", ")));
            }
        }
        None => {
            let kinds: Vec<&str> = required.unwrap_or(&[Kind::Node, Kind::Pod]).iter().map(|k| k.as_str()).collect();
            let kinds = kinds.join(", ");
            entry("cluster", format!("empty; decisions begin with the first node, or a feed's snapshot of {kinds}"));
        }
    }
    if let Some(profiles) = profiles {
        entry("profiles", profiles);
    }
    if let Some(policy) = policy {
        entry("policy", policy);
    }
    entry("services", format!("{}, health, reflection", SERVICES.join(", ")));
    if let Some(admin) = admin {
        entry("admin", format!("http://{}/metrics, /healthz, /readyz, /debug/cache, /debug/log", to_ask(admin)));
    }
    if loaded.is_none() {
        let _ = write!(text, "\nGive it a node:\n  {}\n", grpcurl(NODE, ask, "berth.v1.FeedService/UpdateNodes"));
    }
    let ask = grpcurl(POD, ask, "berth.v1.SchedulerService/Schedule");
    let _ = write!(text, "\nAsk where a pod should run (dry_run takes no room):\n  {ask}");
    text
}

const NODE: &str = r#"{"events":[{"manifest":{"apiVersion":"v1","kind":"Node","metadata":{"name":"node-1"},"status":{"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}}]}"#;
const POD: &str = r#"{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"hello"},"spec":{"containers":[{"name":"hello","image":"hello","resources":{"requests":{"cpu":"500m","memory":"256Mi"}}}]}}},"dry_run":true}"#;

fn grpcurl(body: &str, addr: SocketAddr, method: &str) -> String {
    format!("grpcurl -plaintext -d '{body}' {addr} {method}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_read_as_people_write_them() {
        for (text, expected) in [
            ("Node", Kind::Node),
            ("pods", Kind::Pod),
            (" StorageClasses", Kind::StorageClass),
            ("csistoragecapacities", Kind::CsiStorageCapacity),
            ("CSINode", Kind::CsiNode),
        ] {
            assert_eq!(kind(text), Ok(expected), "{text}");
        }
        assert!(kind("Deployment").is_err());
    }

    #[test]
    fn a_decision_time_is_read_with_its_unit_and_has_bounds() {
        assert_eq!(decision_time("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(decision_time("1m 30s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "10", "0s", "-1s", "2h", "soon"] {
            assert!(decision_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_admin_port_is_known_only_beside_the_known_port() {
        let of = |option, addr: &str| admin_addr(option, addr.parse().unwrap()).unwrap().map(|addr| addr.to_string());
        assert_eq!(of(None, "127.0.0.1:50051").as_deref(), Some("127.0.0.1:10251"));
        assert_eq!(of(None, "0.0.0.0:50051").as_deref(), Some("127.0.0.1:10251"), "on loopback unless told");
        assert_eq!(of(None, "127.0.0.1:0").as_deref(), Some("127.0.0.1:0"));
        assert_eq!(of(Some("127.0.0.1:7"), "127.0.0.1:0").as_deref(), Some("127.0.0.1:7"));
        assert_eq!(of(Some("none"), "127.0.0.1:50051"), None);
    }

    #[test]
    fn the_lines_to_paste_are_json_without_quotes_of_the_shell() {
        for body in [NODE, POD] {
            serde_json::from_str::<serde_json::Value>(body).unwrap();
            assert!(!body.contains('\''));
        }
        let everywhere = greeting("0.0.0.0:7".parse().unwrap(), None, None, None, None, None);
        assert!(everywhere.contains(" 127.0.0.1:7 berth.v1.SchedulerService/Schedule"), "{everywhere}");
    }
}
