//! Reads what servers say, within limits. An answer that cannot be read is the failure of the call
//! that it answers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    CallToolResult, ClientJsonRpcMessage, ClientNotification, ClientRequest, ContentBlock,
    CustomResult, ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
    ServerResult,
};
use serde_json::{Map, Value as Json, json};

use crate::support::json::values;
use isolet::internals::lock;
use isolet_support::json_rpc::{self, Outline};

/// The maximum size of a page of a list of tools, in bytes.
const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// A message has at most one value for so many bytes of its limit. In memory, an empty value takes
/// some hundred times the two bytes that it has in JSON.
const BYTES_PER_VALUE: usize = 8;

/// The longest line that is kept until its request is known.
pub(super) const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Reads the messages of one server.
#[derive(Clone)]
pub(super) struct Reader {
    waiting: Arc<Mutex<HashMap<RequestId, RequestKind>>>,
    max_bytes: usize,
}

/// The kinds of requests, whose answers have different limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// Asks which protocol the server knows.
    Discovery,
    /// A page of the list of tools.
    Page,
    /// A call of a tool.
    Call,
    Other,
}

/// A line from a server, read.
pub(super) enum ReceivedLine {
    Messages(Vec<ServerJsonRpcMessage>),
    /// A request that cannot be read, with the answer to that.
    Refused(Vec<u8>),
}

