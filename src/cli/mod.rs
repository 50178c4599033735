//! The command line: one file a subcommand.
//!
//! Exit codes: 0 done (for `schedule`: placed; for `compare`: no difference; for `evict`: planned, be it nothing), 1 failed,
//! 2 wrong usage or input, 3 fits nowhere, or differs.

mod answer;
mod bench;
mod compare;
mod demo;
mod evict;
mod healthcheck;
mod output;
mod schedule;
mod serve;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Scheduling decisions for Kubernetes: where should this pod run, and if nowhere, why not?
#[derive(Debug, Parser)]
#[command(name = "berth", version, about, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Serve(serve::Args),
    Schedule(schedule::Args),
    Evict(evict::Args),
    Demo(demo::Args),
    Bench(bench::Args),
    Answer(answer::Args),
    Compare(compare::Args),
    Healthcheck(healthcheck::Args),
}

/// What a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    Failed,
    Usage,
    FitsNowhere,
    Differs,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::FitsNowhere | Exit::Differs => 3,
        })
    }
}

/// Runs the command that the arguments name.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let exit = match cli.command {
        Command::Serve(args) => serve::run(&args),
        Command::Schedule(args) => schedule::run(&args),
        Command::Evict(args) => evict::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Answer(args) => answer::run(&args),
        Command::Compare(args) => compare::run(&args),
        Command::Healthcheck(args) => healthcheck::run(&args),
    };
    exit.into()
}
