//! Everything that passes between an isolate and the rest of the world.
//!
//! [`Message`] and [`Reply`] go between a session and its isolate, [`HostRequest`] and
//! [`HostReply`] between the isolate and the [`Host`] that holds all policy. An isolate on another
//! thread gets them through channels and a direct call; one in another process gets the same as
//! frames (`crate::worker`). What is meant for the guest crosses as the bytes that the guest gets,
//! so that no isolate has to look into them.

pub(crate) mod codec;

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::data::cell::{Program, Role};
use crate::data::execution::{PyException, Variable};
use crate::data::output::Stream;
use crate::data::terminal::Terminal;
use crate::data::tool::ToolSpec;
use crate::data::value::Value;
use crate::fs::{FileError, FileReply, FileRequest};
use crate::support::block_on::PollSource;

/// What a session sends to its isolate.
#[derive(Debug)]
pub(crate) enum Message {
    /// Carry this [`Command`]'s frame out and reply, one at a time.
    Command(Vec<u8>),
    /// Carry this command's frame out now, even if a run is waiting for something; it runs no cell.
    /// The reply names the number.
    Peek(u64, Vec<u8>),
    /// The call of this number has ended; this is the answer as the guest gets it.
    Answer(u32, Bytes),
}

/// What a session asks of its isolate.
#[derive(Debug)]
pub(crate) enum Command {
    /// Do so often what a session begins with. Leaves nothing behind; for an interpreter that is
    /// nobody's yet.
    Rehearse(u32),
    /// Make the restored interpreter this session's own. The first command of a session.
    Start {
        /// The guest's environment variables.
        env: Vec<(String, String)>,
        /// The terminal that its output is for.
        terminal: Option<Terminal>,
        /// Whether an import that fails is worth asking the host about.
        has_packages: bool,
    },
    /// Look anew for what the host has put beside the loaded packages.
    PackagesLoaded,
    /// Write a file.
    PutFile {
        /// Its path in the guest.
        path: String,
        /// What is to be in it.
        contents: Vec<u8>,
    },
    /// Report what is in a file.
    GetFile {
        /// Its path in the guest.
        path: String,
        /// The most that it may have.
        max_value_bytes: u64,
    },
    /// Report what is in this directory.
    ListFiles(String),
    /// Remove this file or empty directory.
    DeleteFile(String),
    /// Run a cell.
    Run(RunCommand),
    /// Say whether the code is whole, or the beginning of something longer.
    Check {
        /// The code.
        code: String,
    },
    /// Report what this dotted name may become.
    Complete(String),
    /// Bind these names in the guest's namespace.
    Set(Vec<(String, Value)>),
    /// Report the value of a name.
    Get {
        /// The name.
        name: String,
        /// The most that the value may have.
        max_value_bytes: u64,
    },
    /// Report what names are bound to.
    Variables,
    /// Unbind this name.
    Delete(String),
    /// Make these functions known to the guest.
    Define {
        /// The host functions.
        tools: Vec<Arc<ToolSpec>>,
        /// `SUBMIT`, if it is to be made or changed, and the number of its form.
        submit: Option<(u32, Arc<ToolSpec>)>,
    },
}

/// A cell as the guest gets it.
#[derive(Debug)]
pub(crate) struct RunCommand {
    /// What `program` says.
    pub(crate) code: String,
    pub(crate) program: Program,
    /// Where to start, if not where the last run left off.
    pub(crate) directory: Option<String>,
    /// What to import from first.
    pub(crate) import_from: Option<String>,
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) role: Role,
    pub(crate) has_stdin: bool,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) max_repr_chars: u32,
    pub(crate) max_value_bytes: u64,
}

/// What an isolate answers to a command.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Reply {
    /// The interpreter is there.
    Booted,
    /// The guest carried the command out.
    Done {
        /// The most memory that the session has had, by the engine's count.
        memory_bytes: u64,
        /// The guest's [`Report`], encoded. A worker sends it as the body of the frame.
        #[serde(skip)]
        report: Vec<u8>,
    },
    /// The guest carried out a peek.
    Peeked {
        /// Its number.
        number: u64,
        /// As above; empty if the guest gave none.
        #[serde(skip)]
        report: Vec<u8>,
    },
    /// The isolate was terminated; it takes no more commands.
    Terminated,
    /// The isolate was stopped because it outgrew its memory; it takes no more commands.
    OutOfMemory {
        /// The limit, in bytes.
        limit: u64,
        /// What there was when it was stopped, or more than the limit.
        observed: u64,
    },
    /// The guest ended its interpreter with this status, as `os._exit` does; the isolate takes no
    /// more commands.
    Exited(i32),
    /// The isolate broke, for this reason; it takes no more commands.
    Failed(String),
}

