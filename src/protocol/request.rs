//! The requests of an isolate to its host, and their replies.

use serde::{Deserialize, Serialize};

use crate::data::output::Stream;
use crate::fs::{FileError, FileReply, FileRequest};

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
    /// Returns the line at which the session that is looked back at stops, as `LINE FILE`; empty if
    /// it does not.
    StopLine,
    /// The session that is looked back at has come to that line.
    EndLookBack,
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
            | Self::EndLookBack
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
            | Self::StopLine
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
            | Self::StopLine
            | Self::EndLookBack
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
