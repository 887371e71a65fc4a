//! Ops for HTTP exchanges. Each exchange begins with a call, like a tool call. The number of the
//! call becomes that of the exchange, and each operation on the exchange is another call.

use deno_core::{OpState, ToJsBuffer, op2};
use serde::Serialize;

use super::OpError;
use super::tool::answer_refusal;
use crate::data::tool::ToolError;
use crate::data::value::Value;
use crate::isolate::order::Answerer;
use crate::isolate::state::State;
use crate::protocol::codec;
use crate::protocol::{HostReply, HostRequest, NetRequest};

/// Returns why no request can go to a server; an empty result if one may.
#[op2]
#[string]
pub(crate) fn op_isolet_net_check(
    state: &OpState,
    #[string] host: String,
    #[smi] port: u32,
) -> String {
    match state.borrow::<State>().host.call(HostRequest::NetCheck { host: &host, port }) {
        HostReply::Refused(_, message) => message,
        _ => String::new(),
    }
}

/// Connects to a server, for the next request to it. Returns the number of the call.
#[op2(fast)]
pub(crate) fn op_isolet_net_connect(
    state: &mut OpState,
    #[string] host: String,
    #[smi] port: u32,
) -> Result<u32, OpError> {
    let request = NetRequest::Connect { host: &host, port };
    call(state.borrow_mut(), |call| HostRequest::NetStart { call, request })
}

/// Starts an exchange that our Python glue describes. Returns its number.
#[op2(fast)]
pub(crate) fn op_isolet_net_start(
    state: &mut OpState,
    #[buffer] request: &[u8],
) -> Result<u32, OpError> {
    let request = NetRequest::Encoded(request);
    call(state.borrow_mut(), |call| HostRequest::NetStart { call, request })
}

/// Starts an exchange that `fetch` describes, with the headers as JSON. Returns its number.
#[op2]
pub(crate) fn op_isolet_fetch(
    state: &mut OpState,
    #[string] method: String,
    #[string] url: String,
    #[string] headers: String,
    #[buffer] body: Option<&[u8]>,
    #[string] redirect: String,
) -> Result<u32, OpError> {
    let (method, url, headers, redirect) = (&*method, &*url, &*headers, &*redirect);
    let (has_body, body) = (body.is_some(), body.unwrap_or_default());
    let request = NetRequest::Fetch { method, url, headers, has_body, body, redirect };
    call(state.borrow_mut(), |call| HostRequest::NetStart { call, request })
}

/// Sends the next chunk of the body; an empty one ends it. Returns the number of the call, which is
/// answered when there is room for more.
#[op2(fast)]
pub(crate) fn op_isolet_net_send(
    state: &mut OpState,
    #[smi] exchange: u32,
    #[buffer] chunk: &[u8],
) -> Result<u32, OpError> {
    call(state.borrow_mut(), |call| HostRequest::NetSend { call, exchange, chunk })
}

/// Reads the body of the response. Returns the number of the call, which is answered with at most
/// `max` bytes, or none at the end.
#[op2(fast)]
pub(crate) fn op_isolet_net_read(
    state: &mut OpState,
    #[smi] exchange: u32,
    #[smi] max: u32,
) -> Result<u32, OpError> {
    call(state.borrow_mut(), |call| HostRequest::NetRead { call, exchange, max })
}

/// Ends an exchange.
#[op2(fast)]
pub(crate) fn op_isolet_net_close(state: &mut OpState, #[smi] exchange: u32) {
    let state = state.borrow_mut::<State>();
    if let Some(order) = &mut state.order {
        order.forget(exchange);
    }
    state.calls.cancel(exchange);
    state.host.call(HostRequest::NetClose(exchange));
}

/// The head of a response, or an exception's class and message.
#[derive(Default, Serialize)]
pub(crate) struct Head {
    error: Option<(String, String)>,
    status: i64,
    reason: String,
    url: String,
    redirected: bool,
    headers: Vec<(String, String)>,
}

/// Takes the answer to the call that started an exchange.
#[op2]
#[serde]
pub(crate) fn op_isolet_net_head(state: &mut OpState, #[smi] call: u32) -> Head {
    match take(state.borrow_mut(), call) {
        Ok(value) => {
            let text =
                |name| value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            let headers = value.get("headers").and_then(Value::as_list).unwrap_or_default();
            Head {
                error: None,
                status: value.get("status").and_then(Value::as_i64).unwrap_or_default(),
                reason: text("reason"),
                url: text("url"),
                redirected: value.get("redirected") == Some(&Value::Bool(true)),
                headers: headers.iter().filter_map(header).collect(),
            }
        }
        Err(error) => Head { error: Some(error), ..Head::default() },
    }
}

/// Takes the answer to a read: an exception's class and message, if any, and the bytes.
#[op2]
#[serde]
pub(crate) fn op_isolet_net_chunk(
    state: &mut OpState,
    #[smi] call: u32,
) -> (Option<(String, String)>, ToJsBuffer) {
    match take(state.borrow_mut(), call) {
        Ok(Value::Bytes(bytes)) => (None, bytes.into()),
        Ok(_) => (None, Vec::new().into()),
        Err(error) => (Some(error), Vec::new().into()),
    }
}

fn call<'a>(
    state: &mut State,
    request: impl FnOnce(u32) -> HostRequest<'a>,
) -> Result<u32, OpError> {
    let call = state.open_call(Answerer::Network).ok_or(OpError::Phase("another call"))?;
    answer_refusal(state, call, |state| state.host.call(request(call)))?;
    Ok(call)
}

fn take(state: &mut State, call: u32) -> Result<Value, (String, String)> {
    let answer = state.calls.take(call);
    let answer = answer.ok_or_else(|| ToolError::new("OSError", "the exchange is closed"));
    answer
        .and_then(|bytes| codec::decode_answer(&bytes))
        .map_err(|error| (error.type_name().to_owned(), error.message().to_owned()))
}

fn header(pair: &Value) -> Option<(String, String)> {
    match pair.as_list()? {
        [Value::Str(name), Value::Bytes(value)] => {
            Some((name.clone(), value.iter().copied().map(char::from).collect()))
        }
        _ => None,
    }
}
