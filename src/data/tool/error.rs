//! Failures of host functions, as the guest sees them.

use std::borrow::Cow;
use std::fmt;

/// A host function's failure: an exception in the guest, with this class and message.
///
/// If the class is one of Python's built-in ones, such as `ValueError` or `KeyError`, that one is
/// raised. Any other name becomes a subclass of `RuntimeError` of that name, so that
/// `except RuntimeError` catches it.
///
/// Any error turns into one by `?`, as a `RuntimeError` with the messages of the error and of its
/// sources. It says to the guest what it says, so leave out of it what the guest must not know.
///
/// ```
/// use isolet::ToolError;
///
/// let error = ToolError::new("LookupError", "no such page");
/// assert_eq!(error.to_string(), "LookupError: no such page");
///
/// let error: ToolError = "ten".parse::<u8>().unwrap_err().into();
/// assert_eq!(error.to_string(), "RuntimeError: invalid digit found in string");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolError {
    type_name: Cow<'static, str>,
    message: String,
}

impl ToolError {
    /// Makes an error whose exception has this class and message.
    pub fn new(type_name: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { type_name: type_name.into(), message: message.into() }
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
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.type_name, self.message)
    }
}

// Not an `Error` itself, so that every `Error` can turn into one.
impl<E: std::error::Error> From<E> for ToolError {
    fn from(error: E) -> Self {
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        Self::new("RuntimeError", message)
    }
}
