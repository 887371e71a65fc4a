//! Ops: thin functions that take bytes from JavaScript, ask the host or the isolate's state, and
//! return.

#![expect(
    clippy::needless_pass_by_value,
    reason = "for an argument of `&str` an op calls the `toString` of the guest's objects; for one \
              of `String` it takes strings only"
)]

pub(crate) mod boot;
pub(crate) mod entropy;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod net;
pub(crate) mod run;
pub(crate) mod saved;
pub(crate) mod shell;
pub(crate) mod stdio;
#[cfg(test)]
mod tests;
pub(crate) mod text;
pub(crate) mod time;
pub(crate) mod tool;
pub(crate) mod wasm;

/// Fills a buffer that JavaScript has made, so that it counts as the session's memory.
fn fill(target: &mut [u8], bytes: &[u8]) -> Result<(), OpError> {
    if target.len() != bytes.len() {
        return Err(OpError::Size { got: target.len(), needed: bytes.len() });
    }
    target.copy_from_slice(bytes);
    Ok(())
}

/// Why an op failed; becomes a JavaScript exception in the guest.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
pub(crate) enum OpError {
    /// The host's own message.
    #[class(generic)]
    #[error("{0}")]
    Host(String),
    /// A buffer does not have the required size.
    #[class(range)]
    #[error("the buffer has {got} bytes, {needed} are needed")]
    Size { got: usize, needed: usize },
    /// The argument is larger than the op accepts.
    #[class(range)]
    #[error("the data has {got} bytes, the limit is {limit}")]
    TooLarge { got: usize, limit: usize },
    /// The session has too many timers.
    #[class(range)]
    #[error("too many timers: limit {limit}, needed {needed}")]
    Timers { limit: u32, needed: u32 },
    /// An argument has the wrong kind.
    #[class(type)]
    #[error("the argument must be {0}")]
    Argument(&'static str),
    /// A text is not valid in its encoding.
    #[class(type)]
    #[error("the data is not valid {0}")]
    Encoding(&'static str),
    /// The op belongs to another phase of the isolate's life.
    #[class(generic)]
    #[error("{0} is not available now")]
    Phase(&'static str),
}
