//! The log: lines on standard error, as text or JSON, under a filter that can be changed while the process runs.
//!
//! A filter is a list such as `info` or `warn,berth=debug`. The library below would take a mistyped level (`inof`) for the
//! name of a module and log nothing else from then on, so words that are neither a level nor a module of Berth's are refused
//! here.

use std::io::{self, IsTerminal};

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry, reload};

/// What is logged unless `--log` or `RUST_LOG` says otherwise.
pub const DEFAULT_FILTER: &str = "info";

/// How lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    #[error("{filter:?} is no log filter: {reason}; write for example info, or warn,berth=debug")]
    Filter { filter: String, reason: String },
    #[error("the log can't be changed: {0}")]
    Fixed(String),
}

/// Changes the filter of the log that [`start`] began. Clones change the same log.
#[derive(Debug, Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// The filter in force.
    ///
    /// # Errors
    /// Something else has taken the log over.
    pub fn get(&self) -> Result<String, LogError> {
        self.0.with_current(ToString::to_string).map_err(|error| LogError::Fixed(error.to_string()))
    }

    /// Puts another filter in force, at once and for all threads.
    ///
    /// # Errors
    /// It is no filter, and the one before stays.
    pub fn set(&self, text: &str) -> Result<(), LogError> {
        let filter = parse(text)?;
        self.0.reload(filter).map_err(|error| LogError::Fixed(error.to_string()))
    }
}

/// Logs to standard error from now on, by `filter`, else by `RUST_LOG`.
///
/// # Errors
/// The filter is none.
pub fn start(filter: Option<&str>, format: Format) -> Result<LogFilter, LogError> {
    let from_env = std::env::var(EnvFilter::DEFAULT_ENV).ok().filter(|text| !text.trim().is_empty());
    let text = filter.map(str::to_owned).or(from_env).unwrap_or_else(|| DEFAULT_FILTER.to_owned());
    let (log, filter) = build(&text, format)?;
    // A process starts one log, before anything else could.
    let _ = log.try_init();
    Ok(filter)
}

/// A log, and what changes its filter for as long as it lives.
///
/// # Errors
/// The filter is none.
pub fn build(filter: &str, format: Format) -> Result<(impl Subscriber + Send + Sync, LogFilter), LogError> {
    let (filter, handle) = reload::Layer::new(parse(filter)?);
    let lines = tracing_subscriber::fmt::layer().with_writer(io::stderr);
    let lines = match format {
        Format::Text => lines.with_ansi(io::stderr().is_terminal()).boxed(),
        // The call's span has all that a line needs to be found by; its parents have none.
        Format::Json => lines.json().flatten_event(true).with_span_list(false).boxed(),
    };
    Ok((tracing_subscriber::registry().with(filter).with(lines), LogFilter(handle)))
}

fn parse(text: &str) -> Result<EnvFilter, LogError> {
    let refuse = |reason: String| LogError::Filter { filter: text.to_owned(), reason };
    let words = || text.split(',').map(str::trim);
    if words().all(str::is_empty) {
        return Err(refuse("it is empty".to_owned()));
    }
    let is_ours = |word: &str| word == "berth" || word.starts_with("berth::");
    let is_more = |word: &str| word.contains(['=', '[', ']', '{', '}']);
    let strange = words()
        .find(|word| !word.is_empty() && !is_more(word) && !is_ours(word) && word.parse::<LevelFilter>().is_err());
    if let Some(word) = strange {
        return Err(refuse(format!("{word:?} is no level; there is off, error, warn, info, debug, trace")));
    }
    EnvFilter::try_new(text.trim()).map_err(|error| refuse(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_read_as_people_write_them() {
        for good in ["info", "WARN", "off", "warn,berth=debug", " debug ", "berth", "berth::api=trace,error", "info,"] {
            assert!(parse(good).is_ok(), "{good}: {:?}", parse(good));
        }
    }

    #[test]
    fn a_mistyped_level_is_refused_and_named() {
        for (bad, part) in
            [("inof", "\"inof\""), ("warn,debig", "\"debig\""), ("", "empty"), (",", "empty"), ("a=b=c", "a=b=c")]
        {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains(part) && error.contains("write for example"), "{bad}: {error}");
        }
    }
}
