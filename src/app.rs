//! The running process: server, admin port, clock ticks, signals. Nothing is decided here.
//!
//! [`run`] serves until SIGTERM or SIGINT, then lets calls and streams end, for at most [`DRAIN`]. The admin port tells
//! probes about it meanwhile, and ends last.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::api::server;
use crate::http;
use crate::service::Service;
use crate::service::config_file::Reload;
use crate::service::policy_file::PolicyReload;
use crate::telemetry::log::LogFilter;

/// How long clients may take to finish after a signal. Kubernetes sends SIGKILL after 30 s by default.
pub const DRAIN: Duration = Duration::from_secs(10);
/// How often reservations are looked at. A reservation's room may so come free up to a second late, never early.
const TICK: Duration = Duration::from_secs(1);
/// How often refused pods are looked at: changes that come together are looked at together.
const RETRY_TICK: Duration = Duration::from_millis(100);
/// How long a client of the admin port may then still read.
const ADMIN_DRAIN: Duration = Duration::from_secs(1);

#[derive(Debug, thiserror::Error)]
pub enum AppError {
    #[error(
        "refusing to listen on {0}: everyone who can reach that address could read and change the cluster that Berth \
         sees, and there is no encryption; listen on 127.0.0.1, or say --insecure if the network is trusted"
    )]
    BeyondLoopback(SocketAddr),
    #[error("can't start: {0}")]
    Runtime(io::Error),
    #[error("can't listen on {addr}: {source}")]
    Bind { addr: SocketAddr, source: io::Error },
    #[error("can't listen on {addr} for the admin port: {source}; name another with --admin-addr, or none")]
    BindAdmin { addr: SocketAddr, source: io::Error },
    #[error("can't serve: {0}")]
    Serve(#[from] tonic::transport::Error),
}

/// Whether to listen on this address: beyond the machine itself only if told so.
pub fn check_addr(addr: SocketAddr, insecure: bool) -> Result<(), AppError> {
    if addr.ip().to_canonical().is_loopback() || insecure { Ok(()) } else { Err(AppError::BeyondLoopback(addr)) }
}

/// What to serve, and where.
#[derive(Debug)]
pub struct Setup {
    pub service: Arc<Service>,
    pub addr: SocketAddr,
    /// The address of the admin port, and the log that it can change. None: no admin port.
    pub admin: Option<(SocketAddr, LogFilter)>,
}

/// Serves until a signal. `listening` is told the real addresses, of gRPC and of the admin port, once connections are taken.
pub fn run(setup: Setup, listening: impl FnOnce(SocketAddr, Option<SocketAddr>)) -> Result<(), AppError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(AppError::Runtime)?;
    let served = runtime.block_on(serve(setup, listening));
    // What still runs on blocking threads (a decision, a batch) is over in a moment, or isn't waited for.
    runtime.shutdown_timeout(Duration::from_secs(1));
    served
}

async fn serve(setup: Setup, listening: impl FnOnce(SocketAddr, Option<SocketAddr>)) -> Result<(), AppError> {
    let Setup { service, addr, admin } = setup;
    let signal = signals().map_err(AppError::Runtime)?;
    let has_files = service.config_status().is_some() || service.policy_status().is_some();
    let hangups = if has_files { Some(hangups().map_err(AppError::Runtime)?) } else { None };
    let (stop, mut stopping) = watch::channel(false);
    let admin = match admin {
        Some((addr, log)) => Some(Admin::start(service.clone(), log, stopping.clone(), addr).await?),
        None => None,
    };
    let shutdown = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
    };
    let bound = server::bind(service.clone(), addr, shutdown).await;
    let (addr, server) = bound.map_err(|source| AppError::Bind { addr, source })?;
    let looking = tokio::spawn(look_for_retries(service.clone()));
    let reloading = hangups.map(|hangups| tokio::spawn(reload(service.clone(), hangups)));
    let ticking = tokio::spawn(tick(service));
    let mut server = tokio::spawn(server);
    listening(addr, admin.as_ref().map(|admin| admin.addr));
    let served = tokio::select! {
        ended = &mut server => ended,
        name = signal => {
            tracing::info!("{name}: finishing what is under way, for at most {} s", DRAIN.as_secs());
            let _ = stop.send(true);
            match timeout(DRAIN, &mut server).await {
                Ok(ended) => ended,
                Err(_) => {
                    tracing::warn!("some clients have not finished; closing their connections");
                    Ok(Ok(()))
                }
            }
        }
    };
    ticking.abort();
    looking.abort();
    if let Some(reloading) = reloading {
        reloading.abort();
    }
    if let Some(admin) = admin {
        admin.stop().await;
    }
    match served {
        Ok(served) => Ok(served?),
        Err(join) => Err(AppError::Runtime(io::Error::other(join))),
    }
}

