//! The served binary as an operator meets it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

struct Served {
    child: Child,
    greeting: Vec<String>,
    addr: String,
}

fn berth(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli")).env_remove("RUST_LOG");
    command
}

/// Starts `berth serve` on a free port and waits for what it prints.
fn serve(args: &[&str]) -> Served {
    let mut command = berth(&["serve", "--addr", "127.0.0.1:0"]);
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut greeting = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        greeting.push(line.unwrap());
        if greeting.last().is_some_and(|line| line.contains("SchedulerService/Schedule")) {
            break;
        }
    }
    let addr = greeting[0].rsplit(' ').next().unwrap().to_owned();
    Served { child, greeting, addr }
}

impl Served {
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

fn healthcheck(addr: &str) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = berth(&["healthcheck", "--addr", addr]).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn it_says_what_it_serves_and_ends_well_on_sigterm() {
    let served = serve(&["--cluster", "cluster.yaml"]);
    let text = served.greeting.join("\n");
    assert!(text.contains("2 nodes") && text.contains("berth.v1.FeedService"), "{text}");
    assert!(text.contains(&format!("{} berth.v1.SchedulerService/Schedule", served.addr)), "{text}");
    assert_eq!(healthcheck(&served.addr), (Some(0), "SERVING\n".to_owned()));
    served.signal("-TERM");
    let (code, log) = served.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("SIGTERM"), "{log}");
}

#[test]
fn without_nodes_it_is_not_serving_and_sigint_ends_it_quietly() {
    let served = serve(&["--log", "warn"]);
    assert_eq!(healthcheck(&served.addr), (Some(1), "NOT_SERVING\n".to_owned()));
    served.signal("-INT");
    let (code, log) = served.end();
    assert_eq!((code, log.as_str()), (Some(0), ""));
}

#[test]
fn an_address_in_use_is_a_failure_and_a_wrong_option_is_wrong_usage() {
    let served = serve(&[]);
    for (args, code, part) in [
        (&["serve", "--addr", &served.addr][..], 1, "can't listen on"),
        (&["serve", "--addr", "nowhere"], 2, "--addr nowhere"),
        (&["serve", "--addr", "127.0.0.1:0", "--log", "a=b=c"], 2, "log filter"),
        (&["serve", "--addr", "127.0.0.1:0", "--require", "Deployment"], 2, "there is Node, Pod"),
    ] {
        let output = berth(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    }
    served.signal("-TERM");
    assert_eq!(served.end().0, Some(0));
}
