//! `berth bench`: what Berth promises about itself under load, measured, each with a verdict.

mod churn;
mod evict;
mod resync;
mod skewed;
mod soak;

use clap::Subcommand;

use super::{Exit, output};

/// Measure what Berth promises under load, and judge it: exit code 0 if it holds, 1 if it doesn't
///
/// Everything happens in this process, on a cluster that is made up. Times need a machine with nothing else running.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(subcommand)]
    bench: Bench,
}

#[derive(Debug, Subcommand)]
enum Bench {
    Soak(soak::Args),
    Resync(resync::Args),
    Evict(evict::Args),
}

/// Whatever goes wrong in a bench is a bug or a machine that lacks something; the text is all that anyone needs of it.
type Failure = Box<dyn std::error::Error + Send + Sync>;

/// What a bench found: what to print, and whether the promise held.
struct Outcome {
    text: String,
    holds: bool,
}

pub(super) fn run(args: &Args) -> Exit {
    let (name, outcome) = match &args.bench {
        Bench::Soak(args) => ("soak", soak::run(args)),
        Bench::Resync(args) => ("resync", resync::run(args)),
        Bench::Evict(args) => ("evict", evict::run(args)),
    };
    match outcome {
        Ok(Outcome { text, holds }) => {
            if output::line(text) && holds {
                Exit::Done
            } else {
                Exit::Failed
            }
        }
        Err(error) => {
            output::complain(format!("berth bench {name}: {error}"));
            Exit::Failed
        }
    }
}
