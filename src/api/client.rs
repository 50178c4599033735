//! Connects to a Berth: what the command line and the demo are clients with.

use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use super::server::{CONNECTION_WINDOW, STREAM_WINDOW};

/// How long to wait for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    #[error("{addr:?} is no address; write HOST:PORT, such as 127.0.0.1:50051")]
    Address { addr: String },
    #[error("can't connect to {addr}: {reason}; does `berth serve` run there?")]
    Unreachable { addr: String, reason: String },
}

/// Connects to `HOST:PORT`, in plain text.
pub async fn connect(addr: &str) -> Result<Channel, ConnectError> {
    let authority = addr.strip_prefix("http://").unwrap_or(addr);
    let invalid = || ConnectError::Address { addr: addr.to_owned() };
    if authority.rsplit_once(':').is_none_or(|(host, port)| host.is_empty() || port.parse::<u16>().is_err()) {
        return Err(invalid());
    }
    let endpoint = Endpoint::from_shared(format!("http://{authority}")).map_err(|_| invalid())?;
    let endpoint = endpoint
        .connect_timeout(CONNECT_TIMEOUT)
        .tcp_nodelay(true)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW);
    endpoint.connect().await.map_err(|error| {
        // The innermost error is the one that says what happened; those around it say "transport error".
        let mut cause: &dyn std::error::Error = &error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        ConnectError::Unreachable { addr: authority.to_owned(), reason: cause.to_string() }
    })
}

/// Whether the server at the other end makes decisions.
///
/// # Errors
/// What it answered instead, for people.
pub async fn is_serving(channel: Channel) -> Result<bool, String> {
    let request = HealthCheckRequest { service: String::new() };
    let answer = HealthClient::new(channel).check(request).await;
    let answer = answer.map_err(|status| format!("{:?}: {}", status.code(), status.message()))?;
    Ok(answer.into_inner().status() == ServingStatus::Serving)
}
