//! Encodes commands for the guest's Python glue and decodes its replies. Replies are hostile.

pub(crate) mod report;

use std::sync::Arc;

use crate::data::cell::{Program, Role};
use crate::data::terminal::Terminal;
use crate::data::tool::spec::Style;
use crate::data::tool::{Param, ToolError, ToolSpec};
use crate::data::value::{Value, check_bounds, marshal};
use crate::protocol::{
    Command, DefinedModule, DefinedModules, Definitions, ForkMoment, RunCommand, StartCommand,
};
pub(crate) use report::{decode, tail};

/// Space for everything in a report except the value: traceback, reprs, names.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// Encodes a command for the guest.
pub(crate) fn encode(command: Command) -> Vec<u8> {
    let (name, fields) = match command {
        Command::Start(StartCommand { env, terminal, has_packages, mounts, functions }) => {
            let mut fields = start_fields(env, terminal, has_packages);
            let mounts =
                mounts.into_iter().flat_map(|path| path.into_bytes().into_iter().chain([0]));
            fields.push(("mounts", Value::Bytes(mounts.collect())));
            fields.extend(definitions(functions));
            ("start", fields)
        }
        Command::Resume { env, terminal, has_packages } => {
            ("resume", start_fields(env, terminal, has_packages))
        }
        Command::Save => ("save", vec![]),
        Command::Rehearse(times) => ("rehearse", vec![("times", i64::from(times).into())]),
        Command::Fork(moment) => {
            let moment = match moment {
                ForkMoment::Before => "before",
                ForkMoment::AfterInOriginal => "after_in_parent",
                ForkMoment::AfterInCopy => "after_in_child",
            };
            ("fork", vec![("moment", moment.into())])
        }
        Command::PackagesLoaded => ("packages_loaded", vec![]),
        Command::PutFile { path, contents } => {
            ("put_file", vec![("path", path.into()), ("data", Value::Bytes(contents))])
        }
        Command::GetFile { path, max_value_bytes } => {
            ("get_file", vec![("path", path.into()), ("max_value", size(max_value_bytes))])
        }
        Command::ListFiles(path) => ("list_files", vec![("path", path.into())]),
        Command::DeleteFile(path) => ("delete_file", vec![("path", path.into())]),
        Command::Check { code } => ("check", vec![("code", code.into())]),
        Command::Complete(text) => ("complete", vec![("text", text.into())]),
        Command::Set(items) => ("set", vec![("items", dict(items))]),
        Command::Get { name, max_value_bytes } => {
            ("get", vec![("name", name.into()), ("max_value", size(max_value_bytes))])
        }
        Command::Variables => ("variables", vec![]),
        Command::Delete(name) => ("delete", vec![("name", name.into())]),
        Command::Define(functions) => ("define", definitions(functions)),
        Command::Run(run) => ("run", run_fields(run)),
    };
    let mut frame = vec![(Value::from("command"), Value::from(name))];
    frame.extend(fields.into_iter().map(|(name, value)| (name.into(), value)));
    let mut bytes = Vec::new();
    marshal::encode(&Value::Dict(frame), &mut bytes);
    bytes
}

/// Returns the fields that describe what a session begins with.
fn start_fields(
    env: Vec<(String, String)>,
    terminal: Option<Terminal>,
    has_packages: bool,
) -> Vec<(&'static str, Value)> {
    let env = env.into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut fields = vec![("env", dict(env)), ("packages", has_packages.into())];
    if let Some(terminal) = terminal {
        let size = [terminal.columns, terminal.rows].map(|count| i64::from(count).into());
        let streams = [terminal.stdout, terminal.stderr].map(Value::from);
        fields.push(("terminal", Value::List(streams.into_iter().chain(size).collect())));
    }
    fields
}

/// Returns the fields that describe functions to define.
fn definitions(functions: Definitions) -> Vec<(&'static str, Value)> {
    let Definitions { tools, submit, modules: defined } = functions;
    let tools = tools.iter().map(|spec| function(spec, &spec.name)).collect();
    let mut fields = vec![
        ("tools", Value::List(tools)),
        ("submit", Value::List(submit.iter().map(submission).collect())),
    ];
    if let Some(DefinedModules { helper, modules: defined }) = defined {
        fields.push(("helper", helper.into()));
        fields.push(("modules", Value::List(defined.into_iter().map(module).collect())));
    }
    fields
}

