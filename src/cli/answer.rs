//! `berth answer`: scenarios as JSON lines in, one answer a line out.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::{Exit, output};
use crate::engine::fixes::Fix;
use crate::service::answer;

/// Answer scenarios in batch: JSON lines on standard input, one JSON answer a line, in order
///
/// A scenario is {name, objects, pending}: Kubernetes manifests and the pods to decide, each by itself. The answer is
/// {name, decisions} with the fields of the conformance vectors, or {name, error}. Not supported yet: `config`
/// (KubeSchedulerConfiguration), `policy` (eviction), nominated nodes and preemption; such a scenario gets an error, and
/// decisions carry no preemption fields.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Deliberate differences from upstream to switch on (docs/differences.md lists them)
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_parser = parse_fix)]
    fix: Vec<Fix>,
}

fn parse_fix(name: &str) -> Result<Fix, String> {
    Fix::parse(name).ok_or_else(|| {
        let names: Vec<&str> = Fix::ALL.iter().map(|fix| fix.as_str()).collect();
        format!("there is no such difference; there is {}", names.join(", "))
    })
}

pub(super) fn run(args: &Args) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let answer = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => match serde_json::from_str::<Value>(&line) {
                Ok(scenario) => answer::answer(&scenario, &args.fix),
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
