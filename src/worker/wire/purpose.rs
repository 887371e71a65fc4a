//! What a worker is started for.

use serde::{Deserialize, Serialize};

/// What a worker is started for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// A session.
    Session,
    /// A session of an image that was made by workers: it is locked down before it uses anything of
    /// the image that came from them.
    ConfinedSession,
    /// Being copied. The socket is for the template's records (`template_record.rs`).
    Template,
    /// The same, for workers that can be copied while they have a session.
    ForkableTemplate,
    /// Making an image with these modules: it imports them in an interpreter that does not start
    /// from the image, takes only CPython's code from it, and sends its memory.
    Import(Vec<String>),
    /// Making an image: it runs a session of the image and sends the native code of its libraries.
    Compile,
}

impl Purpose {
    /// Returns how many replies a worker gives without a command.
    pub(crate) fn unasked_replies(&self) -> usize {
        usize::from(matches!(self, Self::Import(_) | Self::Compile))
    }

    /// Returns `true` for a process that makes workers.
    pub(crate) fn is_template(&self) -> bool {
        matches!(self, Self::Template | Self::ForkableTemplate)
    }
}