/// Returns the fields that describe a cell to the guest. Fields with their default are omitted.
fn run_fields(run: RunCommand) -> Vec<(&'static str, Value)> {
    let mut fields = vec![
        ("code", run.code.into()),
        ("name", run.name.into()),
        ("file", run.is_file.into()),
        ("role", role(run.role).into()),
        ("stdin", run.has_stdin.into()),
        ("argv", run.argv.into()),
        ("max_repr", i64::from(run.max_repr_chars).into()),
        ("max_value", size(run.max_value_bytes)),
    ];
    match run.program {
        Program::Code => {}
        Program::Module => fields.push(("program", "module".into())),
        Program::Application => fields.push(("program", "application".into())),
    }
    if run.may_return {
        fields.push(("return", true.into()));
    }
    if !run.inputs.is_empty() {
        fields.push(("inputs", dict(run.inputs)));
    }
    fields.extend(run.directory.map(|directory| ("directory", directory.into())));
    fields.extend(run.import_from.map(|directory| ("import_from", directory.into())));
    fields
}

/// Encodes the result of a tool call: `[True, value]` or `[False, class, message]`.
pub(crate) fn encode_answer(answer: Result<Value, ToolError>, max_value_bytes: u64) -> Vec<u8> {
    let refuse = |reason| ToolError::new("ValueError", format!("the host's result: {reason}"));
    let checked = answer.and_then(|value| match check_bounds(&value, max_value_bytes) {
        Ok(()) => Ok(value),
        Err(reason) => Err(refuse(reason)),
    });
    let answer = match checked {
        Ok(value) => vec![Value::Bool(true), value],
        Err(error) => vec![Value::Bool(false), error.type_name().into(), error.message().into()],
    };
    let mut bytes = Vec::new();
    marshal::encode(&Value::List(answer), &mut bytes);
    bytes
}

/// Decodes an answer that [`encode_answer`] made.
pub(crate) fn decode_answer(bytes: &[u8]) -> Result<Value, ToolError> {
    let unreadable = || ToolError::new("RuntimeError", "the host's answer cannot be read");
    let Value::List(parts) = marshal::decode(bytes).map_err(|_| unreadable())? else {
        return Err(unreadable());
    };
    let mut parts = parts.into_iter();
    match (parts.next(), parts.next(), parts.next()) {
        (Some(Value::Bool(true)), Some(value), None) => Ok(value),
        (Some(Value::Bool(false)), Some(Value::Str(name)), Some(Value::Str(message))) => {
            Err(ToolError::new(name, message))
        }
        _ => Err(unreadable()),
    }
}

/// Returns a tool of this name in the form that the guest's glue expects.
pub(crate) fn function(spec: &ToolSpec, name: &str) -> Value {
    Value::List(vec![
        name.into(),
        spec.docstring().into(),
        Value::List(spec.params.iter().map(Param::to_value).collect()),
        spec.returns.to_value(),
        (spec.style == Style::Async).into(),
    ])
}

/// Returns a function that submits in the form that the guest's glue expects.
fn submission((form, spec): &(u32, Arc<ToolSpec>)) -> Value {
    Value::List(vec![i64::from(*form).into(), function(spec, &spec.name)])
}

fn module(module: DefinedModule) -> Value {
    Value::List(vec![module.name.into(), module.guest_name.into(), module.doc.into()])
}

fn dict(items: Vec<(String, Value)>) -> Value {
    Value::Dict(items.into_iter().map(|(name, value)| (name.into(), value)).collect())
}

fn size(bytes: u64) -> Value {
    i64::try_from(bytes).unwrap_or(i64::MAX).into()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Cell => "cell",
        Role::Prompt => "prompt",
        Role::Program => "program",
    }
}

/// Returns the maximum size of a report, in bytes, for this maximum size of a value.
pub(crate) fn max_report_bytes(max_value_bytes: u64) -> u64 {
    max_value_bytes.saturating_add(OVERHEAD_BYTES)
}