impl Reply {
    /// The guest's report, where there is one.
    pub(crate) fn report(&mut self) -> Option<&mut Vec<u8>> {
        match self {
            Self::Done { report, .. } | Self::Peeked { report, .. } => Some(report),
            _ => None,
        }
    }
}

/// What the guest claims became of a command.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) status: Status,
    pub(crate) value: Option<Value>,
    pub(crate) value_error: Option<String>,
    pub(crate) repr: Option<String>,
    pub(crate) locals: Vec<Variable>,
    /// To [`Command::Check`]: the code needs more lines. To [`Command::Get`] and
    /// [`Command::Delete`]: there is such a name.
    pub(crate) flag: bool,
}

/// How the guest says the cell ended.
#[derive(Debug, Default)]
pub(crate) enum Status {
    /// To its end.
    #[default]
    Completed,
    /// With an exception.
    Raised(PyException),
    /// With `SystemExit`.
    Exited(i32, Option<PyException>),
}

/// What an isolate asks of its host.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostRequest<'a> {
    /// Give at most so many bytes of standard input, waiting for them if need be.
    ReadStdin(u32),
    /// Give the time of the monotonic clock, in milliseconds since the session started.
    Now,
    /// Give the wall-clock time, in milliseconds since 1970.
    WallClock,
    /// Call a host function. The answer comes as a [`Message`], unless the call is refused at once.
    CallTool {
        /// The number of the call.
        call: u32,
        /// The function's name.
        tool: &'a str,
        /// The arguments by name, in the value format.
        #[serde(with = "serde_bytes")]
        arguments: &'a [u8],
    },
    /// Nobody waits for the answer to this call any more.
    CancelCall(u32),
    /// Name the guest paths that something is mounted at, in the order of the mounts' numbers.
    MountPoints,
    /// Do something beneath a mount point.
    #[serde(borrow)]
    File(FileRequest<'a>),
    /// Say whether requests to a server may be allowed, as far as that is known without looking its
    /// name up.
    NetCheck {
        /// A name or an address.
        host: &'a str,
        /// The port, if it is one.
        port: u32,
    },
    /// Start an HTTP exchange, whose number is that of the call. The head of the response is the
    /// answer to it, as a [`Message`].
    NetStart {
        /// The number of the call and of the exchange.
        call: u32,
        /// What to request.
        #[serde(borrow)]
        request: NetRequest<'a>,
    },
    /// Send the next piece of a streamed body; an empty one ends it.
    NetSend {
        /// The number of this call.
        call: u32,
        /// The number of the exchange.
        exchange: u32,
        /// The piece.
        #[serde(with = "serde_bytes")]
        chunk: &'a [u8],
    },
    /// Read the body of a response; the answer to the call has no bytes at the end.
    NetRead {
        /// The number of this call.
        call: u32,
        /// The number of the exchange.
        exchange: u32,
        /// The most bytes to answer with.
        max: u32,
    },
    /// End an exchange.
    NetClose(u32),
    /// Load the package that has this module, if one is allowed. The answer to the call says
    /// whether one was loaded.
    Import {
        /// The number of the call.
        call: u32,
        /// The name of the module.
        module: &'a str,
    },
    /// Say whether this is WebAssembly that the guest may have compiled.
    VerifyModule(#[serde(with = "serde_bytes")] &'a [u8]),
    /// Take this as the session's submission: the output fields by name, in the value format.
    Submit {
        /// The number of the form that the fields are of.
        form: u32,
        /// The fields.
        #[serde(with = "serde_bytes")]
        fields: &'a [u8],
    },
    // What is skipped comes last, since serde numbers the others differently in either direction.
    /// Take output. A worker sends it as a frame of its own kind.
    #[serde(skip)]
    Write(Stream, &'a [u8]),
}

/// An HTTP request as the guest's glue describes it. The host decodes it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum NetRequest<'a> {
    /// By Python, in the value format.
    Encoded(#[serde(with = "serde_bytes")] &'a [u8]),
    /// By the `fetch` of JavaScript.
    Fetch {
        /// The method.
        method: &'a str,
        /// The URL.
        url: &'a str,
        /// Pairs of text as JSON.
        headers: &'a str,
        /// Whether there is a body, which may be empty.
        has_body: bool,
        /// The body.
        #[serde(with = "serde_bytes")]
        body: &'a [u8],
        /// What to do about a redirect, as `fetch` names it.
        redirect: &'a str,
    },
}

impl HostRequest<'_> {
    /// Whether nothing is to be learnt from the reply: what there is to say comes as an answer to
    /// the call, if at all.
    pub(crate) fn is_one_way(&self) -> bool {
        match self {
            Self::Write(..)
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
            | Self::Submit { .. } => false,
        }
    }
}

/// What a host answers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum HostReply {
    /// It is done.
    Done,
    /// These bytes.
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    /// This time.
    Time(f64),
    /// These guest paths.
    MountPoints(Vec<String>),
    /// This became of a file request.
    File(Result<FileReply, FileError>),
    /// The wait was ended from outside, by the interrupt of this number in the run. The isolate has
    /// been told of it, or will be.
    Interrupted(u64),
    /// The host cannot do it, for this reason.
    Failed(String),
    /// The host will not do it; the guest gets an exception of this class with this message.
    Refused(String, String),
}

