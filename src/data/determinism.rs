//! What the sessions of a deterministic sandbox depend on, beside their programs.

use std::time::{Duration, SystemTime};

/// The chance and the time of a deterministic session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Determinism {
    /// What all entropy is derived from.
    pub(crate) seed: u64,
    /// The time of day at which each session starts.
    pub(crate) start_time: SystemTime,
    pub(crate) clocks: Clocks,
}

/// What the clocks of a session go by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clocks {
    /// The looks of the guest, its steps and its waits.
    Virtual,
    /// The same, in a session that is recorded.
    RecordedVirtual,
    /// Those of the host, in a session that is recorded.
    RecordedReal,
}

impl Clocks {
    /// Returns the number by which an isolate knows it.
    pub(crate) fn number(self) -> u32 {
        match self {
            Self::Virtual => 0,
            Self::RecordedVirtual => 1,
            Self::RecordedReal => 2,
        }
    }
}

impl Determinism {
    /// Returns the time of day at which sessions start that are told none: 2026-01-01 in UTC.
    pub(crate) fn default_start() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_hours(490_896)
    }
}
