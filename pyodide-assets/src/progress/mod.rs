//! How a fetch reports its progress, so that the caller decides what is shown.

#[cfg(feature = "progress")]
mod bar;

#[cfg(feature = "progress")]
pub use self::bar::Bar;

/// Receives the progress of a fetch.
///
/// Steps come one after another: [`start`](Self::start), any number of [`advance`](Self::advance),
/// [`finish`](Self::finish). A `start` without a preceding `finish` means that the step began
/// again. An error may leave the last step unfinished.
pub trait Progress {
    /// A step begins. `what` is a short description; `total` is its size in bytes, 0 if unknown.
    fn start(&mut self, what: &str, total: u64);

    /// The step advanced by `bytes`.
    fn advance(&mut self, bytes: u64);

    /// The step is complete.
    fn finish(&mut self);
}

/// Ignores the progress of a fetch.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&mut self, _what: &str, _total: u64) {}

    fn advance(&mut self, _bytes: u64) {}

    fn finish(&mut self) {}
}
