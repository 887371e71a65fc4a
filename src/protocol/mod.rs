//! The messages between an isolate, its session and its host.
//!
//! [`Message`] and [`Reply`] pass between a session and its isolate, [`HostRequest`] and
//! [`HostReply`] between the isolate and the [`Host`], which holds all policy. An isolate on
//! another thread receives them through channels and direct calls; one in another process receives
//! them as frames (`crate::worker`). Data for the guest crosses in the encoding that the guest
//! reads, so that no isolate needs to decode it.

pub(crate) mod codec;
pub(crate) mod happened;
mod request;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

pub(crate) use self::request::{HostReply, HostRequest, NAME_BYTES, NetRequest};
use crate::data::cell::{Program, Role, Syntax};
use crate::data::determinism::Determinism;
use crate::data::error::Error;
use crate::data::execution::{MemoryKind, PyException, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::terminal::Terminal;
use crate::data::tool::ToolSpec;
use crate::data::value::Value;
use crate::fs::FileError;
use crate::support::block_on::PollSource;

/// A message from a session to its isolate.
#[derive(Debug)]
pub(crate) enum Message {
    /// Runs the [`Command`] in this frame and replies. Commands run one at a time.
    Command(Vec<u8>),
    /// A peek: runs the command in this frame now, even if a run is waiting for something. The
    /// command runs no cell. The reply repeats the number. Without a frame it only tells that the
    /// run waits.
    Peek(u64, Vec<u8>),
    /// The answer to the call of this number, in the guest's encoding.
    Answer(u32, Bytes),
    /// Copies the process of the isolate. Comes between commands, through a [`Forker`].
    Fork,
    /// Makes the interpreter the saved session that the host has, then runs the [`Command`] in this
    /// frame and replies. In place of a session's first command.
    Restore(Vec<u8>),
}

/// A command from a session to its isolate.
#[derive(Debug)]
pub(crate) enum Command {
    /// Runs the start-up sequence this many times, so that V8 optimises it. Only valid before
    /// `Start`; leaves no guest state.
    Rehearse(u32),
    /// Assigns the restored interpreter to a session. The first command of a session.
    Start(StartCommand),
    /// Runs what programs have registered with `os.register_at_fork`, at this moment of a fork.
    Fork(ForkMoment),
    /// Does what python does at its exit. The last command of a session.
    End,
    /// Has the session saved: the host gets it before the reply.
    Save {
        /// What is in the buffers of open files is written first.
        flushes_files: bool,
    },
    /// Goes on as a session that was saved.
    Resume {
        /// The guest's environment variables, in addition to those that it had.
        env: Vec<(String, String)>,
        /// As in [`StartCommand`].
        terminal: Option<Terminal>,
        /// As in [`StartCommand`].
        has_packages: bool,
        /// As in [`StartCommand`].
        determinism: Option<Determinism>,
    },
    /// Discovers the packages that the host has loaded since the last look.
    PackagesLoaded,
    /// Writes a file.
    PutFile {
        /// Its guest path.
        path: String,
        /// Its new contents.
        contents: Vec<u8>,
    },
    /// Reports the contents of a file.
    GetFile {
        /// Its guest path.
        path: String,
        /// The maximum size of the contents, in bytes.
        max_bytes: u64,
    },
    /// Reports the entries of this directory.
    ListFiles(String),
    /// Removes this file or empty directory.
    DeleteFile(String),
    /// Runs a cell.
    Run(RunCommand),
    /// Reports whether the code is incomplete.
    Check {
        /// The code.
        code: String,
        syntax: Syntax,
    },
    /// Reports the completions of this dotted name.
    Complete(String),
    /// Binds these names in the guest's namespace.
    Set(Vec<(String, Value)>),
    /// Reports the value of a name.
    Get {
        /// The name.
        name: String,
        /// The maximum size of the value, in bytes.
        max_value_bytes: u64,
    },
    /// Reports all variables.
    Variables,
    /// Binds the variables of the function in which a run has stopped that is looked back at, and
    /// reports where that is.
    BindLocals,
    /// Unbinds this name.
    Delete(String),
    /// Defines these functions in the guest.
    Define(Definitions),
}

/// What a session begins with.
#[derive(Debug, Default)]
pub(crate) struct StartCommand {
    /// The guest's environment variables.
    pub(crate) env: Vec<(String, String)>,
    /// The terminal that the guest's output is for.
    pub(crate) terminal: Option<Terminal>,
    /// Set if an import that fails should ask the host for packages.
    pub(crate) has_packages: bool,
    /// The guest paths of the mounts, in the order of their numbers.
    pub(crate) mounts: Vec<String>,
    /// The functions of the sandbox.
    pub(crate) functions: Definitions,
    /// What a deterministic session depends on.
    pub(crate) determinism: Option<Determinism>,
}

/// Functions for the guest to define.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    pub(crate) tools: Vec<Arc<ToolSpec>>,
    /// The functions that submit, each with the number of its form.
    pub(crate) submit: Vec<(u32, Arc<ToolSpec>)>,
    /// The modules, at a session's start.
    pub(crate) modules: Option<DefinedModules>,
}

