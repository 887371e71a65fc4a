//! Reads what clients send, and answers invalid messages with the reason.

use rmcp::model::{
    CallToolRequestParams, ClientJsonRpcMessage, ClientRequest, ErrorCode, InitializeRequestParams,
    JsonObject, JsonRpcMessage, PaginatedRequestParams, ReadResourceRequestParams, RequestId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::tools::{CLOSE_SESSION, RUN_PYTHON, SEARCH_TOOLS};
use isolet_support::json_rpc::{self, Outline};
use isolet_support::json_text::count;

/// The most bytes of a message.
pub(super) const MAX_BYTES: usize = 16 << 20;

/// The most values of a message. In memory, one takes some hundred times the three bytes that an
/// empty one has in JSON.
const MAX_VALUES: usize = 200_000;

/// The most requests of a batch that are answered one by one.
const MAX_BATCH: usize = 1_000;

/// The most characters of a method's name that a message shows.
const METHOD_CHARS: usize = 100;

/// The message about wrong parameters when no better one is known.
const NOT_SO: &str = "they are not as the protocol has them";

/// A message of a client.
pub(super) enum Incoming {
    Message(Box<ClientJsonRpcMessage>),
    /// An invalid message, and the answer that refuses it.
    Refused(Json),
    /// Nothing that wants an answer.
    Nothing,
}

/// Reads a message.
pub(super) fn read(text: Vec<u8>) -> Incoming {
    if text.trim_ascii().is_empty() {
        return Incoming::Nothing;
    }
    if text.len() > MAX_BYTES {
        return unreadable(&Outline::of(&text), &too_long(text.len()));
    }
    let values = count(&text);
    if values > MAX_VALUES {
        let reason = format!("it has {values} values, the limit is {MAX_VALUES}");
        return unreadable(&Outline::of(&text), &reason);
    }
    let text = match json_rpc::mended(text) {
        Ok(text) => text,
        Err((text, reason)) => return unreadable(&Outline::of(&text), &reason),
    };
    match serde_json::from_slice(&text) {
        Ok(message) => checked(message),
        Err(error) => match serde_json::from_slice::<Json>(&text) {
            Ok(json) => invalid(&json, &error.to_string()),
            Err(error) => unreadable(&Outline::of(&text), &error.to_string()),
        },
    }
}

/// Answers a message that is too long, of which these are the ends.
pub(super) fn long(start: &[u8], end: &[u8], bytes: usize) -> Incoming {
    unreadable(&Outline::of_ends(start, end), &too_long(bytes))
}

fn too_long(bytes: usize) -> String {
    format!("it has {bytes} bytes, the limit is {MAX_BYTES}")
}

/// Returns the answer to a message that is no JSON.
fn unreadable(outline: &Outline, reason: &str) -> Incoming {
    let hint = if outline.is_object() { "" } else { "; a message is an object, on one line" };
    let reason = format!("the message cannot be read: {reason}{hint}");
    refused(outline, ErrorCode::PARSE_ERROR, &reason)
}

/// Returns the answers to the requests of a batch.
fn batch(messages: &[Json]) -> Incoming {
    let of_request = |message: &Json| {
        message.get("method")?;
        RequestId::deserialize(message.get("id")?).ok()
    };
    let refusal = |id: Option<&RequestId>| {
        let reason = "this is a batch, which the protocol no longer has; send each message alone";
        refusal(id, ErrorCode::INVALID_REQUEST, reason)
    };
    let mut ids = messages.iter().filter_map(of_request);
    let answers: Vec<Json> = ids.by_ref().take(MAX_BATCH).map(|id| refusal(Some(&id))).collect();
    let is_all = !answers.is_empty() && ids.next().is_none();
    Incoming::Refused(if is_all { Json::Array(answers) } else { refusal(None) })
}

/// Returns the answer to JSON that is no message.
fn invalid(json: &Json, reason: &str) -> Incoming {
    if let Json::Array(messages) = json
        && !messages.is_empty()
    {
        return batch(messages);
    }
    let outline = Outline::of(json.to_string().as_bytes());
    if outline.is_request() && json.get("id").is_none() {
        // A notification, which is never answered.
        return Incoming::Nothing;
    }
    if let (Some(method), Some(params)) =
        (json.get("method").and_then(Json::as_str), json.get("params"))
        && !params.is_object()
    {
        let method: String = method.chars().take(METHOD_CHARS).collect();
        let (shown, reason) = (method.escape_debug(), no_object(params));
        let reason = format!("the parameters of `{shown}` are wrong: {reason}");
        return refused(&outline, ErrorCode::INVALID_PARAMS, &reason);
    }
    let reason = format!("this is no message of JSON-RPC 2.0: {reason}");
    refused(&outline, ErrorCode::INVALID_REQUEST, &reason)
}

fn refused(outline: &Outline, code: ErrorCode, reason: &str) -> Incoming {
    if outline.is_answer() {
        // The answer to a question of this server, which waits for it.
        let Some(id) = outline.id.clone() else { return Incoming::Nothing };
        let error = rmcp::model::ErrorData::new(code, reason.to_owned(), None);
        return Incoming::Message(Box::new(JsonRpcMessage::error(error, Some(id))));
    }
    Incoming::Refused(refusal(outline.id.as_ref(), code, reason))
}

/// Returns an error that answers a request; `null` stands for one whose number is unknown.
pub(super) fn refusal(id: Option<&RequestId>, code: ErrorCode, reason: &str) -> Json {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code.0, "message": reason}})
}

