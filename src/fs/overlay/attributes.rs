//! File attributes that an overlay reports in place of the host's.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::super::request::{FileKind, FileStat};
use super::super::volume::Times;

const PERMISSIONS: u32 = 0o777;

/// Attributes that were set. The others are the host's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Attributes {
    mode: Option<u32>,
    accessed_ms: Option<f64>,
    modified_ms: Option<f64>,
    changed_ms: Option<f64>,
}

impl Attributes {
    /// Returns the attributes of a file that is created now.
    pub(super) fn made_now() -> Self {
        let now = Some(now_ms());
        Self { mode: None, accessed_ms: now, modified_ms: now, changed_ms: now }
    }

    /// Returns all attributes of an existing file.
    pub(super) fn of(stat: &FileStat) -> Self {
        Self {
            mode: Some(stat.mode),
            accessed_ms: Some(stat.accessed_ms),
            modified_ms: Some(stat.modified_ms),
            changed_ms: Some(stat.changed_ms),
        }
    }

    /// Returns `true` if any attribute was set.
    pub(super) fn any(&self) -> bool {
        self.changed_ms.is_some()
    }

    pub(super) fn set_mode(&mut self, mode: u32) {
        self.mode = Some(mode & PERMISSIONS);
        self.changed_ms = Some(now_ms());
    }

    pub(super) fn set_times(&mut self, times: Times) {
        self.accessed_ms = Some(times.accessed_ms);
        self.modified_ms = Some(times.modified_ms);
        self.changed_ms = Some(now_ms());
    }

    /// Records that the contents changed now.
    pub(super) fn touch(&mut self) {
        let now = Some(now_ms());
        (self.modified_ms, self.changed_ms) = (now, now);
    }

    /// Returns `stat` with the attributes that were set.
    pub(super) fn apply(&self, stat: FileStat) -> FileStat {
        FileStat {
            mode: self.mode.unwrap_or(stat.mode),
            accessed_ms: self.accessed_ms.unwrap_or(stat.accessed_ms),
            modified_ms: self.modified_ms.unwrap_or(stat.modified_ms),
            changed_ms: self.changed_ms.unwrap_or(stat.changed_ms),
            ..stat
        }
    }
}

/// Describes a file that the host does not have, before its attributes are applied.
pub(super) fn own(kind: FileKind, size: u64, inode: u64) -> FileStat {
    let mode = match kind {
        FileKind::File => 0o644,
        FileKind::Directory => 0o755,
        FileKind::Link => 0o777,
    };
    let (modified_ms, accessed_ms, changed_ms) = (0.0, 0.0, 0.0);
    FileStat { kind, size, mode, modified_ms, accessed_ms, changed_ms, inode }
}

/// Returns the time, no finer than the guest's own clock.
fn now_ms() -> f64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_secs_f64() * 1e3).floor()
}
