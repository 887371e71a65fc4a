//! Tools that clients implement.

use std::sync::Arc;
use std::time::Duration;

use isolet::{Param, Tool, ToolContext, ToolError, ToolSpec, TypeHint, Value};
use serde::{Deserialize, Serialize};

use super::{Failure, Service, execution, plain};

/// A tool, as a client describes it.
#[derive(Clone, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = Tool)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    name: String,
    /// Its docstring.
    #[serde(default)]
    doc: String,
    #[serde(default)]
    parameters: Vec<ParamEntry>,
    /// A JSON schema of its result.
    #[serde(default, serialize_with = "plain::value")]
    #[schema(value_type = Option<Object>)]
    returns: Value,
    #[serde(default)]
    style: StyleEntry,
    /// The maximum duration of a call, in seconds.
    #[serde(default)]
    timeout: Option<f64>,
    /// The maximum number of calls in a session.
    #[serde(default)]
    max_calls: Option<u64>,
    /// Set if a call that was under way when a process ended is made again by the one that goes on
    /// with the session's journal.
    #[serde(default)]
    idempotent: bool,
}

/// A parameter of a tool, or a field of a submission.
#[derive(Clone, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = Parameter)]
#[serde(deny_unknown_fields)]
struct ParamEntry {
    name: String,
    #[serde(default)]
    doc: String,
    /// A JSON schema of the argument.
    #[serde(default, serialize_with = "plain::value")]
    #[schema(value_type = Option<Object>)]
    schema: Value,
    /// The default argument.
    #[serde(
        default,
        deserialize_with = "present",
        skip_serializing_if = "Option::is_none",
        serialize_with = "plain::optional"
    )]
    #[schema(value_type = serde_json::Value)]
    default: Option<Value>,
    /// Set if calls may omit it.
    #[serde(default)]
    optional: bool,
    /// Set if arguments are checked against the schema.
    #[serde(default = "yes")]
    check: bool,
    #[serde(default)]
    kind: KindEntry,
}

/// How an argument is passed.
#[derive(Clone, Copy, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = ParameterKind)]
#[serde(rename_all = "snake_case")]
enum KindEntry {
    #[default]
    Standard,
    PositionalOnly,
    KeywordOnly,
    VarPositional,
    VarKeyword,
}

/// How the guest calls a tool.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = ToolStyle)]
#[serde(rename_all = "snake_case")]
enum StyleEntry {
    #[default]
    Plain,
    Async,
}

/// The function that submits the result of a run.
#[derive(Clone, Deserialize, Serialize, utoipa::ToSchema)]
#[schema(as = Submit)]
#[serde(deny_unknown_fields)]
pub struct SubmitEntry {
    /// The function's name. Default: `SUBMIT`.
    #[serde(default = "submit_name")]
    name: String,
    fields: Vec<ParamEntry>,
}

fn submit_name() -> String {
    "SUBMIT".to_owned()
}

fn yes() -> bool {
    true
}

/// Distinguishes a default of `None` from no default.
fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The function of a tool.
pub(crate) type ToolHandler = Arc<
    dyn Fn(Value, ToolContext) -> futures_util::future::BoxFuture<'static, Result<Value, ToolError>>
        + Send
        + Sync,
>;

impl SubmitEntry {
    /// Reads a submit function.
    pub fn read(submit: Value) -> Result<Self, Failure> {
        isolet::from_value(submit)
            .map_err(|error| Failure::config(format!("`submit` is invalid: {error}")))
    }

    /// Returns the function's name and fields.
    pub(crate) fn function(self) -> (String, Vec<Param>) {
        (self.name, self.fields.into_iter().map(ParamEntry::param).collect())
    }
}

impl ToolEntry {
    /// Reads a list of tools.
    pub fn read(tools: Value) -> Result<Vec<Self>, Failure> {
        isolet::from_value(tools)
            .map_err(|error| Failure::config(format!("the tools are invalid: {error}")))
    }

    /// Has a call be made again that was under way when the process ended.
    pub(crate) fn make_idempotent(&mut self) {
        self.idempotent = true;
    }

    /// Converts to the library's type. `handler` returns the function of a tool.
    pub(crate) fn tool(self, handler: &dyn Fn(&str) -> ToolHandler) -> Result<Tool, Failure> {
        let mut spec = ToolSpec::new(&self.name).doc(self.doc);
        spec = spec.returns(TypeHint::from_json_schema(&self.returns));
        if self.style == StyleEntry::Async {
            spec = spec.asynchronous();
        }
        spec = self.parameters.into_iter().map(ParamEntry::param).fold(spec, ToolSpec::param);
        let handler = handler(&self.name);
        let mut tool = Tool::from_handler(spec, move |arguments, cx| handler(arguments, cx));
        if let Some(seconds) = self.timeout {
            let timeout: Duration = execution::duration("timeout", seconds)?;
            tool = tool.timeout(timeout);
        }
        if let Some(calls) = self.max_calls {
            tool = tool.max_calls(calls);
        }
        if self.idempotent {
            tool = tool.idempotent();
        }
        Ok(tool)
    }
}

impl ParamEntry {
    fn param(self) -> Param {
        let hint = TypeHint::from_json_schema(&self.schema);
        let mut param = Param::new(self.name).doc(self.doc);
        param = if self.check { param.hint(hint) } else { param.annotation(hint) };
        param = match self.default {
            Some(default) => param.default_value(default),
            None if self.optional => param.optional(),
            None => param,
        };
        match self.kind {
            KindEntry::Standard => param,
            KindEntry::PositionalOnly => param.positional_only(),
            KindEntry::KeywordOnly => param.keyword_only(),
            KindEntry::VarPositional => param.var_positional(),
            KindEntry::VarKeyword => param.var_keyword(),
        }
    }
}

impl Service {
    /// Returns the function of the tool with this name: it asks the listener.
    pub(crate) fn tool_handler(&self, name: &str) -> ToolHandler {
        let name: Arc<str> = name.into();
        let (calls, guests) = (Arc::clone(&self.calls), Arc::clone(&self.guests));
        Arc::new(move |arguments, context| {
            let (name, calls) = (Arc::clone(&name), Arc::clone(&calls));
            let entry = guests.get(context.session_id());
            Box::pin(async move {
                let gone = || ToolError::new("RuntimeError", "the session's owner has gone");
                let entry = entry.ok_or_else(gone)?;
                // Output written before the call must be sent before it. The run's thread prefers
                // output whenever it is polled.
                tokio::task::yield_now().await;
                entry.output().flush(false);
                let listener = entry.listener();
                let asked = (context.call_id(), &*name, arguments);
                let call = listener.and_then(|its| calls.ask(&entry, its, asked));
                let call = call.ok_or_else(|| {
                    let text = format!("nobody answers `{name}`: the run's events are not read");
                    ToolError::new("RuntimeError", text)
                })?;
                call.answer().await.ok_or_else(gone)?
            })
        })
    }
}
