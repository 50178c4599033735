//! `berth answer`: scenarios as JSON lines in, one answer a line out.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::{Exit, output};
use crate::engine::fixes::Fix;
use crate::evict;
use crate::manifest;
use crate::model::Time;
use crate::service::answer::{self, Asked};

/// Answer scenarios in batch: JSON lines on standard input, one JSON answer a line, in order
///
/// A scenario is {name, objects, pending}: Kubernetes manifests and the pods to decide, each by itself. The answer is
/// {name, decisions} with the fields of the conformance vectors, or {name, error}. A scenario with a `policy` (a
/// DeschedulerPolicy) is answered with {name, evictions: [{pod, node, strategy}]}; it may carry the time as `now`. Not
/// supported yet: `config` (KubeSchedulerConfiguration); such a scenario gets an error.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Deliberate differences from upstream to switch on (docs/differences.md lists them)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = parse_fix)]
    fix: Vec<Fix>,
    /// How evictions are chosen
    #[arg(long, value_enum, default_value_t)]
    mode: Mode,
    /// Judge ages as of this RFC 3339 time, whatever the scenarios say [default: theirs, else 2026-11-30T20:00:00Z]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    now: Option<Time>,
}

#[derive(Debug, Clone, Copy, Default, clap::ValueEnum)]
enum Mode {
    /// As the descheduler does
    #[default]
    Compatible,
    /// Only moves that are proven to land
    Planned,
}

pub(super) fn parse_time(text: &str) -> Result<Time, String> {
    manifest::parse_time(text).ok_or_else(|| "expected an RFC 3339 time such as 2026-11-30T20:00:00Z".to_owned())
}

fn parse_fix(name: &str) -> Result<Fix, String> {
    Fix::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Fix::ALL.iter().map(|fix| fix.as_str()).collect();
        format!("there is no such difference; there is {}", names.join(", "))
    })
}

pub(super) fn run(args: &Args) -> Exit {
    let mode = match args.mode {
        Mode::Compatible => evict::Mode::Compatible,
        Mode::Planned => evict::Mode::Planned,
    };
    let asked = Asked { fixes: &args.fix, mode, now: args.now };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let answer = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => match serde_json::from_str::<Value>(&line) {
                Ok(scenario) => answer::answer(&scenario, &asked),
                Err(error) => json!({ "name": null, "error": format!("not JSON: {error}") }),
            },
            Err(error) => {
                output::complain(format!("berth answer: can't read standard input: {error}"));
                return Exit::Failed;
            }
        };
        // Flushed line by line, so that a driver may wait for each answer before it asks on.
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            return Exit::Failed;
        }
    }
    Exit::Done
}
