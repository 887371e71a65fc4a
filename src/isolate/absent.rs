//! Isolates where there are none: without the feature `engine`, no V8 is linked.

#![expect(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "the functions have the signatures that they have with the engine"
)]

use std::sync::Arc;

use crate::data::error::{Error, ErrorKind};
use crate::image::ImageFile;
use crate::protocol::{Host, Link};

/// What isolates would start from.
pub(crate) struct Threads;

impl Threads {
    /// Takes nothing: the workers have the image.
    pub(crate) fn new(_image: Arc<ImageFile>) -> Result<Self, Error> {
        Ok(Self)
    }

    /// Says that there is no V8.
    pub(crate) fn spawn(
        &self,
        _host: Arc<dyn Host>,
        _max_memory_bytes: u64,
        _max_report_bytes: u64,
        _spins: bool,
    ) -> Result<Link, Error> {
        let message = "isolation `thread` runs V8 in this process, and isolet was built without \
                       its feature `engine`";
        let hint = "use `Isolation::Process`, or build isolet with the feature `engine`";
        Err(Error::new(ErrorKind::Config, message).with_hint(hint))
    }
}

/// Returns 0: no thread is ever started.
pub(crate) fn lost_threads() -> usize {
    0
}
