//! How a fetch tells what it is doing, so that the caller decides what a person sees.

#[cfg(feature = "progress")]
mod bar;

#[cfg(feature = "progress")]
pub use self::bar::Bar;

/// Follows a fetch.
///
/// Steps come one after the other: [`start`](Self::start), any number of
/// [`advance`](Self::advance), [`finish`](Self::finish). A `start` without a `finish` before it
/// means that the step began again, and an error may leave the last step unfinished.
pub trait Progress {
    /// A step begins. `what` is a few words; `total` its size in bytes, 0 when nobody can tell.
    fn start(&mut self, what: &str, total: u64);

    /// The step got `bytes` further.
    fn advance(&mut self, bytes: u64);

    /// The step is done.
    fn finish(&mut self);
}

/// Follows a fetch and shows nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&mut self, _what: &str, _total: u64) {}

    fn advance(&mut self, _bytes: u64) {}

    fn finish(&mut self) {}
}