/// The admin port while it serves.
struct Admin {
    addr: SocketAddr,
    stop: oneshot::Sender<()>,
    server: tokio::task::JoinHandle<io::Result<()>>,
}

impl Admin {
    async fn start(
        service: Arc<Service>,
        log: LogFilter,
        draining: watch::Receiver<bool>,
        addr: SocketAddr,
    ) -> Result<Self, AppError> {
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let bound = http::bind(service, log, draining, addr, shutdown).await;
        let (addr, server) = bound.map_err(|source| AppError::BindAdmin { addr, source })?;
        Ok(Self { addr, stop, server: tokio::spawn(server) })
    }

    async fn stop(self) {
        let _ = self.stop.send(());
        let _ = timeout(ADMIN_DRAIN, self.server).await;
    }
}

/// Does what time brings about, for ever.
pub async fn tick(service: Arc<Service>) {
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let service = service.clone();
        // It may have to wait for a decision, so it does that on a thread that may wait.
        if let Ok(expired @ 1..) = tokio::task::spawn_blocking(move || service.expire_reservations()).await {
            tracing::debug!("{expired} reservations expired");
        }
    }
}

/// Names refused pods that later changes freed, for ever.
async fn look_for_retries(service: Arc<Service>) {
    let mut ticks = interval(RETRY_TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        // Also when nobody waits any more: a look then lets go of what the last one kept.
        let service = service.clone();
        let _ = tokio::task::spawn_blocking(move || service.look_for_retries()).await;
    }
}

/// Reads the configuration file and the descheduler policy again on SIGHUP and when they changed, for ever.
async fn reload(service: Arc<Service>, mut hangups: Hangups) {
    let mut looks = interval(TICK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let always = tokio::select! {
            _ = looks.tick() => false,
            () = hangup(&mut hangups) => true,
        };
        let service = service.clone();
        let read = move || (service.reload_config(always), service.reload_policy(always));
        let Ok((reload, policy)) = tokio::task::spawn_blocking(read).await else { continue };
        match policy {
            PolicyReload::Unchanged => {}
            PolicyReload::Done { notes } => {
                tracing::info!("descheduler policy reloaded");
                notes.iter().for_each(|note| tracing::info!("descheduler policy: {note}"));
            }
            PolicyReload::Refused(errors) => {
                let mistakes = if errors.len() == 1 { "mistake" } else { "mistakes" };
                tracing::error!("descheduler policy has {} {mistakes}, that of before stays", errors.len());
                errors.iter().for_each(|error| tracing::error!("descheduler policy: {error}"));
            }
        }
        match reload {
            Reload::Unchanged => {}
            Reload::Done { profiles, notes } => {
                tracing::info!("configuration reloaded, profiles in force: {}", profiles.join(", "));
                notes.iter().for_each(|note| tracing::info!("configuration: {note}"));
            }
            Reload::Refused(errors) => {
                let mistakes = if errors.len() == 1 { "mistake" } else { "mistakes" };
                tracing::error!("configuration has {} {mistakes}, the profiles of before stay", errors.len());
                errors.iter().for_each(|error| tracing::error!("configuration: {error}"));
            }
        }
    }
}

#[cfg(unix)]
type Hangups = tokio::signal::unix::Signal;

#[cfg(unix)]
fn hangups() -> io::Result<Hangups> {
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())
}

#[cfg(unix)]
async fn hangup(hangups: &mut Hangups) {
    if hangups.recv().await.is_none() {
        std::future::pending::<()>().await;
    }
}

/// There is no such signal; the file's content says enough.
#[cfg(not(unix))]
type Hangups = ();

#[cfg(not(unix))]
fn hangups() -> io::Result<Hangups> {
    Ok(())
}

#[cfg(not(unix))]
async fn hangup(_: &mut Hangups) {
    std::future::pending::<()>().await;
}

/// The name of the first signal to stop.
#[cfg(unix)]
fn signals() -> io::Result<impl Future<Output = &'static str>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut term, mut int) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = term.recv() => "SIGTERM",
            _ = int.recv() => "SIGINT",
        }
    })
}

#[cfg(not(unix))]
fn signals() -> io::Result<impl Future<Output = &'static str>> {
    Ok(async {
        let _ = tokio::signal::ctrl_c().await;
        "Ctrl-C"
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_word() {
        let check = |addr: &str, insecure| check_addr(addr.parse().unwrap(), insecure).is_ok();
        assert!(check("127.0.0.1:1", false) && check("[::1]:1", false) && check("127.9.9.9:1", false));
        assert!(check("[::ffff:127.0.0.1]:1", false));
        assert!(!check("0.0.0.0:1", false) && !check("[::]:1", false) && !check("192.0.2.1:1", false));
        assert!(check("0.0.0.0:1", true));
    }
}
