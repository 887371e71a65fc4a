//! What a client of the MCP server says.

use isolet::fuzzing::measured;
use isolet_support::json_rpc::Outline;
use rmcp::model::{ClientRequest, JsonRpcMessage};
use serde_json::Value as Json;

use super::arguments::Arguments;
use super::incoming::{Incoming, long, read};

/// How many times its length a message may take, and what it may take besides.
const FACTOR: usize = 700;
const FIXED: usize = 64 << 10;
/// The most that a refusal adds to what it repeats of a message, in bytes.
const REFUSAL_BYTES: usize = 2000;
/// The bytes of both ends of a message that is too long.
const ENDS: usize = 256;

/// Reads a message, and its ends as those of one that is too long. A request is passed on or
/// refused by its number, and a refusal is one error of JSON-RPC; the arguments of a call are read,
/// or refused by a text that names the argument.
pub fn mcp_server(data: &[u8]) {
    let (incoming, used) = measured(|| read(data.to_vec()));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let is_valid = serde_json::from_slice::<Json>(data).is_ok_and(|json| json.is_object());
    let outline = Outline::of(data);
    match incoming {
        Incoming::Message(message) => passed(&message),
        Incoming::Refused(answer) => refused(&answer, data.len()),
        Incoming::Nothing => {
            let wants_answer = is_valid && outline.is_request() && outline.id.is_some();
            assert!(!wants_answer, "{} is not answered", String::from_utf8_lossy(data));
        }
    }
    let end = data.get(data.len().saturating_sub(ENDS)..).unwrap_or_default();
    match long(data.get(..ENDS).unwrap_or(data), end, usize::MAX) {
        Incoming::Refused(answer) => refused(&answer, data.len()),
        Incoming::Message(message) => {
            assert!(matches!(*message, JsonRpcMessage::Error(_)), "{message:?}");
        }
        Incoming::Nothing => {}
    }
}

/// A refusal has the number of a request, or of each of a batch, and a text.
fn refused(answer: &Json, length: usize) {
    let shown = answer.to_string();
    let answers = match answer {
        Json::Array(answers) => answers.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts: usize = answers.iter().map(|answer| answer.to_string().len()).max().unwrap_or(0);
    assert!(!answers.is_empty() && texts <= 8 * length + REFUSAL_BYTES, "{shown}");
    for answer in answers {
        assert_eq!(answer["jsonrpc"], "2.0", "{shown}");
        let id = &answer["id"];
        assert!(id.is_null() || id.is_string() || id.is_number(), "{shown}");
        assert!(answer.pointer("/error/code").is_some_and(Json::is_i64), "{shown}");
        let text = answer.pointer("/error/message").and_then(Json::as_str).unwrap_or_default();
        assert!(!text.is_empty() && !text.contains('\n'), "{shown}");
    }
}

/// A message says the same when it is written and read again. The arguments of a call are read.
fn passed(message: &rmcp::model::ClientJsonRpcMessage) {
    let written = serde_json::to_vec(message).unwrap_or_default();
    match read(written) {
        Incoming::Message(again) => {
            let texts = [message, &again].map(|message| serde_json::to_value(message).ok());
            assert_eq!(texts[0], texts[1]);
        }
        Incoming::Refused(answer) => unreachable!("{message:?} is refused: {answer}"),
        Incoming::Nothing => unreachable!("{message:?} is nothing"),
    }
    let JsonRpcMessage::Request(request) = message else { return };
    let ClientRequest::CallToolRequest(call) = &request.request else { return };
    let given = call.params.arguments.clone().unwrap_or_default();
    let arguments = Arguments::new("tool", &given, &["session", "timeout", "limit", "code"]);
    let texts = [arguments.session(), arguments.name("code")];
    let mut refusals: Vec<String> = texts.into_iter().filter_map(Result::err).collect();
    match arguments.seconds("timeout") {
        Ok(time) => assert!(time.is_none_or(|time| time.as_secs_f64() >= 0.0)),
        Err(refusal) => refusals.push(refusal),
    }
    match arguments.count("limit", 50) {
        Ok(count) => assert!(count.is_none_or(|count| (1..=50).contains(&count))),
        Err(refusal) => refusals.push(refusal),
    }
    for refusal in refusals {
        assert!(refusal.starts_with('`') && refusal.contains(" of tool is "), "{refusal:?}");
        assert!(refusal.chars().count() < 200, "{refusal:?}");
    }
    let remark = arguments.remark().unwrap_or_default();
    assert!(!remark.contains(char::is_control) && remark.chars().count() < 6000, "{remark:?}");
}