impl Command {
    /// Returns the variables that it binds.
    pub(crate) fn variables(&self) -> &[(String, Value)] {
        match self {
            Self::Run(run) => &run.inputs,
            Self::Set(items) => items,
            _ => &[],
        }
    }
}

/// A moment of a fork.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ForkMoment {
    Before,
    AfterInOriginal,
    AfterInCopy,
}

/// Modules of tools, as the guest gets them at the start: without their tools.
#[derive(Debug)]
pub(crate) struct DefinedModules {
    /// The name of the module that finds the others.
    pub(crate) helper: String,
    pub(crate) modules: Vec<DefinedModule>,
}

/// A module of tools.
#[derive(Debug)]
pub(crate) struct DefinedModule {
    /// The name that the host knows it by.
    pub(crate) name: String,
    /// The name that the guest imports it by.
    pub(crate) guest_name: String,
    pub(crate) doc: String,
}

/// A cell in the form that is sent to the guest.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct RunCommand {
    /// The variables to bind before the code runs.
    pub(crate) inputs: Vec<(String, Value)>,
    /// The code, module name or path, depending on `program`.
    pub(crate) code: String,
    pub(crate) syntax: Syntax,
    pub(crate) program: Program,
    /// The working directory; `None` to keep that of the last run.
    pub(crate) directory: Option<String>,
    /// The directory that imports search first.
    pub(crate) import_from: Option<String>,
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) role: Role,
    pub(crate) has_stdin: bool,
    pub(crate) argv: Option<Vec<String>>,
    /// Set if the code may return at its top level.
    pub(crate) may_return: bool,
    /// Set if displays of tables are to have their data.
    pub(crate) has_table_data: bool,
    /// Set if charts of plotly and altair are to be drawn as pictures.
    pub(crate) has_chart_pictures: bool,
    pub(crate) max_repr_chars: u32,
    pub(crate) max_value_bytes: u64,
}

/// A reply of an isolate to a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The interpreter has booted.
    Booted,
    /// The guest carried out the command.
    Done {
        /// The session's peak memory, in bytes, as the engine counts it.
        memory_bytes: u64,
        /// The guest's [`Report`], encoded. A worker sends it as the body of the frame, or before.
        #[serde(skip)]
        report: Vec<u8>,
    },
    /// The guest carried out a peek.
    Peeked {
        /// The number of the peek.
        number: u64,
        /// Why there is no report, if the guest gave one that cannot be taken.
        refusal: Option<String>,
        /// The guest's [`Report`], encoded; empty if the guest gave none.
        #[serde(skip)]
        report: Vec<u8>,
    },
    /// The isolate was terminated and takes no more commands.
    Terminated,
    /// The isolate was stopped because it exceeded its memory limit; it takes no more commands.
    OutOfMemory {
        /// Which memory. A worker speaks of V8's heap only.
        #[serde(skip, default = "heap")]
        kind: MemoryKind,
        /// The limit, in bytes.
        limit: u64,
        /// The memory in use when it was stopped, in bytes, or a number above the limit.
        observed: u64,
    },
    /// The guest ended its interpreter with this status, for example with `os._exit`; the isolate
    /// takes no more commands.
    Exited(i32),
    /// The isolate failed for this reason and takes no more commands.
    Failed(String),
}

fn heap() -> MemoryKind {
    MemoryKind::Heap
}

impl Reply {
    /// Returns the guest's report, if the reply has one.
    pub(crate) fn report(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Done { report, .. } | Self::Peeked { report, .. } => Some(report),
            _ => None,
        }
    }
}

