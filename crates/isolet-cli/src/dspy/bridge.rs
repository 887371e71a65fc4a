//! Registers the client's tools as tools of the session.

use isolet::{Tool, ToolError, ToolSpec, Value};

use super::channel::{self, Channel};
use super::messages::{self, Incoming, ToolEntry};
use isolet_support::json_text as json;

/// Makes a tool that forwards its calls to the client.
pub(super) fn tool(entry: ToolEntry, channel: &Channel) -> Tool {
    let (name, parameters) = match entry {
        ToolEntry::Name(name) => (name, Vec::new()),
        ToolEntry::Spec { name, parameters } => (name, parameters),
    };
    let spec = messages::params(parameters).into_iter().fold(ToolSpec::new(&name), ToolSpec::param);
    let channel = channel.clone();
    Tool::from_handler(spec, move |arguments, _| call(channel.clone(), name.clone(), arguments))
}

/// Asks the client to call a tool and waits for the answer.
async fn call(channel: Channel, name: String, arguments: Value) -> Result<Value, ToolError> {
    let broken = |reason: &str| {
        ToolError::new("RuntimeError", format!("Tool bridge error for '{name}': {reason}"))
    };
    let (id, answer) = channel.expect_answer();
    channel::write(&messages::tool_call(&id, &name, arguments))
        .map_err(|error| broken(&error.to_string()))?;
    let answer =
        answer.await.map_err(|_| broken("stdin closed while waiting for tool response"))?;
    let answer = answer.map_err(|reason| broken(&reason))?;
    result(*answer).map_err(|reason| match reason {
        Failure::Raised(text) => ToolError::new("RuntimeError", text),
        Failure::Malformed(reason) => broken(&reason),
    })
}

enum Failure {
    /// The tool raised.
    Raised(String),
    /// The answer violates the protocol.
    Malformed(String),
}

fn result(answer: Incoming) -> Result<Value, Failure> {
    if let Some(error) = answer.error {
        let type_name = error.data.type_name.unwrap_or_else(|| "ToolError".to_owned());
        let message = if error.message.is_empty() { "Tool call failed" } else { &error.message };
        return Err(Failure::Raised(format!("{type_name}: {message}")));
    }
    let result = answer.result.ok_or_else(|| Failure::Malformed("no result".to_owned()))?;
    match result.value {
        Value::Str(text) if result.kind == "json" => json::parse(&text).map_err(Failure::Malformed),
        value => Ok(value),
    }
}
