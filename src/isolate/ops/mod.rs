//! Ops: thin. Each takes bytes from JavaScript, asks the host or the isolate's state, and returns.

#![expect(
    clippy::needless_pass_by_value,
    reason = "for an argument of `&str` an op calls the `toString` of the guest's objects; for one of \
              `String` it takes strings only"
)]

pub(crate) mod boot;
pub(crate) mod entropy;
pub(crate) mod file;
pub(crate) mod memory;
pub(crate) mod net;
pub(crate) mod run;
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

/// Why an op failed; a JavaScript exception in the guest.
#[derive(Debug, thiserror::Error, deno_error::JsError)]
pub(crate) enum OpError {
    /// The host's own words.
    #[class(generic)]
    #[error("{0}")]
    Host(String),
    /// A buffer is not of the size that the other side of it has.
    #[class(range)]
    #[error("the buffer has {got} bytes, {needed} are needed")]
    Size { got: usize, needed: usize },
    /// More than an op takes.
    #[class(range)]
    #[error("the data has {got} bytes, the limit is {limit}")]
    TooLarge { got: usize, limit: usize },
    /// More timers than a session may have.
    #[class(range)]
    #[error("too many timers: limit {limit}, needed {needed}")]
    Timers { limit: u32, needed: u32 },
    /// An argument of another kind.
    #[class(type)]
    #[error("the argument must be {0}")]
    Argument(&'static str),
    /// Text that is not what its encoding says.
    #[class(type)]
    #[error("the data is not valid {0}")]
    Encoding(&'static str),
    /// An op that belongs to another phase of the isolate's life.
    #[class(generic)]
    #[error("{0} is not available now")]
    Phase(&'static str),
}
