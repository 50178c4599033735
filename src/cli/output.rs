//! Writing to standard output and error without panicking when the reader has gone away (`berth ... | head`).

use std::io::{self, Write};

/// Prints a line; false when nobody reads any more.
pub(super) fn line(text: impl std::fmt::Display) -> bool {
    writeln!(io::stdout().lock(), "{text}").is_ok()
}

/// Prints a line for people to standard error.
pub(super) fn complain(text: impl std::fmt::Display) {
    // If standard error is gone there is nobody left to tell.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