/// Checks the parameters of requests that `rmcp` takes for requests that it does not know when
/// these are wrong.
fn checked(message: ClientJsonRpcMessage) -> Incoming {
    let JsonRpcMessage::Request(mut request) = message else {
        return Incoming::Message(Box::new(message));
    };
    if let ClientRequest::CustomRequest(custom) = &mut request.request {
        let params = custom.params.take().unwrap_or_else(|| json!({}));
        let reason = match custom.method.as_str() {
            "tools/call" => match with_object(params) {
                // The message is parsed again with these parameters.
                Ok(params) => {
                    let anew = json!({
                        "jsonrpc": "2.0", "id": request.id,
                        "method": "tools/call", "params": params,
                    });
                    match serde_json::from_value::<ClientJsonRpcMessage>(anew) {
                        Ok(JsonRpcMessage::Request(anew))
                            if matches!(anew.request, ClientRequest::CallToolRequest(_)) =>
                        {
                            return Incoming::Message(Box::new(JsonRpcMessage::Request(anew)));
                        }
                        _ => Some(fault::<CallToolRequestParams>(params)),
                    }
                }
                Err(reason) => Some(reason),
            },
            "initialize" => Some(fault::<InitializeRequestParams>(params)),
            "resources/read" => Some(fault::<ReadResourceRequestParams>(params)),
            "tools/list" | "resources/list" => Some(fault::<PaginatedRequestParams>(params)),
            "ping" | "server/discover" => Some(NOT_SO.to_owned()),

            _ => {
                custom.params = Some(params);
                None
            }
        };
        if let Some(reason) = reason {
            let reason = format!("the parameters of `{}` are wrong: {reason}", custom.method);
            return Incoming::Refused(refusal(
                Some(&request.id),
                ErrorCode::INVALID_PARAMS,
                &reason,
            ));
        }
    }
    Incoming::Message(Box::new(JsonRpcMessage::Request(request)))
}

/// Describes the mistake in parameters.
fn fault<T: DeserializeOwned>(params: Json) -> String {
    match serde_json::from_value::<T>(params) {
        Ok(_) => NOT_SO.to_owned(),
        Err(error) => error.to_string(),
    }
}

/// Returns the parameters of a call with the arguments as an object. Some clients send the text of
/// one, or an empty text.
fn with_object(mut params: Json) -> Result<Json, String> {
    let Json::Object(fields) = &mut params else {
        return Err(no_object(&params));
    };
    if !fields.get("name").is_some_and(Json::is_string) {
        return Err(format!(
            "`name` is {}, it has to be the name of a tool, such as `{RUN_PYTHON}`, \
             `{CLOSE_SESSION}` or `{SEARCH_TOOLS}`",
            fields.get("name").map_or("missing", kind)
        ));
    }
    let wanted = "it has to be an object, such as {\"code\": \"print(1)\"}";
    let arguments = match fields.get("arguments") {
        None | Some(Json::Null) => None,
        Some(Json::Object(object)) => Some(object.clone()),
        Some(Json::Array(items)) if items.is_empty() => None,
        Some(Json::String(text)) => match text.trim() {
            "" | "null" => None,
            text => match serde_json::from_str::<JsonObject>(text) {
                Ok(object) => Some(object),
                Err(_) => return Err(format!("`arguments` is a text, {wanted}")),
            },
        },
        Some(other) => return Err(format!("`arguments` is {}, {wanted}", kind(other))),
    };
    fields.insert("arguments".to_owned(), Json::Object(arguments.unwrap_or_default()));
    Ok(params)
}

fn no_object(params: &Json) -> String {
    format!("they are {}, they have to be an object", kind(params))
}

fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a text",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &[u8]) -> (Json, i64, String) {
        match read(text.to_vec()) {
            Incoming::Refused(answer) => {
                let error = &answer["error"];
                let said = error["message"].as_str().unwrap_or_default().to_owned();
                (answer["id"].clone(), error["code"].as_i64().unwrap_or_default(), said)
            }
            Incoming::Message(message) => panic!("{message:?}"),
            Incoming::Nothing => panic!("no answer"),
        }
    }

    fn call(params: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#)
    }

    #[test]
    fn whatever_cannot_be_read_is_answered_with_its_number_where_it_has_one() {
        let deep = call(&format!("{}{}", "[".repeat(200), "]".repeat(200)));
        for text in [
            &b"{\"id\":\"a\",\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"x\":\"\xff\"}"[..],
            call("NaN").as_bytes(),
            call("1e400").as_bytes(),
            call(r#"{"name":"run_python","arguments":{"code":"1""#).as_bytes(),
            deep.as_bytes(),
        ] {
            let (id, code, said) = error(text);
            assert_eq!((id, code), (json!("a"), -32700), "{said}");
        }
        for text in
            [&b"hello"[..], b"{", b"{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"params\":NaN}"]
        {
            assert_eq!(error(text).0, Json::Null);
        }
        for text in [&b"[]"[..], b"3", br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#] {
            assert_eq!(error(text).1, -32600);
        }
        let Incoming::Refused(answer) = long(br#"{"id":3,"method":"tools/call","x":""#, b"\"}", 99)
        else {
            panic!("no answer")
        };
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(3), &json!(-32700)));
        for text in [&b" \r"[..], br#"{"jsonrpc":"2.0","method":"notifications/odd","params":3}"#] {
            assert!(!matches!(read(text.to_vec()), Incoming::Refused(_)));
        }
    }

    #[test]
    fn a_message_of_too_many_values_is_refused_before_it_is_read() {
        let with = |values: usize| {
            let values = "{},".repeat(values);
            call(&format!(r#"{{"name":"run_python","arguments":{{"x":[{values}0]}}}}"#))
        };
        let (id, code, said) = error(with(MAX_VALUES / 2).as_bytes());
        assert_eq!((id, code), (json!("a"), -32700));
        assert!(said.contains("values, the limit is 200000"), "{said}");
        let text = with(MAX_VALUES / 2 - 20);
        assert!(matches!(read(text.into_bytes()), Incoming::Message(_)));
    }

    #[test]
    fn each_request_of_a_batch_is_answered() {
        let ids = |text: &str| match read(text.into()) {
            Incoming::Refused(Json::Array(answers)) => {
                answers.iter().map(|answer| answer["id"].clone()).collect()
            }
            Incoming::Refused(answer) => vec![answer["id"].clone()],
            _ => panic!("no answer"),
        };
        let ping = |id| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        let notification = r#"{"jsonrpc":"2.0","method":"notifications/odd"}"#;
        let text = format!("[{},{notification},3,{}]", ping("1"), ping("\"a\""));
        assert_eq!(ids(&text), [json!(1), json!("a")]);
        assert_eq!(ids(&format!("[{notification}]")), [Json::Null]);
        let many = vec![ping("1"); MAX_BATCH + 1].join(",");
        assert_eq!(ids(&format!("[{many}]")), [Json::Null]);
    }

    #[test]
    fn an_unreadable_answer_reaches_who_waits_for_it() {
        let text = br#"{"jsonrpc":"2.0","id":4,"result":{"action":NaN}}"#;
        let Incoming::Message(message) = read(text.to_vec()) else { panic!("it is lost") };
        assert!(matches!(*message, JsonRpcMessage::Error(error)
                if error.id == Some(RequestId::Number(4))));
    }

    #[test]
    fn wrong_parameters_are_named_and_the_text_of_an_object_is_one() {
        for (params, said) in [
            (
                r#"{"name":"run_python","arguments":[1]}"#,
                "`arguments` is a list, it has to be an object",
            ),
            (r#"{"name":"run_python","arguments":"1+1"}"#, "`arguments` is a text"),
            (r#"{"name":"run_python","arguments":3}"#, "`arguments` is a number"),
            (r#"{"arguments":{}}"#, "`name` is missing, it has to be the name of a tool"),
            (r#"{"name":3}"#, "`name` is a number"),
            ("[]", "they are a list"),
        ] {
            let (id, code, found) = error(call(params).as_bytes());
            assert_eq!((id, code), (json!("a"), -32602), "{params}");
            assert!(found.contains(said), "{found}");
        }
        let hello = br#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}"#;
        let (_, code, found) = error(hello);
        assert!(code == -32602 && found.contains("protocolVersion"), "{found}");
        for arguments in [r#""{\"code\":\"1\"}""#, r#"{"code":"\ud83d"}"#, "null", "\"\"", "[]"] {
            let text = call(&format!(r#"{{"name":"run_python","arguments":{arguments}}}"#));
            let Incoming::Message(message) = read(text.into_bytes()) else { panic!("{arguments}") };
            assert!(matches!(*message, JsonRpcMessage::Request(request)
                    if matches!(request.request, ClientRequest::CallToolRequest(_))));
        }
    }
}
