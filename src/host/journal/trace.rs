//! What a journal has, for who looks back at a session.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::data::shown::shown;
use crate::data::tool::ToolError;
use crate::data::value::{Value, marshal};
use crate::host::exchanges::request_line;
use crate::protocol::codec;
use crate::protocol::{HostReply, HostRequest};

/// Is told of what a journal has.
pub(crate) type Tracer = Arc<dyn Fn(&Traced) + Send + Sync>;

/// The maximum memory of a value that is shown, in bytes.
const VALUE_BYTES: u64 = 64 << 20;

/// Something that the guest asked for or got, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Traced {
    time: Duration,
    what: TracedWhat,
}

/// What the guest asked for or got.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TracedWhat {
    /// It called a tool.
    Call {
        /// The number of the call.
        call: u32,
        /// The tool's name.
        tool: String,
        /// The arguments by name; `None` if they cannot be read.
        arguments: Option<Value>,
    },
    /// It made an HTTP request, or connected to a server.
    Request {
        /// The number of the call.
        call: u32,
        /// The method and the URL; of a connection, the server.
        line: String,
    },
    /// It read or sent a part of a body.
    Body {
        /// The number of the call.
        call: u32,
    },
    /// It imported a module that may need a package.
    Import {
        /// The number of the call.
        call: u32,
        /// The name of the module.
        module: String,
    },
    /// It got the answer to a call, or an exception.
    Answer {
        /// The number of the call.
        call: u32,
        /// The answer.
        answer: Result<Value, ToolError>,
    },
    /// It used a file beneath a mount point.
    File {
        /// The operation and the path.
        line: String,
    },
    /// It read standard input.
    Input {
        /// How much of it, in bytes.
        bytes: usize,
    },
    /// It asked whether it may connect to a server.
    Server {
        /// The server.
        host: String,
    },
}

impl Traced {
    pub(super) fn new(milliseconds: u64, what: TracedWhat) -> Self {
        Self { time: Duration::from_millis(milliseconds), what }
    }

    /// Returns the time since the session began.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// Returns what the guest asked for or got.
    #[must_use]
    pub fn what(&self) -> &TracedWhat {
        &self.what
    }
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:10.3} s  ", self.time.as_secs_f64())?;
        match &self.what {
            TracedWhat::Call { call, tool, arguments } => {
                write!(f, "call {call}: {}({})", shown(tool), brief(arguments.as_ref()))
            }
            TracedWhat::Request { call, line } => write!(f, "call {call}: {}", shown(line)),
            TracedWhat::Body { call } => write!(f, "call {call}: part of a body"),
            TracedWhat::Import { call, module } => {
                write!(f, "call {call}: import {}", shown(module))
            }
            TracedWhat::Answer { call, answer: Ok(value) } => {
                write!(f, "answer {call}: {}", brief(Some(value)))
            }
            TracedWhat::Answer { call, answer: Err(error) } => {
                write!(f, "answer {call}: {}", shown(&error.to_string()))
            }
            TracedWhat::File { line } => write!(f, "file: {}", shown(line)),
            TracedWhat::Input { bytes } => write!(f, "standard input: {bytes} bytes"),
            TracedWhat::Server { host } => write!(f, "server: {}", shown(host)),
        }
    }
}

fn brief(value: Option<&Value>) -> String {
    let Some(value) = value else { return "?".to_owned() };
    shown(&serde_json::to_string(value).unwrap_or_else(|_| "?".to_owned()))
}

/// Describes a request.
pub(super) fn of_request(
    request: &HostRequest<'_>,
    reply: Option<&HostReply>,
) -> Option<TracedWhat> {
    Some(match request {
        HostRequest::CallTool { call, tool, arguments } => TracedWhat::Call {
            call: *call,
            tool: (*tool).to_owned(),
            arguments: marshal::decode_within(arguments, VALUE_BYTES).ok(),
        },
        HostRequest::NetStart { call, request } => {
            TracedWhat::Request { call: *call, line: request_line(request) }
        }
        HostRequest::NetSend { call, .. } | HostRequest::NetRead { call, .. } => {
            TracedWhat::Body { call: *call }
        }
        HostRequest::Import { call, module } => {
            TracedWhat::Import { call: *call, module: (*module).to_owned() }
        }
        HostRequest::File(request) => TracedWhat::File { line: request.to_string() },
        HostRequest::ReadStdin(_) => match reply {
            Some(HostReply::Bytes(bytes)) => TracedWhat::Input { bytes: bytes.len() },
            _ => TracedWhat::Input { bytes: 0 },
        },
        HostRequest::NetCheck { host, .. } => TracedWhat::Server { host: (*host).to_owned() },
        _ => return None,
    })
}

/// Describes the answer to a call.
pub(super) fn of_answer(call: u32, answer: &[u8]) -> TracedWhat {
    // Read as hostile, and only for being shown.
    let answer = match marshal::decode_within(answer, VALUE_BYTES) {
        Ok(_) => codec::decode_answer(answer),
        Err(error) => Err(ToolError::new("ValueError", error.to_string())),
    };
    TracedWhat::Answer { call, answer }
}
