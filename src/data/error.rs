//! The error type for failures of the host. Python exceptions are outcomes instead.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use isolet_pyodide_assets::Error as AssetsError;

use super::execution::PyException;

/// A failure of the host.
///
/// A Python exception is not an `Error` but [`Outcome::Raised`](crate::Outcome::Raised), and a
/// limit that ended a run is [`Outcome::Terminated`](crate::Outcome::Terminated).
/// [`Execution::into_result`](crate::Execution::into_result) converts both into an `Error`.
///
/// `Display` gives the whole message, which includes the text of the cause. `source()` returns the
/// cause, such as a [`std::io::Error`], for a program to downcast and match. A message made of both
/// would say the cause twice, so print the `Error` alone (`{error}`; with anyhow not `{error:#}`).
///
/// `Debug` gives the message and, after an empty line, the [hint](Self::hint), for people: this is
/// what a `main` prints that returns `Result<(), isolet::Error>`. `{error:#?}` gives the fields.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: Cow<'static, str>,
    hint: Option<Cow<'static, str>>,
    survives: bool,
    exception: Option<PyException>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A setting is invalid: returned when a sandbox is built.
    Config,
    /// An asset is missing, has the wrong digest or cannot be fetched.
    Assets,
    /// The engine or an interpreter could not start.
    Start,
    /// The session was closed by its owner or by a limit.
    Closed,
    /// The session is already running something.
    Busy,
    /// A limit ended the run.
    Limit,
    /// The guest raised an exception.
    Raised,
    /// A value cannot cross between host and guest.
    Value,
    /// A package cannot be resolved, fetched or loaded.
    Packages,
    /// A journal cannot be read or written, or the session does something else than when it was
    /// recorded.
    Journal,
    /// The guest's side failed: its interpreter died or its reply could not be decoded.
    WorkerDied,
}

impl Error {
    /// Makes an error of a program or crate that extends isolet. The session does not survive it.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self(Box::new(Inner {
            kind,
            message,
            hint: None,
            survives: false,
            exception: None,
            source: None,
        }))
    }

    /// Makes the error for assets that cannot be used.
    pub(crate) fn of_assets(error: AssetsError) -> Self {
        let made = Self::new(ErrorKind::Assets, error.to_string());
        match error {
            AssetsError::Read { cause, .. } | AssetsError::Write { cause, .. } => {
                made.with_source(cause)
            }
            _ => made,
        }
    }

    /// Adds what helps: the option or call.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause. The message has its text already.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    #[must_use]
    pub(crate) fn with_session_alive(mut self) -> Self {
        self.0.survives = true;
        self
    }

    #[must_use]
    pub(crate) fn with_exception(mut self, exception: PyException) -> Self {
        self.0.exception = Some(exception);
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns `true` if the session that returned this error can run more code.
    #[must_use]
    pub fn session_survives(&self) -> bool {
        self.0.survives
    }

    /// Returns the Python exception that this error was converted from, if any.
    #[must_use]
    pub fn exception(&self) -> Option<&PyException> {
        self.0.exception.as_ref()
    }

    /// Returns a suggestion of what a person could do about the error, if there is one.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, message, hint, survives, exception, source } = &*self.0;
        if f.alternate() {
            let mut fields = f.debug_struct("Error");
            fields.field("kind", kind).field("message", message).field("hint", hint);
            fields.field("session_survives", survives).field("exception", exception);
            return fields.field("source", source).finish();
        }
        f.write_str(message)?;
        match hint {
            Some(hint) => write!(f, "\n\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.0.source {
            Some(source) => Some(&**source),
            None => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn the_source_is_the_cause_and_can_be_downcast() {
        let cause = io::Error::from(io::ErrorKind::NotFound);
        let error = Error::new(ErrorKind::Config, format!("no `x`: {cause}")).with_source(cause);
        let source = error.source().and_then(|source| source.downcast_ref::<io::Error>());
        assert_eq!(source.map(io::Error::kind), Some(io::ErrorKind::NotFound));
        assert!(Error::new(ErrorKind::Busy, "busy").source().is_none());
    }

    #[test]
    fn a_main_that_returns_an_error_prints_its_message_and_its_hint() {
        let error = Error::new(ErrorKind::Config, "cannot mount `/`");
        assert_eq!(format!("{error:?}"), "cannot mount `/`");
        let error = error.with_hint("mount a directory");
        assert_eq!(format!("{error:?}"), "cannot mount `/`\n\nhint: mount a directory");
        assert_eq!(error.to_string(), "cannot mount `/`");
        let fields = format!("{error:#?}");
        assert!(fields.starts_with("Error {\n    kind: Config,\n"), "{fields}");
    }
}
