//! The command that makes a booted interpreter a session's, which an interpreter that waits for a
//! session can be given in advance.

use std::sync::Arc;

use crate::protocol::codec;
use crate::protocol::{Command, Message, StartCommand};

/// The longest command that is kept for interpreters that wait, in bytes.
const KEPT_BYTES: usize = 1 << 20;

/// An encoded start-up command. Sessions that start up with equal ones are interchangeable.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Startup {
    frame: Arc<[u8]>,
    is_general: bool,
}

impl Startup {
    /// `is_general` says that the command needs nothing of one session's host, and that it may be
    /// kept.
    pub(crate) fn new(command: StartCommand, is_general: bool) -> Self {
        Self { frame: codec::encode(Command::Start(command)).into(), is_general }
    }

    pub(crate) fn message(&self) -> Message {
        Message::Command(self.frame.to_vec())
    }

    /// Returns `true` if an interpreter may carry it out before there is a session.
    pub(super) fn may_come_first(&self) -> bool {
        self.is_general && self.frame.len() <= KEPT_BYTES
    }
}
