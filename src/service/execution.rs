//! Executions as plain values, in which what is empty is left out.

use std::time::Duration;

use isolet::{Display, Execution, MimeData, Outcome, PyException, Termination, Usage, Value};

use super::Failure;
use super::vocabulary::in_fields;

/// Returns the execution of a run that was interrupted before it began.
pub(crate) fn interrupted() -> Value {
    let mut fields = Fields(Vec::new());
    fields.add("status", "terminated");
    fields.add("termination", termination(&Termination::Interrupted));
    fields.add("usage", usage(&Usage::default()));
    Value::Dict(fields.0)
}

/// Returns an execution as `docs/reference/protocol.md` describes it. That of a program has no
/// value.
pub(super) fn to_value(execution: Execution, has_value: bool) -> Value {
    let mut fields = Fields(Vec::with_capacity(8));
    match execution.outcome() {
        Outcome::Raised(exception) => {
            fields.add("status", "raised");
            fields.add("exception", self::exception(exception));
        }
        Outcome::Exited(code) => {
            fields.add("status", "exited");
            fields.add("exit_code", i64::from(*code));
            if let Some(exit) = execution.system_exit() {
                fields.add("system_exit", self::exception(exit));
            }
        }
        Outcome::Terminated(termination) => {
            fields.add("status", "terminated");
            fields.add("termination", self::termination(termination));
        }
        Outcome::Submitted(_) => fields.add("status", "submitted"),
        _ => fields.add("status", "completed"),
    }
    fields.add("usage", usage(execution.usage()));
    for (name, text) in [
        ("repr", execution.repr().filter(|_| has_value).unwrap_or_default()),
        ("value_error", execution.value_error().unwrap_or_default()),
        ("stdout", execution.stdout()),
        ("stderr", execution.stderr()),
    ] {
        if !text.is_empty() {
            fields.add(name, text);
        }
    }
    let displays: Vec<Value> = execution.displays().iter().map(display).collect();
    fields.add_list("displays", displays);
    let files = execution.files().iter();
    let files = files
        .map(|file| Value::dict([("path", file.path.as_str().into()), ("size", int(file.size))]));
    fields.add_list("files", files.collect());
    if !execution.locals().is_empty() {
        let locals = execution.locals().iter();
        fields.add(
            "locals",
            Value::dict(locals.map(|local| (local.name.as_str(), local.repr.as_str()))),
        );
    }
    let truncated = execution.truncated();
    if truncated.is_any() {
        let truncated = Value::dict([
            ("stdout_bytes", int(truncated.stdout_bytes)),
            ("stderr_bytes", int(truncated.stderr_bytes)),
            ("displays", int(truncated.displays)),
            ("files", int(truncated.files)),
        ]);
        fields.add("truncated", truncated);
    }
    if !execution.session_alive() {
        fields.add("session_alive", false);
    }
    if let Some(value) = execution.into_value().filter(|value| has_value && !value.is_none()) {
        fields.add("value", value);
    }
    Value::Dict(fields.0)
}

fn usage(usage: &Usage) -> Value {
    Value::dict([
        ("wall_time", usage.wall_time.as_secs_f64().into()),
        ("host_time", usage.host_time.as_secs_f64().into()),
        ("peak_memory_bytes", int(usage.peak_memory_bytes)),
        ("stdout_bytes", int(usage.stdout_bytes)),
        ("stderr_bytes", int(usage.stderr_bytes)),
        ("tool_calls", int(usage.tool_calls)),
    ])
}

struct Fields(Vec<(Value, Value)>);

impl Fields {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        self.0.push((name.into(), value.into()));
    }

    fn add_list(&mut self, name: &str, items: Vec<Value>) {
        if !items.is_empty() {
            self.add(name, Value::List(items));
        }
    }
}

/// Returns a display as a value.
pub(crate) fn display(display: &Display) -> Value {
    let data = display.formats().map(|(format, data)| {
        let data = match data {
            MimeData::Bytes(bytes) => Value::bytes(bytes.clone()),
            data => data.as_str().unwrap_or_default().into(),
        };
        (format, data)
    });
    Value::dict([("data", Value::dict(data)), ("is_result", display.is_result().into())])
}

fn exception(exception: &PyException) -> Value {
    let optional = |text: Option<&str>| text.map_or(Value::None, Value::from);
    Value::dict([
        ("type", exception.type_name.as_str().into()),
        ("message", exception.message.as_str().into()),
        ("args", optional(exception.args_json.as_deref())),
        ("traceback", exception.traceback.as_str().into()),
        ("cause", exception.cause.as_deref().map_or(Value::None, self::exception)),
    ])
}

fn termination(termination: &Termination) -> Value {
    let kind = match termination {
        Termination::Deadline { .. } | Termination::HostTime { .. } => "timeout",
        Termination::Memory { .. } => "memory",
        Termination::Interrupted => "interrupted",
        Termination::Died { .. } => "died",
        _ => "limit",
    };
    Value::dict([("kind", kind.to_owned()), ("message", in_fields(&termination.to_string()))])
}

/// Returns a count as an int.
pub(super) fn int(count: u64) -> Value {
    i128::from(count).into()
}

/// Reads a duration in seconds.
pub(super) fn duration(name: &str, seconds: f64) -> Result<Duration, Failure> {
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        Failure::config(format!(
            "`{name}` is {seconds}, and has to be a number of seconds, 0 or more"
        ))
    })
}
