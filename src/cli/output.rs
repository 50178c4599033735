//! Writing to standard output and error without panicking when the reader has gone away (`berth ... | head`).

use std::io::{self, Write};

/// Prints a line; false when nobody reads any more.
pub(super) fn line(text: impl std::fmt::Display) -> bool {
    writeln!(io::stdout().lock(), "{text}").is_ok()
}

/// # Errors
/// The value can't be written as YAML.
pub(super) fn yaml(value: &serde_json::Value) -> Result<String, String> {
    let text = serde_saphyr::to_string(value).map_err(|error| format!("can't write YAML: {error}"))?;
    Ok(text.trim_end().to_owned())
}

/// Prints a line for people to standard error.
pub(super) fn complain(text: impl std::fmt::Display) {
    // If standard error is gone there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