impl Reader {
    /// Reads answers of at most so many bytes.
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { waiting: Arc::default(), max_bytes }
    }

    /// Notes what waits for an answer once this message is sent.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage) {
        let mut waiting = lock(&self.waiting);
        match message {
            JsonRpcMessage::Request(request) => {
                let asked = asked(&request.request);
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    // A server that took long to start answers the discovery late, when the client
                    // no longer waits for it.
                    waiting.retain(|_, asked| *asked != RequestKind::Discovery);
                }
                waiting.insert(request.id.clone(), asked);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    waiting.remove(id);
                }
            }
            _ => {}
        }
    }

    /// Notes that the client no longer waits for the answer to a request.
    pub(super) fn forget(&self, id: &RequestId) {
        lock(&self.waiting).remove(id);
    }

    /// Returns `true` if a request waits for its answer.
    pub(super) fn waits(&self, id: &RequestId) -> bool {
        lock(&self.waiting).contains_key(id)
    }

    pub(super) fn max_bytes(&self, asked: RequestKind) -> usize {
        match asked {
            RequestKind::Page => self.max_bytes.max(MAX_PAGE_BYTES),
            _ => self.max_bytes,
        }
    }

    /// Reads a line of a process.
    pub(super) fn line(&self, line: Vec<u8>) -> ReceivedLine {
        let outline = Outline::of(&line);
        // A line that is no object is text that the server prints for people.
        if !outline.is_object() {
            return ReceivedLine::Messages(Vec::new());
        }
        let asked = self.answered(&outline).and_then(|id| lock(&self.waiting).get(&id).copied());
        match parse(line, self.max_bytes(asked.unwrap_or(RequestKind::Other))) {
            Ok(message) => ReceivedLine::Messages(self.passed(message)),
            Err(reason) => self.unreadable(&outline, &reason),
        }
    }

    /// Reads the ends of a line that is too long.
    pub(super) fn long_line(&self, start: &[u8], end: &[u8], bytes: usize) -> ReceivedLine {
        let outline = Outline::of_ends(start, end);
        self.unreadable(&outline, &too_long(bytes, self.max_bytes))
    }

    /// Reads the answer to a request that was sent by itself. Ignores the number of the answer.
    pub(super) fn body(
        &self,
        body: Vec<u8>,
        id: &RequestId,
        asked: RequestKind,
    ) -> ServerJsonRpcMessage {
        let read = parse(body, self.max_bytes(asked));
        self.forget(id);
        let answer = read.and_then(|message| match message {
            JsonRpcMessage::Response(mut response) => {
                response.id = id.clone();
                Ok(JsonRpcMessage::Response(response))
            }
            JsonRpcMessage::Error(mut error) => {
                error.id = Some(id.clone());
                Ok(JsonRpcMessage::Error(error))
            }
            _ => Err("it is no answer".to_owned()),
        });
        let answer = answer.unwrap_or_else(|reason| failure(id.clone(), &reason));
        tolerated(answer, asked)
    }

    /// Reads an event of the stream that answers a request. Returns nothing for an event that is no
    /// message.
    pub(super) fn event(
        &self,
        data: Vec<u8>,
        is_message: bool,
        id: &RequestId,
        asked: RequestKind,
    ) -> Option<ServerJsonRpcMessage> {
        let outline = Outline::of(&data);
        let is_answer = outline.is_answer();
        // Events of other names are often signs of life, and sometimes answers.
        if !outline.is_object() || (!is_message && !is_answer) {
            return None;
        }
        let is_of_another =
            outline.id.as_ref().is_some_and(|other| other != id && self.waits(other));
        if is_answer && !is_of_another {
            return Some(self.body(data, id, asked));
        }
        let limit = self.max_bytes(if is_answer { RequestKind::Page } else { RequestKind::Other });
        match parse(data, limit) {
            Ok(message) => self.passed(message).pop(),
            Err(reason) if is_answer => outline.id.map(|id| failure(id, &reason)),
            Err(_) => None,
        }
    }

    /// Reads an event of a stream that answers no request, or that continues the stream of another
    /// one.
    pub(super) fn stray_event(
        &self,
        data: Vec<u8>,
        is_message: bool,
    ) -> Option<ServerJsonRpcMessage> {
        let outline = Outline::of(&data);
        let is_answer = outline.is_answer();
        if !outline.is_object() || (!is_message && !is_answer) {
            return None;
        }
        match parse(data, self.max_bytes(RequestKind::Page)) {
            Ok(message) => Some(tolerated(message, RequestKind::Call)),
            Err(reason) if is_answer => outline.id.map(|id| failure(id, &reason)),
            Err(_) => None,
        }
    }

    /// Returns the messages that a message stands for.
    fn passed(&self, message: ServerJsonRpcMessage) -> Vec<ServerJsonRpcMessage> {
        match message {
            JsonRpcMessage::Response(mut response) => {
                let Some((id, asked)) = self.take(&response.id) else { return Vec::new() };
                response.id = id;
                vec![tolerated(JsonRpcMessage::Response(response), asked)]
            }
            JsonRpcMessage::Error(mut error) => match error.id.take() {
                Some(id) => {
                    let Some((id, _)) = self.take(&id) else { return Vec::new() };
                    error.id = Some(id);
                    vec![JsonRpcMessage::Error(error)]
                }
                // It could not read one of the requests, and does not know which one that was.
                None if matches!(
                    error.error.code,
                    ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST
                ) =>
                {
                    self.all(&error.error)
                }
                None => Vec::new(),
            },
            other => vec![other],
        }
    }

    fn unreadable(&self, outline: &Outline, reason: &str) -> ReceivedLine {
        if outline.is_request() {
            return match &outline.id {
                Some(id) => ReceivedLine::Refused(refusal(id, reason)),
                None => ReceivedLine::Messages(Vec::new()),
            };
        }
        let messages = match &outline.id {
            Some(id) => self.take(id).map(|(id, _)| failure(id, reason)).into_iter().collect(),
            None if outline.is_named && outline.is_answer() => self.all(&unread(reason)),
            None => Vec::new(),
        };
        ReceivedLine::Messages(messages)
    }

    /// Fails all requests that wait, because one of them has an answer that cannot be assigned.
    fn all(&self, error: &ErrorData) -> Vec<ServerJsonRpcMessage> {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        let failed = waiting.into_keys().map(|id| {
            let error = ErrorData::new(error.code, error.message.clone(), None);
            ServerJsonRpcMessage::error(error, Some(id))
        });
        failed.collect()
    }

    /// Returns the number of the request that a message answers.
    fn answered(&self, outline: &Outline) -> Option<RequestId> {
        let id = outline.id.as_ref()?;
        self.known(id)
    }

    /// Returns the number of a request that waits. Some servers answer 7 as "7".
    fn known(&self, id: &RequestId) -> Option<RequestId> {
        let waiting = lock(&self.waiting);
        if waiting.contains_key(id) {
            return Some(id.clone());
        }
        let RequestId::String(text) = id else { return None };
        text.parse().ok().map(RequestId::Number).filter(|id| waiting.contains_key(id))
    }

    fn take(&self, id: &RequestId) -> Option<(RequestId, RequestKind)> {
        let id = self.known(id)?;
        let asked = lock(&self.waiting).remove(&id)?;
        Some((id, asked))
    }
}

pub(super) fn asked(request: &ClientRequest) -> RequestKind {
    match request {
        ClientRequest::DiscoverRequest(_) => RequestKind::Discovery,
        ClientRequest::ListToolsRequest(_) => RequestKind::Page,
        ClientRequest::CallToolRequest(_) => RequestKind::Call,
        _ => RequestKind::Other,
    }
}

/// Returns why an answer is too long.
pub(super) fn too_long(bytes: usize, limit: usize) -> String {
    format!("it has {bytes} bytes, the limit is {limit} (`maxAnswerBytes`)")
}

/// Returns the failure of a request whose answer cannot be read.
pub(super) fn failure(id: RequestId, reason: &str) -> ServerJsonRpcMessage {
    ServerJsonRpcMessage::error(unread(reason), Some(id))
}

