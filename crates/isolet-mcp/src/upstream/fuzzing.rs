//! What an MCP server says: lines of a process, bodies and events of an HTTP server.

use std::io;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use isolet::fuzzing::measured;
use isolet_support::json_rpc::{Assembly, Line};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, JsonRpcMessage,
    ListToolsRequest, RequestId, ServerJsonRpcMessage,
};

use super::answers::{Reader, ReceivedLine, RequestKind};
use super::sse;

/// The limits of the checks.
const MAX_BYTES: usize = 2000;
const MAX_LINE: usize = 4000;
/// How many times its length a message may take: an empty value of JSON has two bytes, and its
/// types keep copies of what they could not read. Besides, a message may have a thousand values.
const FACTOR: usize = 600;
const FIXED: usize = 1 << 20;

/// Reads the bytes, by their first one, as lines, as a body, or as a stream of events. A message
/// answers a request that waits for it, and no request is answered twice; what cannot be read fails
/// its request, and memory is bounded by what was sent.
pub fn mcp_upstream(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 4 {
        0 => lines(data),
        1 => body(data),
        2 => events(data, true),
        _ => events(data, false),
    }
}

/// The requests that wait: 7 is a call, 8 asks for a page, "9" for something else.
fn waiting() -> (Reader, [RequestId; 3]) {
    let reader = Reader::new(MAX_BYTES);
    let ids = [RequestId::Number(7), RequestId::Number(8), RequestId::String("9".into())];
    let call = CallToolRequest::new(CallToolRequestParams::new("tool"));
    let requests = [
        ClientRequest::CallToolRequest(call),
        ClientRequest::ListToolsRequest(ListToolsRequest::default()),
        ClientRequest::ListToolsRequest(ListToolsRequest::default()),
    ];
    for (request, id) in requests.into_iter().zip(&ids) {
        reader.sent(&ClientJsonRpcMessage::request(request, id.clone()));
    }
    (reader, ids)
}

fn lines(data: &[u8]) {
    let (reader, ids) = waiting();
    let mut assembly = Assembly::new(MAX_LINE);
    let mut rest = data;
    loop {
        let (taken, line) = assembly.push(rest);
        rest = rest.get(taken..).unwrap_or_default();
        let Some(line) = line.or_else(|| if rest.is_empty() { assembly.rest() } else { None })
        else {
            return;
        };
        let length = match &line {
            Line::Whole(line) => line.len(),
            Line::TooLong(start, end, bytes) => {
                assert!(*bytes > MAX_LINE && start.len() + end.len() <= 512);
                start.len() + end.len()
            }
        };
        let waited = ids.iter().filter(|id| reader.waits(id)).count();
        let (said, used) = measured(|| match line {
            Line::Whole(line) => reader.line(line),
            Line::TooLong(start, end, bytes) => reader.long_line(&start, &end, bytes),
        });
        assert!(used.peak <= FACTOR * length + FIXED, "{length} bytes took {used:?}");
        let waits = ids.iter().filter(|id| reader.waits(id)).count();
        match said {
            ReceivedLine::Messages(messages) => {
                let answers = messages.iter().filter_map(answered).count();
                assert_eq!(answers, waited - waits, "{messages:?}");
                for id in messages.iter().filter_map(answered) {
                    assert!(ids.contains(id) && !reader.waits(id), "{id:?} is answered");
                }
            }
            ReceivedLine::Refused(line) => {
                assert_eq!(waits, waited, "a request of the server's ends none of ours");
                is_refusal(&line);
            }
        }
    }
}

/// Returns the number of the request that a message answers.
fn answered(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    match message {
        JsonRpcMessage::Response(response) => Some(&response.id),
        JsonRpcMessage::Error(error) => error.id.as_ref(),
        _ => None,
    }
}

/// A refusal is one line with an error for a request.
fn is_refusal(line: &[u8]) {
    assert!(!line.contains(&b'\n'), "{line:?}");
    let read: Option<serde_json::Value> = serde_json::from_slice(line).ok();
    let has = |pointer: &str| read.as_ref().and_then(|read| read.pointer(pointer)).is_some();
    assert!(has("/error/code") && has("/error/message") && has("/id"), "{read:?}");
}

fn body(data: &[u8]) {
    for kind in [RequestKind::Call, RequestKind::Page] {
        let (reader, ids) = waiting();
        let (answer, used) = measured(|| reader.body(data.to_vec(), &ids[0], kind));
        assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
        assert_eq!(answered(&answer), Some(&ids[0]), "{answer:?}");
        assert!(!reader.waits(&ids[0]) && reader.waits(&ids[1]));
        if data.len() > reader.max_bytes(kind) {
            assert!(matches!(answer, JsonRpcMessage::Error(_)), "{answer:?}");
        }
    }
}

/// Reads a stream that arrives whole, and in pieces.
fn events(data: &[u8], answers: bool) {
    let whole = read(data, data.len(), answers);
    for piece in [1, 5] {
        assert_eq!(read(data, piece, answers), whole, "pieces of {piece} bytes");
    }
}

/// Returns the messages and errors of a stream of events.
fn read(data: &[u8], piece: usize, answers: bool) -> Vec<String> {
    let chunks = data.chunks(piece.max(1)).map(Bytes::copy_from_slice);
    let chunks: Vec<io::Result<Bytes>> = chunks.map(Ok).collect();
    let ((reader, ids), body) = (waiting(), futures_util::stream::iter(chunks));
    let events = if answers {
        let (asked, id) = (RequestKind::Call, ids[0].clone());
        sse::answers(body, sse::Pending { reader, id, asked })
    } else {
        sse::messages(body, reader)
    };
    let (read, used) = measured(|| events.collect::<Vec<_>>().now_or_never());
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let events = read.unwrap_or_default().into_iter().filter_map(|event| match event {
        Ok(event) => {
            assert!(event.event.is_none(), "{event:?}");
            let data = event.data?;
            let message = serde_json::from_str::<ServerJsonRpcMessage>(&data);
            assert!(message.is_ok(), "{data:?} is no message: {message:?}");
            Some(data)
        }
        Err(_) => Some("error".to_owned()),
    });
    events.collect()
}
