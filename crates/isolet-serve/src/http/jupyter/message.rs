//! The messages of kernels as JSON, one in each message of a WebSocket.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use isolet_jupyter::message::{Channel, Header, Message, Peer, Request, To};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::http::body::count_values;
use crate::http::problem::Problem;

/// A message of a client. Of its buffers, which no request of this kernel has, nothing is read.
#[derive(Deserialize)]
struct ClientMessage<'a> {
    #[serde(borrow)]
    header: &'a RawValue,
    #[serde(borrow, default)]
    parent_header: Option<&'a RawValue>,
    #[serde(borrow, default)]
    metadata: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    channel: Option<String>,
}

/// A message of a kernel.
#[derive(Serialize)]
struct KernelMessage<'a> {
    header: &'a RawValue,
    msg_id: &'a str,
    msg_type: &'static str,
    parent_header: &'a RawValue,
    metadata: &'a RawValue,
    content: &'a RawValue,
    buffers: [(); 0],
    channel: &'static str,
}

#[derive(Deserialize)]
struct Id {
    msg_id: String,
}

/// Reads a request, which came on this connection.
pub(in crate::http) fn read(text: &[u8], connection: u64) -> Result<Request, Problem> {
    const WHAT: &str = "the message";
    count_values(WHAT, text)?;
    let message: ClientMessage<'_> = serde_json::from_slice(text)
        .map_err(|error| Problem::unreadable(format!("{WHAT} is none of Jupyter's: {error}")))?;
    let channel = match message.channel.as_deref() {
        None | Some("shell") => Channel::Shell,
        Some("control") => Channel::Control,
        Some("stdin") => Channel::Stdin,
        Some(other) => {
            let other = isolet_support::text::on_one_line(other);
            return Err(Problem::unreadable(format!(
                "{WHAT} is for the channel `{other}`; there are shell, control and stdin"
            )));
        }
    };
    let bytes = |json: Option<&RawValue>| {
        Bytes::copy_from_slice(json.map_or("{}", RawValue::get).as_bytes())
    };
    let header = Header::read(bytes(Some(message.header)))
        .map_err(|error| Problem::unreadable(format!("{WHAT}: {error:#}")))?;
    Ok(Request {
        channel,
        peer: peer(connection),
        header: Arc::new(header),
        parent: bytes(message.parent_header),
        metadata: bytes(message.metadata),
        content: bytes(message.content),
        buffers: Vec::new(),
    })
}

/// Makes a request of the node's own.
pub(super) fn own(kind: &str, content: &BTreeMap<&str, bool>) -> Request {
    let json = serde_json::json!({"msg_id": kind, "msg_type": kind}).to_string();
    let header = Header { id: kind.to_owned(), kind: kind.to_owned(), json: json.into() };
    let content = serde_json::json!(content).to_string();
    Request {
        channel: Channel::Control,
        peer: peer(0),
        header: Arc::new(header),
        parent: Bytes::from_static(b"{}"),
        metadata: Bytes::from_static(b"{}"),
        content: content.into(),
        buffers: Vec::new(),
    }
}

/// Returns the sender of what comes on a connection.
fn peer(connection: u64) -> Peer {
    let identity = Bytes::copy_from_slice(&connection.to_be_bytes());
    Peer { connection, identity, route: Vec::new() }
}

/// Writes a message of a kernel.
pub(super) fn write(message: &Message) -> Result<Vec<u8>, serde_json::Error> {
    let channel = match &message.to {
        To::Everybody => "iopub",
        To::Peer(Channel::Shell, _) => "shell",
        To::Peer(Channel::Control, _) => "control",
        To::Peer(Channel::Stdin, _) => "stdin",
    };
    let Id { msg_id } = serde_json::from_str(&message.header)?;
    let parent = message.parent.as_ref().map_or(&b"{}"[..], |parent| &parent.json);
    serde_json::to_vec(&KernelMessage {
        header: serde_json::from_str(&message.header)?,
        msg_id: &msg_id,
        msg_type: message.kind.name(),
        parent_header: serde_json::from_slice(parent)?,
        metadata: serde_json::from_str(&message.metadata)?,
        content: serde_json::from_str(&message.content)?,
        buffers: [],
        channel,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_client_is_read_with_what_nobody_here_knows() {
        let text = r#"{"header": {"msg_id": "1", "msg_type": "execute_request", "date": ""},
                       "content": {"code": "1"}, "buffers": [], "subshell": 1}"#;
        let request = read(text.as_bytes(), 7).unwrap();
        assert_eq!((request.channel, &*request.header.kind), (Channel::Shell, "execute_request"));
        assert_eq!(
            (&request.content[..], &request.parent[..]),
            (&b"{\"code\": \"1\"}"[..], &b"{}"[..])
        );
        for wrong in [
            "",
            "[]",
            r#"{"header": 1}"#,
            r#"{"header": {"msg_id": "1"}}"#,
            r#"{"header": {"msg_id": "1", "msg_type": "x"}, "channel": "iopub"}"#,
        ] {
            assert!(read(wrong.as_bytes(), 7).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_message_of_a_kernel_has_its_channel_and_what_it_answers() {
        let request = own("shutdown_request", &BTreeMap::from([("restart", true)]));
        let message = Message {
            to: To::Everybody,
            kind: isolet_jupyter::message::MessageKind::Status,
            header: r#"{"msg_id":"a"}"#.to_owned(),
            parent: Some(Arc::clone(&request.header)),
            metadata: "{}".to_owned(),
            content: r#"{"execution_state":"idle"}"#.to_owned(),
            buffers: Vec::new(),
        };
        let text = String::from_utf8(write(&message).unwrap()).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(json["parent_header"]["msg_type"], "shutdown_request");
        assert_eq!((&json["channel"], &json["msg_id"]), (&"iopub".into(), &"a".into()));
        assert_eq!(json["content"]["execution_state"], "idle");
    }
}
