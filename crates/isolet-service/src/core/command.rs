//! Commands for sessions.

use std::sync::Arc;

use isolet::Value;

use super::answers::{Confinement, Entry, Package, StoppedAt, Variable};
use super::beginning::{Beginning, GoOnOptions, JournalEntry};
use super::lending::LentSession;
use super::reply::Answering;
use super::session::SessionEntry;
use super::tools::{SubmitEntry, ToolEntry};
use super::{Execution, Failure, Listener, Reply, Run};

/// A command for a session, with the receiver of its answer.
pub enum Command {
    Open {
        beginning: Beginning,
        reply: Reply<Confinement>,
    },
    Close {
        reply: Reply<()>,
    },
    Reset {
        reply: Reply<Confinement>,
    },
    /// Lend the library's session.
    Lend {
        reply: Reply<LentSession>,
    },
    /// Copy the session.
    Fork {
        copy: Arc<SessionEntry>,
        reply: Reply<Confinement>,
    },
    /// Save the session to this file.
    Save {
        path: String,
        reply: Reply<()>,
    },
    /// Keep the state, to go on from it when a run has ended the interpreter.
    Checkpoint {
        reply: Reply<()>,
    },
    /// Record the session from here on.
    Record {
        journal: JournalEntry,
        reply: Reply<()>,
    },
    /// Record the session no longer.
    EndRecording {
        reply: Reply<()>,
    },
    /// Run the next run of the session's journal, if there is one.
    GoOn {
        options: GoOnOptions,
        listener: Arc<dyn Listener>,
        reply: Reply<Option<Execution>>,
    },
    /// Bind the local variables of where a run was stopped that is looked back at.
    BindLocals {
        reply: Reply<Option<StoppedAt>>,
    },
    Run {
        run: Run,
        listener: Arc<dyn Listener>,
        reply: Reply<Execution>,
    },
    /// A run that was interrupted before its turn.
    Interrupted {
        reply: Reply<Execution>,
    },
    Set {
        variables: Vec<(String, Value)>,
        reply: Reply<()>,
    },
    Get {
        name: String,
        reply: Reply<Option<Value>>,
    },
    Delete {
        name: String,
        reply: Reply<bool>,
    },
    Variables {
        reply: Reply<Vec<Variable>>,
    },
    Complete {
        text: String,
        reply: Reply<Vec<String>>,
    },
    Register {
        tools: Vec<ToolEntry>,
        reply: Reply<()>,
    },
    Submit {
        submit: SubmitEntry,
        reply: Reply<()>,
    },
    LoadPackages {
        requirements: Vec<String>,
        reply: Reply<Vec<Package>>,
    },
    PutFile {
        path: String,
        contents: Vec<u8>,
        reply: Reply<()>,
    },
    GetFile {
        path: String,
        reply: Reply<Option<Vec<u8>>>,
    },
    ListFiles {
        path: String,
        reply: Reply<Vec<Entry>>,
    },
    RemoveFile {
        path: String,
        reply: Reply<bool>,
    },
}

impl Command {
    /// Answers the command with a failure.
    pub(crate) fn refuse(self, failure: &Failure) {
        self.refused(failure)();
    }

    pub(crate) fn refused(self, failure: &Failure) -> Answering {
        let failure = failure.clone();
        match self {
            Self::Open { reply, .. } | Self::Reset { reply } | Self::Fork { reply, .. } => {
                reply.with(Err(failure))
            }
            Self::Close { reply }
            | Self::Save { reply, .. }
            | Self::Checkpoint { reply }
            | Self::Record { reply, .. }
            | Self::EndRecording { reply }
            | Self::Set { reply, .. }
            | Self::Register { reply, .. }
            | Self::Submit { reply, .. }
            | Self::PutFile { reply, .. } => reply.with(Err(failure)),
            Self::Run { reply, .. } | Self::Interrupted { reply } => reply.with(Err(failure)),
            Self::GoOn { reply, .. } => reply.with(Err(failure)),
            Self::BindLocals { reply } => reply.with(Err(failure)),
            Self::Lend { reply } => reply.with(Err(failure)),
            Self::Get { reply, .. } => reply.with(Err(failure)),
            Self::Delete { reply, .. } | Self::RemoveFile { reply, .. } => reply.with(Err(failure)),
            Self::Variables { reply } => reply.with(Err(failure)),
            Self::Complete { reply, .. } => reply.with(Err(failure)),
            Self::LoadPackages { reply, .. } => reply.with(Err(failure)),
            Self::GetFile { reply, .. } => reply.with(Err(failure)),
            Self::ListFiles { reply, .. } => reply.with(Err(failure)),
        }
    }
}