/// The guest's claims about the result of a command.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) status: Status,
    pub(crate) value: Option<Value>,
    pub(crate) value_error: Option<String>,
    pub(crate) repr: Option<String>,
    pub(crate) locals: Vec<Variable>,
    /// For [`Command::Check`]: the code needs more lines. For [`Command::Get`] and
    /// [`Command::Delete`]: the name is bound.
    pub(crate) flag: bool,
}

/// How the cell ended, as the guest reports it.
#[derive(Debug, Default)]
pub(crate) enum Status {
    /// It completed.
    #[default]
    Completed,
    /// With an exception.
    Raised(PyException),
    /// With `SystemExit`.
    Exited(i32, Option<PyException>),
}

/// The host's side of one session. The isolate's thread calls it and waits.
pub(crate) trait Host: Send + Sync {
    /// Answers a request.
    fn call(&self, request: HostRequest<'_>) -> HostReply;
    /// Returns `true` if the reply to a request may take time.
    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        matches!(request, HostRequest::ReadStdin(_))
    }
    /// Reads from an open file directly into the guest's memory. Returns the number of bytes read.
    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError>;
    /// The same, without a part that was read before it was asked for.
    fn read_file_exactly(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        self.read_file(file, offset, into)
    }
    /// Offers a long report, in two parts, before the reply that it belongs to, so that it is not
    /// copied. Returns `false` if the isolate has to keep it for the reply.
    fn takes_report(&self, _report: &[u8], _text: &[u8], _is_peek: bool) -> bool {
        false
    }
    /// Fills the buffer with random bytes. The error is the reason for a failure.
    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        getrandom::fill(into).map_err(|error| format!("the system gave no entropy: {error}"))
    }
}

/// Stops an isolate from outside, at any time and from any thread.
pub(crate) trait Control: Send + Sync {
    /// Requests a `KeyboardInterrupt` in the running guest.
    fn interrupt(&self);
    /// Discards all interrupts so far, delivered or not.
    fn clear_interrupt(&self);
    /// Returns `true` if an interrupt was requested since the last clearing.
    fn interrupted(&self) -> bool;
    /// Kills the guest. May have to be repeated until the isolate's last reply.
    fn terminate(&self);
    /// Returns `true` if the guest's thread or worker exists, as far as that is visible before its
    /// last reply.
    fn is_alive(&self) -> bool {
        true
    }
}

/// Takes an isolate's replies. Returns `false` if nobody receives them any more.
pub(crate) type ReplySink = Box<dyn Fn(Reply) -> bool + Send>;

/// The source of an isolate's messages from its session, in the order sent. Only the isolate's
/// thread takes from it.
pub(crate) trait Inbox: Send {
    /// Prepares it for the event loop of the isolate's thread. Must be called on that thread before
    /// anything else.
    fn attach(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Takes the next message, if there is one.
    fn try_take(&self) -> Option<Message>;
    /// Takes the next message, or registers the task to be woken for it. `None` if no more will
    /// come.
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Message>>;
    /// Blocks this thread until there may be a message, but for at most `limit`, of which it spins
    /// for at most `spinning`.
    fn wait(&self, spinning: Duration, limit: Duration);
}

/// Takes a session's messages to its isolate. When the last clone is dropped, an idle isolate ends.
pub(crate) type Outbox = Arc<dyn Fn(Message) + Send + Sync>;

/// Copies the process of an isolate.
pub(crate) trait Forker: Send + Sync {
    /// Makes a copy of the isolate as it is between two commands. `host` answers the copy.
    fn fork(&self, host: Arc<dyn Host>) -> BoxFuture<'_, Result<(Link, IsolationReport), Error>>;
}

/// A session's connection to its isolate.
pub(crate) struct Link {
    pub(crate) messages: Outbox,
    pub(crate) replies: mpsc::UnboundedReceiver<Reply>,
    pub(crate) control: Arc<dyn Control>,
    /// Lets a waiting caller serve the isolate's frames; `None` if the isolate's own thread carries
    /// out its requests.
    pub(crate) source: Option<Arc<dyn PollSource>>,
    /// Copies the isolate; `None` if it cannot be copied.
    pub(crate) forker: Option<Arc<dyn Forker>>,
}
