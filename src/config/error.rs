//! What is wrong with a configuration file.

use std::fmt;

use crate::manifest::FieldError;
use crate::manifest::syntax::SyntaxError;

/// One mistake of a file. A file is refused with all of its mistakes at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("{file}: {reason}")]
    Unreadable { file: String, reason: String },
    #[error("{file}:{error}")]
    Syntax { file: String, error: SyntaxError },
    /// `scheduler.yaml: profiles[0].plugins.score.enabled[1].name: ...`; the message also says what was probably meant.
    #[error("{file}: {error}")]
    Field { file: String, error: FieldError },
}

/// Mistakes one below the other.
pub struct Lines<'a>(pub &'a [ConfigError]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            write!(f, "{}{error}", if i == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}
