//! Replaces process isolation on systems other than Linux: workers cannot be locked down there.

#[path = "wire/purpose.rs"]
mod purpose;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::runtime::Handle;

pub(crate) use self::purpose::Purpose;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{IsolationReport, Layer, SystemCall};
use crate::protocol::{Host, Link};
use crate::support::shared_file::SharedFile;

const ELSEWHERE: &str = "isolation `process` exists on Linux only";

/// The processes that workers would be copied from.
#[derive(Default)]
pub(crate) struct Templates;

/// What a worker would be started with.
pub(crate) struct Launch<'a> {
    pub(crate) purpose: Purpose,
    pub(crate) program: &'a Path,
    pub(crate) image: &'a SharedFile,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) max_report_bytes: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) spins: bool,
    pub(crate) niceness: u8,
    pub(crate) required: &'a [Layer],
    pub(crate) templates: Option<&'a Templates>,
    pub(crate) max_copies: Option<usize>,
    pub(crate) event_loop: Option<&'a Handle>,
}

/// Fails, because there are no workers.
pub(crate) fn find_worker(_explicit: Option<&Path>) -> Result<PathBuf, Error> {
    Err(Error::new(ErrorKind::Config, ELSEWHERE))
}

/// What a worker would be.
pub(crate) struct Launched {
    pub(crate) link: Link,
    pub(crate) report: IsolationReport,
    pub(crate) is_copy: bool,
}

/// Fails as [`find_worker`], which is called first.
pub(crate) async fn launch(_launch: Launch<'_>) -> Result<Launched, Error> {
    Err(Error::new(ErrorKind::Config, ELSEWHERE))
}

/// Fails, because there are no workers.
pub(crate) fn check_event_loop(_runtime: &Handle) -> Result<(), Error> {
    Err(Error::new(ErrorKind::Config, ELSEWHERE))
}

/// Returns the system calls that do not kill a worker: none, since there are no workers.
#[must_use]
pub fn system_calls() -> Vec<SystemCall> {
    Vec::new()
}
