//! What a journal consists of. All of it is read as hostile.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::execution::{LimitKind, MemoryKind, Termination};
use crate::fs::{Before, FileError};
use crate::host::saved::SavedPackage;
use crate::protocol::happened::Event;
use crate::protocol::{HostReply, HostRequest};

/// The digest of what the guest has asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    /// Returns the digest of a request. It is the same in each replay.
    pub(super) fn of(request: &HostRequest<'_>) -> Self {
        // Fails only for what cannot be serialized, and everything that a worker sends can be.
        Self::of_bytes(&postcard::to_allocvec(request).unwrap_or_default())
    }

    /// Returns that of a read of a file.
    pub(super) fn of_read(file: u32, offset: u64, length: usize) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"read a file");
        hasher.update(&file.to_le_bytes());
        hasher.update(&offset.to_le_bytes());
        hasher.update(&(length as u64).to_le_bytes());
        Self::of_hash(&hasher)
    }

    /// Returns that of bytes.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(bytes);
        Self::of_hash(&hasher)
    }

    fn of_hash(hasher: &blake3::Hasher) -> Self {
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        Self(digest)
    }
}

/// Whether the call of a tool may be made again whose answer was lost, by the tool's own word when
/// the call was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CallAgain {
    Never,
    /// If the tool had not noted that it begins.
    UnlessBegun,
    Always,
}

/// A part of a journal.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Record {
    /// The first one. The saved session that the journal begins with follows it, if there is one:
    /// so many bytes.
    Begin { begin: Begin, saved_bytes: u64 },
    /// A command began.
    Command(CommandRecord),
    /// It ended.
    Ended(Ending),
    /// Events, appended to each other.
    Happened(#[serde(with = "serde_bytes")] Vec<u8>),
    /// The guest made a call that is answered later.
    Asked {
        call: u32,
        digest: Digest,
        milliseconds: u64,
        /// For the call of a tool, whether it may be made again.
        again: Option<CallAgain>,
    },
    /// The call of a deferred tool has begun.
    Begun(u32),
    /// Its answer.
    Answered {
        call: u32,
        milliseconds: u64,
        /// Whether the host has refused the call.
        is_refusal: bool,
        #[serde(with = "serde_bytes")]
        answer: Vec<u8>,
    },
    /// The guest is about to change a file of the host, and there was this before.
    Effect(Digest, Before),
    /// What came of a request that is answered at once. `has_effect` if it is that of the last
    /// [`Effect`](Self::Effect).
    Replied { digest: Digest, has_effect: bool, milliseconds: u64, reply: Reply },
    /// The guest made so many requests that a replay makes again.
    Passed(u64),
    /// The session has these packages, as of the answer to this call, or because its owner has
    /// loaded some.
    Loaded { call: Option<u32>, packages: Vec<SavedPackage> },
}

impl Record {
    /// Returns the time of the record since the session began, if it has one.
    pub(super) fn milliseconds(&self) -> Option<u64> {
        match self {
            Self::Asked { milliseconds, .. }
            | Self::Answered { milliseconds, .. }
            | Self::Replied { milliseconds, .. } => Some(*milliseconds),
            Self::Happened(events) => {
                let clocks = Event::read_all(events).unwrap_or_default();
                let last = clocks.iter().rev().find_map(Event::time)?;
                // Not negative, and a whole number.
                Duration::try_from_secs_f64(last / 1e3).ok()?.as_millis().try_into().ok()
            }
            _ => None,
        }
    }
}

/// How a recorded session began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Begin {
    /// The program that has recorded it.
    pub(crate) program: String,
    /// The packages in the image that it started from.
    pub(crate) preloaded: Vec<String>,
    pub(crate) seed: u64,
    /// When it began, in milliseconds since 1970.
    pub(crate) started: f64,
    /// Whether its clocks are virtual.
    pub(crate) is_virtual: bool,
    /// The guest paths of its mounts, in the order of their numbers.
    pub(crate) mounts: Vec<String>,
}

/// A command, as its isolate got it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct CommandRecord {
    pub(crate) kind: CommandKind,
    /// How long it may take, in milliseconds.
    pub(crate) run_milliseconds: u64,
    /// The standard input, if it was known.
    pub(crate) stdin: Option<serde_bytes::ByteBuf>,
    #[serde(with = "serde_bytes")]
    pub(crate) frame: Vec<u8>,
}

/// What a command is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum CommandKind {
    /// The first one of a session.
    Start,
    /// The first one of a session that was saved.
    Resume,
    Run {
        /// Whether it is a whole program.
        is_program: bool,
    },
    /// The last one of a session.
    End,
    Other,
}

impl CommandKind {
    pub(crate) fn is_run(self) -> bool {
        matches!(self, Self::Run { .. })
    }
}

/// How a command ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ending {
    /// Whether it was interrupted.
    pub(crate) was_interrupted: bool,
    /// Why the host ended it, if it did, and with what the guest had printed.
    pub(crate) stopped: Option<Stopped>,
}

/// A command that the host has ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stopped {
    #[serde(with = "TerminationRecord")]
    pub(crate) termination: Termination,
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    /// How many displays, values and names of files it had given.
    pub(crate) given: u64,
    /// Whether that has ended the session.
    pub(crate) ends_session: bool,
}

/// A reply to a request that is answered at once.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    Host(HostReply),
    /// Bytes of a file.
    Read(Result<serde_bytes::ByteBuf, FileError>),
    /// Bytes of a file that the record at this place of the journal has, too.
    ReadAgain(u64),
}

/// A [`Termination`], as it is recorded.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Termination")]
enum TerminationRecord {
    Deadline {
        limit: Duration,
        observed: Duration,
    },
    HostTime {
        limit: Duration,
        observed: Duration,
    },
    Limit {
        #[serde(with = "LimitRecord")]
        kind: LimitKind,
        limit: u64,
        observed: u64,
    },
    Memory {
        #[serde(with = "MemoryRecord")]
        kind: MemoryKind,
        limit: u64,
        observed: u64,
    },
    Interrupted,
    Died {
        reason: String,
    },
}

/// A [`LimitKind`], as it is recorded.
#[derive(Serialize, Deserialize)]
#[serde(remote = "LimitKind")]
enum LimitRecord {
    ToolCalls,
    Refusals,
}

/// A [`MemoryKind`], as it is recorded.
#[derive(Serialize, Deserialize)]
#[serde(remote = "MemoryKind")]
enum MemoryRecord {
    Heap,
    Worker,
    PageTables,
}
