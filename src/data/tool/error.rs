//! Failures of tools, as the guest sees them.

use std::borrow::Cow;
use std::fmt;

/// A tool's failure: raises an exception in the guest, with this class and message.
///
/// If the class name is that of a built-in exception, such as `ValueError` or `KeyError`, that
/// class is raised. Any other name becomes a subclass of `RuntimeError`, or of the classes that
/// [`based_on`](Self::based_on) names, so that `except RuntimeError` catches it.
///
/// With `?` any error converts to a `RuntimeError` with the messages of the error and of its
/// sources, except those that the text before them includes. The guest sees these messages, so they
/// must not contain anything secret.
///
/// ```
/// use isolet::ToolError;
///
/// let error = ToolError::new("LookupError", "no such page");
/// assert_eq!(error.to_string(), "LookupError: no such page");
///
/// let error: ToolError = "ten".parse::<u8>().unwrap_err().into();
/// assert_eq!(error.to_string(), "RuntimeError: invalid digit found in string");
///
/// let error = ToolError::new("NoSuchPage", "page 7").based_on("LookupError");
/// assert_eq!(error.bases(), ["LookupError"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    type_name: Cow<'static, str>,
    message: String,
    bases: Vec<Cow<'static, str>>,
    exceptions: Vec<Self>,
}

/// The maximum length of a message of the host's own, in characters.
const REFUSAL_CHARS: usize = 4096;

impl ToolError {
    /// Makes an error with the class and message of its exception.
    pub fn new(type_name: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        let (type_name, message) = (type_name.into(), message.into());
        Self { type_name, message, bases: Vec::new(), exceptions: Vec::new() }
    }

    /// Adds a class that the exception's class is based on, by its name in the standard library,
    /// such as `LookupError` or `json.decoder.JSONDecodeError`. Default: `RuntimeError`.
    ///
    /// Who names several names the nearest first. What the guest has no such exception for counts
    /// for nothing. If the last part of a name is the class name, then that class is raised.
    #[must_use]
    pub fn based_on(mut self, base: impl Into<Cow<'static, str>>) -> Self {
        self.bases.push(base.into());
        self
    }

    /// Adds an exception to those that this one is a group of, for `except*`. The guest gets an
    /// `ExceptionGroup`, or a class of this name that is [based on](Self::based_on) it.
    #[must_use]
    pub fn with_exception(mut self, exception: Self) -> Self {
        self.exceptions.push(exception);
        self
    }

    /// Returns the name of the exception's class.
    #[must_use]
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Returns the exception's message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Returns the names of the classes that the exception's class is based on.
    #[must_use]
    pub fn bases(&self) -> &[Cow<'static, str>] {
        &self.bases
    }

    /// Returns the exceptions that this one is a group of.
    #[must_use]
    pub fn exceptions(&self) -> &[Self] {
        &self.exceptions
    }

    /// Cuts a long message. A refusal of the host may repeat what the guest has sent.
    pub(crate) fn shortened(mut self) -> Self {
        if let Some((end, _)) = self.message.char_indices().nth(REFUSAL_CHARS) {
            self.message.truncate(end);
            self.message.push_str("...");
            self.message.shrink_to_fit();
        }
        self
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.type_name, self.message)
    }
}

// Does not implement `Error`, so that every `Error` can convert to it.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let text = cause.to_string();
            if !message.contains(&text) {
                message = format!("{message}: {text}");
            }
            source = cause.source();
        }
        Self::new("RuntimeError", message)
    }
}