/// The host's side of one session. Called on the isolate's thread, which waits.
pub(crate) trait Host: Send + Sync {
    /// Answers a request.
    fn call(&self, request: HostRequest<'_>) -> HostReply;
    /// Returns whether the answer to a request may have to be waited for.
    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        matches!(request, HostRequest::ReadStdin(_))
    }
    /// Reads from an open file straight into the guest's memory; returns how many bytes.
    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError>;
    /// Fills this with random bytes; the error says why it cannot be.
    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        getrandom::fill(into).map_err(|error| format!("the system gave no entropy: {error}"))
    }
}

/// The means to stop an isolate from outside, at any time, from any thread.
pub(crate) trait Control: Send + Sync {
    /// Asks the running guest for a `KeyboardInterrupt`.
    fn interrupt(&self);
    /// Forgets the interrupts so far, served or not.
    fn clear_interrupt(&self);
    /// Returns whether an interrupt was asked for since the last clearing.
    fn interrupted(&self) -> bool;
    /// Kills the guest. May have to be repeated until the isolate's last reply.
    fn terminate(&self);
    /// Returns whether what runs the guest is there, as far as that can be seen before its last
    /// reply.
    fn is_alive(&self) -> bool {
        true
    }
}

/// Where an isolate's replies go. `false`: nobody is there any more to get them.
pub(crate) type ReplySink = Box<dyn Fn(Reply) -> bool + Send>;

/// Where an isolate gets what its session sends, in that order. Only the isolate's thread takes
/// from it.
pub(crate) trait Inbox: Send {
    /// Readies it for the event loop of the isolate's thread, on which this is called before
    /// anything else.
    fn attach(&mut self) -> io::Result<()> {
        Ok(())
    }
    /// Takes the next message, if there is one.
    fn try_take(&self) -> Option<Message>;
    /// Takes the next message, or has the task woken when there is one; `None` if no more will
    /// come.
    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Message>>;
    /// Blocks this thread until there may be a message, but no longer than `limit`.
    fn wait(&self, limit: Duration);
}

/// Takes what a session sends to its isolate. When the last one is dropped an idle isolate ends.
pub(crate) type Outbox = Arc<dyn Fn(Message) + Send + Sync>;

/// A session's connection to its isolate.
pub(crate) struct Link {
    pub(crate) messages: Outbox,
    pub(crate) replies: mpsc::UnboundedReceiver<Reply>,
    pub(crate) control: Arc<dyn Control>,
    /// `None` if the isolate's own thread does what it asks for.
    pub(crate) source: Option<Arc<dyn PollSource>>,
}
