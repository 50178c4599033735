//! `berth healthcheck`: whether a Berth makes decisions, for containers and scripts.

use std::time::Duration;

use super::{Exit, output};
use crate::api::client;

/// For connection and answer together.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Ask a Berth for its health: prints SERVING (exit code 0) or NOT_SERVING (1)
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Address of the Berth to ask
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051")]
    addr: String,
}

pub(super) fn run(args: &Args) -> Exit {
    let asked = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string());
    let answer = asked.and_then(|runtime| runtime.block_on(ask(&args.addr)));
    match answer {
        Ok(serving) => {
            output::line(if serving { "SERVING" } else { "NOT_SERVING" });
            if serving { Exit::Done } else { Exit::Failed }
        }
        Err(reason) => {
            output::complain(format!("berth healthcheck: {reason}"));
            Exit::Failed
        }
    }
}

async fn ask(addr: &str) -> Result<bool, String> {
    let asking = async {
        let channel = client::connect(addr).await.map_err(|error| error.to_string())?;
        client::is_serving(channel).await
    };
    let late = format!("{addr} gave no answer within {} s", TIMEOUT.as_secs());
    tokio::time::timeout(TIMEOUT, asking).await.unwrap_or(Err(late))
}