fn unread(reason: &str) -> ErrorData {
    ErrorData::internal_error(format!("the server's answer cannot be used: {reason}"), None)
}

fn refusal(id: &RequestId, reason: &str) -> Vec<u8> {
    let error = json!({"code": ErrorCode::PARSE_ERROR.0, "message": reason});
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string().into_bytes()
}

/// Parses a message of a server. `Err` says why it cannot be used.
fn parse(text: Vec<u8>, max_bytes: usize) -> Result<ServerJsonRpcMessage, String> {
    if text.len() > max_bytes {
        return Err(too_long(text.len(), max_bytes));
    }
    let (values, limit) = (values(&text), (max_bytes / BYTES_PER_VALUE).max(1_000));
    if values > limit {
        return Err(format!(
            "it has {values} values, the limit is {limit}, one for each {BYTES_PER_VALUE} bytes of \
             `maxAnswerBytes`"
        ));
    }
    let text = json_rpc::mended(text).map_err(|(_, reason)| reason)?;
    match serde_json::from_slice(&text) {
        Ok(message) => Ok(message),
        Err(error) => match serde_json::from_slice(&text) {
            Ok(Json::Object(object)) => {
                serde_json::from_value(completed(object)).map_err(|_| error.to_string())
            }
            Ok(_) => Err("it is no object".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    }
}

/// Returns an answer with its missing fields added.
fn completed(mut object: Map<String, Json>) -> Json {
    if object.contains_key("method") {
        return Json::Object(object);
    }
    object.insert("jsonrpc".to_owned(), "2.0".into());
    if let Some(error) = object.get_mut("error") {
        let code =
            error.get("code").and_then(Json::as_i64).and_then(|code| i32::try_from(code).ok());
        let message = error.get("message").unwrap_or(error);
        let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
        let code = code.unwrap_or(ErrorCode::INTERNAL_ERROR.0);
        *error = json!({"code": code, "message": message});
        object.remove("result");
    }
    if object.get("id").is_some_and(|id| !id.is_string() && !id.is_number()) {
        object.remove("id");
    }
    if object.contains_key("result") && !object.contains_key("id") {
        // Whoever knows which request it answers says so.
        object.insert("id".to_owned(), "".into());
    }
    Json::Object(object)
}

/// Returns an answer to a call whose parts that are unknown are texts.
fn tolerated(message: ServerJsonRpcMessage, asked: RequestKind) -> ServerJsonRpcMessage {
    let JsonRpcMessage::Response(mut response) = message else { return message };
    if asked == RequestKind::Call
        && let ServerResult::CustomResult(CustomResult(Json::Object(result))) = &response.result
        && let Some(result) = in_known_blocks(result)
    {
        response.result = ServerResult::CallToolResult(result);
    }
    JsonRpcMessage::Response(response)
}

fn in_known_blocks(result: &Map<String, Json>) -> Option<CallToolResult> {
    let blocks = match result.get("content")? {
        Json::Array(blocks) => blocks.as_slice(),
        Json::Null => &[],
        block => std::slice::from_ref(block),
    };
    let known = |block: &Json| match serde_json::from_value::<ContentBlock>(block.clone()) {
        Ok(block) => block,
        Err(_) => {
            ContentBlock::text(block.as_str().map_or_else(|| block.to_string(), str::to_owned))
        }
    };
    let is_failure = match result.get("isError") {
        Some(Json::Bool(is_failure)) => *is_failure,
        Some(Json::String(text)) => text.eq_ignore_ascii_case("true"),
        Some(Json::Number(number)) => number.as_f64() != Some(0.0),
        _ => false,
    };
    let blocks = blocks.iter().map(known).collect();
    let mut known =
        if is_failure { CallToolResult::error(blocks) } else { CallToolResult::success(blocks) };
    known.structured_content =
        result.get("structuredContent").filter(|content| !content.is_null()).cloned();
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(id: i64) -> RequestId {
        RequestId::Number(id)
    }

    fn reader(calls: impl IntoIterator<Item = i64>) -> Reader {
        let reader = Reader::new(64 * 1024);
        lock(&reader.waiting).extend(calls.into_iter().map(|id| (number(id), RequestKind::Call)));
        reader
    }

    fn said(reader: &Reader, line: &[u8]) -> Vec<Json> {
        match reader.line(line.to_vec()) {
            ReceivedLine::Messages(messages) => {
                messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect()
            }
            ReceivedLine::Refused(refusal) => vec![serde_json::from_slice(&refusal).unwrap()],
        }
    }

    #[test]
    fn an_answer_that_cannot_be_read_fails_the_call_that_it_answers() {
        let deep = format!(
            r#"{{"jsonrpc":"2.0","result":{}{},"id":1}}"#,
            "[".repeat(300),
            "]".repeat(300)
        );
        let many = format!(r#"{{"jsonrpc":"2.0","id":1,"result":[{}0]}}"#, "0,".repeat(20_000));
        let long = format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "x".repeat(70_000));
        for (line, reason) in [
            (&br#"{"jsonrpc":"2.0","id":1,"result":{"x":NaN}}"#[..], "expected value"),
            (br#"{"jsonrpc":"2.0","id":1,"result":{"x":1e400}}"#, "number out of range"),
            (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"x\":\"\xff\"}}", "it is not UTF-8"),
            (br#"{"jsonrpc":"2.0","id":"1","result":{"#, "EOF"),
            (deep.as_bytes(), "recursion limit"),
            (many.as_bytes(), "values, the limit is 8192"),
            (long.as_bytes(), "bytes, the limit is 65536"),
        ] {
            let reader = reader([1, 2]);
            let failed = said(&reader, line);
            assert_eq!((failed.len(), &failed[0]["id"]), (1, &json!(1)), "{failed:?}");
            let message = failed[0]["error"]["message"].as_str().unwrap();
            assert!(message.contains(reason), "{message}");
            assert!(reader.waits(&number(2)));
        }
        // It is unknown which one it answers.
        let lost = br#"{"jsonrpc":"2.0","result":{"x":NaN}}"#;
        assert_eq!(said(&reader([1, 2]), lost).len(), 2);
        let unread = br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}"#;
        assert_eq!(said(&reader([1]), unread)[0]["error"]["message"], "what?");
    }

    #[test]
    fn what_is_no_answer_fails_nothing() {
        for line in [
            &b"a line for people"[..],
            br#"{"level":"info","id":1,"x":NaN}"#,
            br#"{"level":"info","result":"x"}"#,
            br#"{"jsonrpc":"2.0","id":9,"result":NaN}"#,
            br#"{"jsonrpc":"2.0","id":9,"result":{}}"#,
            br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no notification"}}"#,
        ] {
            let reader = reader([2]);
            assert!(said(&reader, line).is_empty(), "{}", String::from_utf8_lossy(line));
            assert!(reader.waits(&number(2)));
        }
        let asked = br#"{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":NaN}"#;
        assert_eq!(said(&reader([]), asked)[0]["error"]["code"], -32700);
    }

    #[test]
    fn nobody_waits_for_a_discovery_once_a_handshake_has_begun() {
        let reader = reader([]);
        let info = || {
            rmcp::model::InitializeRequestParams::new(
                rmcp::model::ClientCapabilities::default(),
                rmcp::model::Implementation::new("x", "1"),
            )
        };
        for (id, request) in [
            (
                1,
                ClientRequest::DiscoverRequest(rmcp::model::DiscoverRequest::new(
                    rmcp::model::DiscoverRequestParams {},
                )),
            ),
            (2, ClientRequest::InitializeRequest(rmcp::model::InitializeRequest::new(info()))),
        ] {
            reader.sent(&ClientJsonRpcMessage::request(request, number(id)));
        }
        let late = br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"what?"}}"#;
        assert!(said(&reader, late).is_empty());
        assert!(reader.waits(&number(2)));
    }

    #[test]
    fn what_is_nearly_an_answer_is_one() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (id, content, expected) in [
            ("1", r#"[{"type":"text","text":"a\ud83db"}]"#, json!([text("a\u{fffd}b")])),
            (
                "\"1\"",
                r#"[{"type":"hologram"},{"type":"text","text":"b"}]"#,
                json!([text("{\"type\":\"hologram\"}"), text("b")]),
            ),
        ] {
            let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":{content}}}}}"#);
            let answer = said(&reader([1]), line.as_bytes()).pop().unwrap();
            assert_eq!((&answer["id"], &answer["result"]["content"]), (&json!(1), &expected));
        }
        for line in [
            &br#"{"jsonrpc":"2.0","id":1,"error":"boom"}"#[..],
            br#"{"id":1,"error":{"message":"boom"}}"#,
        ] {
            assert_eq!(said(&reader([1]), line)[0]["error"]["message"], "boom");
        }
    }

    #[test]
    fn the_answer_to_a_request_by_http_is_its_answer_whatever_its_number() {
        for id in ["null", "\"server-error\"", "99", "true"] {
            for what in [r#""result":{"content":[]}"#, r#""error":{"code":-32000,"message":"no"}"#]
            {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},{what}}}"#);
                let answer = reader([1]).body(body.into_bytes(), &number(1), RequestKind::Call);
                let answer = serde_json::to_value(&answer).unwrap();
                assert_eq!(answer["id"], 1, "{answer}");
            }
        }
    }
}
