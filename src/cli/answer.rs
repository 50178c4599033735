//! `berth answer`: scenarios as JSON lines in, one answer a line out.

use std::io::{self, BufRead, Write};

use serde_json::{Value, json};

use super::{Exit, output};
use crate::service::answer;

/// Answer scenarios in batch: JSON lines on standard input, one JSON answer a line, in order
///
/// A scenario is {name, objects, pending}: Kubernetes manifests and the pods to decide, each by itself. The answer is
/// {name, decisions} with the fields of the conformance vectors, or {name, error}. Not supported yet: `config`
/// (KubeSchedulerConfiguration), `policy` (eviction), nominated nodes and preemption; such a scenario gets an error, and
/// decisions carry no preemption fields.
#[derive(Debug, clap::Args)]
pub(super) struct Args {}

pub(super) fn run(_args: &Args) -> Exit {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let answer = match line {
            Ok(line) if line.trim().is_empty() => continue,
            Ok(line) => match serde_json::from_str::<Value>(&line) {
                Ok(scenario) => answer::answer(&scenario),
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
