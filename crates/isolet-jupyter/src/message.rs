//! The messages of Jupyter's protocol: what they are called, who has sent them, and their parts.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// The version of the protocol.
pub const PROTOCOL: &str = "5.4";

/// The most bytes of a header.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// The channels on which a front end asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Shell,
    Control,
    Stdin,
}

/// Makes the enum of the messages' types, with their names.
macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($kind:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($kind,)*
        }

        impl $name {
            /// Returns the name that it has in messages.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $text,)*
                }
            }

            /// Returns the type of this name, if there is one.
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $($text => Some(Self::$kind),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! {
    /// What a front end asks.
    RequestKind {
        CommClose = "comm_close",
        CommInfo = "comm_info_request",
        CommMsg = "comm_msg",
        CommOpen = "comm_open",
        Complete = "complete_request",
        Debug = "debug_request",
        Execute = "execute_request",
        History = "history_request",
        InputReply = "input_reply",
        Inspect = "inspect_request",
        Interrupt = "interrupt_request",
        IsComplete = "is_complete_request",
        KernelInfo = "kernel_info_request",
        Shutdown = "shutdown_request",
    }
}

kinds! {
    /// What a kernel answers and publishes.
    MessageKind {
        ClearOutput = "clear_output",
        CommClose = "comm_close",
        CommInfoReply = "comm_info_reply",
        CommMsg = "comm_msg",
        CommOpen = "comm_open",
        CompleteReply = "complete_reply",
        DebugReply = "debug_reply",
        DisplayData = "display_data",
        Error = "error",
        ExecuteInput = "execute_input",
        ExecuteReply = "execute_reply",
        ExecuteResult = "execute_result",
        HistoryReply = "history_reply",
        InputRequest = "input_request",
        InspectReply = "inspect_reply",
        InterruptReply = "interrupt_reply",
        IsCompleteReply = "is_complete_reply",
        KernelInfoReply = "kernel_info_reply",
        ShutdownReply = "shutdown_reply",
        Status = "status",
        Stream = "stream",
        UpdateDisplayData = "update_display_data",
    }
}

/// Who has sent a request, by the names that the transport knows.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The connection on which it came.
    pub connection: u64,
    /// The name that a client has on all its connections; empty if it has none.
    pub identity: Bytes,
    /// What comes before the message in the answer: the way back through what stands between.
    pub route: Vec<Bytes>,
}

/// The header of a request, which its answers carry as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    pub id: String,
    /// The name of the request's type, which may be one that nobody knows.
    pub kind: String,
    /// The whole header, in JSON.
    pub json: Bytes,
}

#[derive(Deserialize)]
struct HeaderFields {
    msg_id: String,
    msg_type: String,
}

impl Header {
    /// Reads a header in JSON.
    pub fn read(json: Bytes) -> Result<Self> {
        let size = json.len();
        ensure!(
            size <= MAX_HEADER_BYTES,
            "its header has {size} bytes, the limit is {MAX_HEADER_BYTES}"
        );
        let HeaderFields { msg_id, msg_type } =
            serde_json::from_slice(&json).context("its header cannot be read")?;
        Ok(Self { id: msg_id, kind: msg_type, json })
    }
}

/// A request of a front end, whose sender may ask. Contents are read by those who answer.
#[derive(Clone, Debug)]
pub struct Request {
    pub channel: Channel,
    pub peer: Peer,
    pub header: Arc<Header>,
    /// The header of what it answers, in JSON.
    pub parent: Bytes,
    /// In JSON.
    pub metadata: Bytes,
    /// In JSON.
    pub content: Bytes,
    pub buffers: Vec<Bytes>,
}

impl Request {
    /// Returns its size, in bytes.
    pub fn size(&self) -> usize {
        let buffers: usize = self.buffers.iter().map(Bytes::len).sum();
        self.header.json.len()
            + self.parent.len()
            + self.metadata.len()
            + self.content.len()
            + buffers
    }
}

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// To one front end.
    Peer(Channel, Peer),
    /// To all of them.
    Everybody,
}

/// A message of the kernel.
#[derive(Clone, Debug)]
pub struct Message {
    pub to: To,
    pub kind: MessageKind,
    /// Its own header, in JSON.
    pub header: String,
    /// What it answers, or is published for.
    pub parent: Option<Arc<Header>>,
    /// In JSON.
    pub metadata: String,
    /// In JSON.
    pub content: String,
    pub buffers: Vec<Bytes>,
}

/// Makes headers with ids of their own.
pub struct Headers {
    session: String,
    made: u64,
}

#[derive(Serialize)]
struct OwnHeader<'a> {
    msg_id: &'a str,
    session: &'a str,
    username: &'static str,
    date: String,
    msg_type: &'static str,
    version: &'static str,
}

impl Headers {
    pub fn new() -> Result<Self> {
        let mut random = [0; 16];
        getrandom::fill(&mut random).context("the system has no random numbers")?;
        let session = hex(&random);
        Ok(Self { session, made: 0 })
    }

    /// Returns the id and the header of a new message, in JSON.
    pub fn make(&mut self, kind: MessageKind) -> Result<(String, String)> {
        self.made += 1;
        let id = format!("{}_{}", self.session, self.made);
        let header = OwnHeader {
            msg_id: &id,
            session: &self.session,
            username: "isolet",
            date: humantime::format_rfc3339_micros(SystemTime::now()).to_string(),
            msg_type: kind.name(),
            version: PROTOCOL,
        };
        let json = serde_json::to_string(&header).context("a header is no JSON")?;
        Ok((id, json))
    }
}

/// Returns bytes in hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |digit: u8| char::from_digit(u32::from(digit), 16);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_kept_with_what_nobody_here_knows() {
        let json = r#"{"msg_id":"1","msg_type":"x_request","subshell_id":"a","date":"never"}"#;
        let header = Header::read(json.into()).unwrap();
        assert_eq!(
            (&*header.id, &*header.kind, &header.json[..]),
            ("1", "x_request", json.as_bytes())
        );
        assert_eq!(RequestKind::of(&header.kind), None);
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let long = format!(r#"{{"msg_id":"{}","msg_type":""}}"#, "1".repeat(MAX_HEADER_BYTES));
        for json in ["", "[]", "{}", r#"{"msg_id":1,"msg_type":""}"#, &long] {
            assert!(Header::read(Bytes::copy_from_slice(json.as_bytes())).is_err(), "{json}");
        }
    }

    #[test]
    fn ids_are_each_another_one() {
        let mut headers = Headers::new().unwrap();
        let (first, json) = headers.make(MessageKind::Status).unwrap();
        assert!(json.contains(r#""msg_type":"status""#), "{json}");
        assert_ne!(first, headers.make(MessageKind::Status).unwrap().0);
    }
}
