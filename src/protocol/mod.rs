//! The messages between an isolate, its session and its host.
//!
//! [`Message`] and [`Reply`] pass between a session and its isolate, [`HostRequest`] and
//! [`HostReply`] between the isolate and the [`Host`], which holds all policy. An isolate on
//! another thread receives them through channels and direct calls; one in another process receives
//! them as frames (`crate::worker`). Data for the guest crosses in the encoding that the guest
//! reads, so that no isolate needs to decode it.

pub(crate) mod codec;
pub(crate) mod happened;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::data::cell::{Program, Role, Syntax};
use crate::data::determinism::Determinism;
use crate::data::error::Error;
use crate::data::execution::{MemoryKind, PyException, Variable};
use crate::data::isolation::IsolationReport;
use crate::data::output::Stream;
use crate::data::terminal::Terminal;
use crate::data::tool::ToolSpec;
use crate::data::value::Value;
use crate::fs::{FileError, FileReply, FileRequest};
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

/// The maximum length of a name or path that a host looks up for an isolate, in bytes.
pub(crate) const NAME_BYTES: usize = 4096;

/// A request from an isolate to its host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostRequest<'a> {
    /// Reads at most this many bytes of standard input, and waits for them if necessary.
    ReadStdin(u32),
    /// Returns the time of the monotonic clock, in milliseconds since the session started.
    Now,
    /// Returns the wall-clock time, in milliseconds since 1970.
    WallClock,
    /// Calls a tool. The answer comes as a [`Message`], unless the call is refused at once.
    CallTool {
        /// The number of the call.
        call: u32,
        /// The tool's name.
        tool: &'a str,
        /// The arguments by name, in the value format.
        #[serde(with = "serde_bytes")]
        arguments: &'a [u8],
    },
    /// Cancels this call: nobody waits for its answer any more.
    CancelCall(u32),
    /// Returns the guest paths of all mounts, in the order of their numbers.
    MountPoints,
    /// Performs a file operation beneath a mount point.
    #[serde(borrow)]
    File(FileRequest<'a>),
    /// Returns whether requests to a server may be allowed, as far as that can be decided without a
    /// DNS lookup.
    NetCheck {
        /// A name or an address.
        host: &'a str,
        /// The port, if the value is a valid one.
        port: u32,
    },
    /// Starts an HTTP exchange, which has the number of the call. The answer, a [`Message`], is the
    /// head of the response; none for [`NetRequest::Connect`].
    NetStart {
        /// The number of the call and of the exchange.
        call: u32,
        /// The HTTP request.
        #[serde(borrow)]
        request: NetRequest<'a>,
    },
    /// Sends the next chunk of a streamed request body. An empty chunk ends it.
    NetSend {
        /// The number of this call.
        call: u32,
        /// The number of the exchange.
        exchange: u32,
        /// The chunk.
        #[serde(with = "serde_bytes")]
        chunk: &'a [u8],
    },
    /// Reads from the body of a response. The answer is empty at its end.
    NetRead {
        /// The number of this call.
        call: u32,
        /// The number of the exchange.
        exchange: u32,
        /// The maximum number of bytes in the answer.
        max: u32,
    },
    /// Ends an exchange.
    NetClose(u32),
    /// Loads the package with this module, if one is allowed. The answer to the call says whether
    /// one was loaded.
    Import {
        /// The number of the call.
        call: u32,
        /// The name of the module.
        module: &'a str,
    },
    /// Accepts WebAssembly code only if the guest may compile it.
    VerifyModule(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Returns the WebAssembly of a package's library, which the guest may compile. The reply is
    /// `Done` if no package has it.
    Library(&'a str),
    /// Accepts a submission of the session: the output fields by name, in the value format.
    Submit {
        /// The number of the form that the fields belong to.
        form: u32,
        /// The fields.
        #[serde(with = "serde_bytes")]
        fields: &'a [u8],
    },
    /// Takes an object that the guest displays: its formats, in the value format.
    Display(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Takes the next piece of what an isolate that is booted for an image makes of it.
    Image(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Takes the next piece of a session that is saved.
    Saved(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Takes the reason why the session cannot be saved.
    SaveRefused(&'a str),
    /// Returns a piece of the saved session that is restored; nothing at its end.
    SavedPart {
        /// Where it begins.
        offset: u64,
        /// The maximum size in bytes.
        max: u32,
    },
    /// Takes the path of a file that the run has written.
    FileWritten {
        /// The guest path.
        path: &'a str,
        /// The size in bytes.
        size: u64,
    },
    /// Takes what has happened in a recorded session: [`happened::Event`]s, appended to each other.
    Happened(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Returns what happens next in a recorded session that is replayed: a [`happened::Script`].
    Order,
    /// Succeeds if the session is only looked back at.
    IsLookedBack,
    /// Takes the reason why a session that is replayed cannot go on as it was recorded.
    Diverged(&'a str),
    // Variants that serde skips come last, because serde numbers the variants after them
    // differently when writing and reading.
    /// Takes output. A worker sends it as a separate kind of frame.
    #[serde(skip)]
    Write(Stream, &'a [u8]),
}

/// An HTTP request as the guest's glue describes it. The host decodes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NetRequest<'a> {
    /// Only the connection to a server, which is kept for the next request to it.
    Connect {
        /// A name or an address.
        host: &'a str,
        /// The port, if the value is a valid one.
        port: u32,
    },
    /// From Python, in the value format.
    Encoded(#[serde(with = "serde_bytes")] &'a [u8]),
    /// From JavaScript's `fetch`.
    Fetch {
        /// The method.
        method: &'a str,
        /// The URL.
        url: &'a str,
        /// The headers: pairs of text as JSON.
        headers: &'a str,
        /// Set if there is a body, which may be empty.
        has_body: bool,
        /// The body.
        #[serde(with = "serde_bytes")]
        body: &'a [u8],
        /// The redirect mode, in the terms of `fetch`.
        redirect: &'a str,
    },
}

impl HostRequest<'_> {
    /// Returns `true` if the reply carries no information. Results, if any, come as an answer to
    /// the call.
    pub(crate) fn is_one_way(&self) -> bool {
        match self {
            Self::Write(..)
            | Self::Display(_)
            | Self::Image(_)
            | Self::SaveRefused(_)
            | Self::FileWritten { .. }
            | Self::Happened(_)
            | Self::Diverged(_)
            | Self::CallTool { .. }
            | Self::CancelCall(_)
            | Self::NetStart { .. }
            | Self::NetSend { .. }
            | Self::NetRead { .. }
            | Self::NetClose(_)
            | Self::Import { .. } => true,
            Self::ReadStdin(_)
            | Self::Now
            | Self::WallClock
            | Self::MountPoints
            | Self::File(_)
            | Self::NetCheck { .. }
            | Self::VerifyModule(_)
            | Self::Library(_)
            | Self::Saved(_)
            | Self::SavedPart { .. }
            | Self::Order
            | Self::IsLookedBack
            | Self::Submit { .. } => false,
        }
    }

    /// Returns `true` if a journal has the request, with what came of it. What the others return
    /// depends on the session only, or on what a journal has.
    pub(crate) fn is_recorded(&self) -> bool {
        match self {
            Self::ReadStdin(_)
            | Self::CallTool { .. }
            | Self::File(_)
            | Self::NetCheck { .. }
            | Self::NetStart { .. }
            | Self::NetSend { .. }
            | Self::NetRead { .. }
            | Self::Import { .. } => true,
            Self::Write(..)
            | Self::Now
            | Self::WallClock
            | Self::CancelCall(_)
            | Self::MountPoints
            | Self::NetClose(_)
            | Self::VerifyModule(_)
            | Self::Library(_)
            | Self::Submit { .. }
            | Self::Display(_)
            | Self::Image(_)
            | Self::Saved(_)
            | Self::SaveRefused(_)
            | Self::SavedPart { .. }
            | Self::FileWritten { .. }
            | Self::Happened(_)
            | Self::Order
            | Self::IsLookedBack
            | Self::Diverged(_) => false,
        }
    }
}

/// A reply of a host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostReply {
    /// The request succeeded and has no result.
    Done,
    /// Bytes.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// A time.
    Time(f64),
    /// Guest paths.
    MountPoints(Vec<String>),
    /// The result of a file operation.
    File(Result<FileReply, FileError>),
    /// The wait was interrupted, by the interrupt of this number in the run. The isolate is
    /// notified of the interrupt as well, before or after this reply.
    Interrupted(u64),
    /// The request failed for this reason.
    Failed(String),
    /// The host refuses the request. The guest gets an exception of this class with this message.
    Refused(String, String),
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
