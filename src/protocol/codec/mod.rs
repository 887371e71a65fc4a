//! Encodes commands for the guest's Python glue and decodes its replies. Replies are hostile.

mod json_array;
pub(crate) mod report;

use std::ops::Range;
use std::sync::Arc;

use crate::data::cell::{Program, Role, Syntax};
use crate::data::determinism::Determinism;
use crate::data::terminal::Terminal;
use crate::data::tool::spec::Style;
use crate::data::tool::{Param, ToolError, ToolSpec};
use crate::data::value::{Value, check_bounds, marshal};
use crate::protocol::{
    Command, DefinedModule, DefinedModules, Definitions, ForkMoment, RunCommand, StartCommand,
};
use crate::support::clock;
pub(crate) use report::{decode, tail};

/// Space for everything in a report except the value: traceback, reprs, names.
const OVERHEAD_BYTES: u64 = 16 << 20;

/// How long a text is, at least, that the guest takes by itself, in bytes.
const LONG_TEXT_BYTES: usize = 16 << 10;

/// A command for the guest, encoded: its long texts, the rest in marshal's format, and the length
/// of that. So the first text need not be copied to become one.
#[derive(Debug, Default)]
pub(crate) struct CommandFrame {
    bytes: Vec<u8>,
    /// What is left to take: first the command, then the texts.
    command: Range<usize>,
    texts: Range<usize>,
}

impl CommandFrame {
    /// Reads the frame that [`encode`] has made.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        let Some((before, length)) = bytes.split_last_chunk() else { return Self::default() };
        let end = before.len();
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let start = end.saturating_sub(length);
        Self { bytes, command: start..end, texts: 0..start }
    }

    /// Returns the length of the command without its long texts.
    pub(crate) fn length(&self) -> u32 {
        u32::try_from(self.command.len()).unwrap_or(u32::MAX)
    }

    /// Takes the next bytes, of the command or of a text; `None` if there are not as many.
    pub(crate) fn take(&mut self, count: usize) -> Option<&[u8]> {
        let left = if self.command.is_empty() { &mut self.texts } else { &mut self.command };
        let taken = self.bytes.get(left.clone())?.get(..count)?;
        left.start += count;
        Some(taken)
    }

    /// Returns how many bytes were not taken.
    pub(crate) fn left(&self) -> usize {
        self.command.len() + self.texts.len()
    }
}

/// Encodes a command for the guest, as a [`CommandFrame`].
pub(crate) fn encode(command: Command) -> Vec<u8> {
    let mut texts = Vec::new();
    let (name, mut fields) = match command {
        Command::Start(start) => {
            let StartCommand { env, terminal, has_packages, mounts, functions, determinism } =
                start;
            let mut fields = start_fields(env, terminal, has_packages, determinism);
            let mounts =
                mounts.into_iter().flat_map(|path| path.into_bytes().into_iter().chain([0]));
            fields.push(("mounts", Value::Bytes(mounts.collect())));
            fields.extend(definitions(functions));
            ("start", fields)
        }
        Command::Resume { env, terminal, has_packages, determinism } => {
            ("resume", start_fields(env, terminal, has_packages, determinism))
        }
        Command::End => ("end", vec![]),
        Command::Save { flushes_files: false } => ("save", vec![]),
        Command::Save { flushes_files: true } => ("save", vec![("flush", true.into())]),
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
        Command::GetFile { path, max_bytes } => {
            ("get_file", vec![("path", path.into()), ("max_bytes", size(max_bytes))])
        }
        Command::ListFiles(path) => ("list_files", vec![("path", path.into())]),
        Command::DeleteFile(path) => ("delete_file", vec![("path", path.into())]),
        Command::Check { code, syntax } => {
            let is_shell = syntax == Syntax::Shell;
            ("check", vec![("code", code.into()), ("shell", is_shell.into())])
        }
        Command::Complete(text) => ("complete", vec![("text", text.into())]),
        Command::Set(items) => ("set", vec![("inputs", inputs(items, &mut texts))]),
        Command::Get { name, max_value_bytes } => {
            ("get", vec![("name", name.into()), ("max_value", size(max_value_bytes))])
        }
        Command::Variables => ("variables", vec![]),
        Command::BindLocals => ("bind_locals", vec![]),
        Command::Delete(name) => ("delete", vec![("name", name.into())]),
        Command::Define(functions) => ("define", definitions(functions)),
        Command::Run(run) => ("run", run_fields(run, &mut texts)),
    };
    if !texts.is_empty() {
        let lengths = texts.iter().map(|(name, text)| (name.as_str(), size(text.len() as u64)));
        fields.push(("texts", Value::dict(lengths)));
    }
    let mut frame = vec![(Value::from("command"), Value::from(name))];
    frame.extend(fields.into_iter().map(|(name, value)| (name.into(), value)));
    let mut texts = texts.into_iter().map(|(_, text)| text.into_bytes());
    let mut bytes = texts.next().unwrap_or_default();
    texts.for_each(|text| bytes.extend_from_slice(&text));
    let start = bytes.len();
    marshal::encode(&Value::Dict(frame), &mut bytes);
    // A guest has no memory for a longer one, and says so.
    let length = u32::try_from(bytes.len() - start).unwrap_or(u32::MAX);
    bytes.extend_from_slice(&length.to_le_bytes());
    bytes
}

/// Returns variables to bind. Their long texts go to `texts`, without the work of marshal's format,
/// if they are ASCII: Python keeps these as their bytes.
fn inputs(mut variables: Vec<(String, Value)>, texts: &mut Vec<(String, String)>) -> Value {
    for at in 0..variables.len() {
        let (before, after) = variables.split_at_mut(at + 1);
        let [.., (name, value)] = before else { continue };
        let Value::Str(text) = value else { continue };
        // Of two with one name, the last one counts.
        let is_last = || after.iter().all(|(other, _)| other != name);
        if text.len() >= LONG_TEXT_BYTES && text.is_ascii() && is_last() {
            texts.push((name.clone(), std::mem::take(text)));
            // The place among the others.
            *value = Value::None;
        }
    }
    dict(variables)
}

/// Returns the fields that describe what a session begins with.
fn start_fields(
    env: Vec<(String, String)>,
    terminal: Option<Terminal>,
    has_packages: bool,
    determinism: Option<Determinism>,
) -> Vec<(&'static str, Value)> {
    let env = env.into_iter().map(|(name, value)| (name, value.into())).collect();
    let mut fields = vec![("env", dict(env)), ("packages", has_packages.into())];
    if let Some(terminal) = terminal {
        let size = [terminal.columns, terminal.rows].map(|count| i64::from(count).into());
        let streams = [terminal.stdout, terminal.stderr].map(Value::from);
        fields.push(("terminal", Value::List(streams.into_iter().chain(size).collect())));
    }
    if let Some(Determinism { seed, start_time, clocks }) = determinism {
        let halves = [seed >> 32, seed & 0xffff_ffff].map(size);
        let started = Value::from(clock::milliseconds(start_time));
        let clocks = Value::from(i64::from(clocks.number()));
        fields.push(("order", Value::List(halves.into_iter().chain([started, clocks]).collect())));
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
fn run_fields(run: RunCommand, texts: &mut Vec<(String, String)>) -> Vec<(&'static str, Value)> {
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
    if matches!(run.role, Role::KeptProgram) {
        fields.push(("keep", true.into()));
    }
    match run.syntax {
        Syntax::Python | Syntax::Command => {}
        Syntax::Ipython => fields.push(("ipython", true.into())),
        Syntax::Shell => fields.push(("shell", true.into())),
    }
    if run.may_return {
        fields.push(("return", true.into()));
    }
    if run.has_table_data {
        fields.push(("tables", true.into()));
    }
    if run.has_chart_pictures {
        fields.push(("pictures", true.into()));
    }
    if !run.inputs.is_empty() {
        fields.push(("inputs", inputs(run.inputs, texts)));
    }
    fields.extend(run.directory.map(|directory| ("directory", directory.into())));
    fields.extend(run.import_from.map(|directory| ("import_from", directory.into())));
    fields
}

/// Encodes the result of a tool call: `[True, value]` or `[False, class, message, bases,
/// exceptions]`, the latter as lists without `False`.
pub(crate) fn encode_answer(answer: Result<Value, ToolError>, max_value_bytes: u64) -> Vec<u8> {
    let refuse = |reason| ToolError::new("ValueError", format!("the host's result: {reason}"));
    let checked = answer.and_then(|value| match check_bounds(&value, max_value_bytes) {
        Ok(()) => Ok(value),
        Err(reason) => Err(refuse(reason)),
    });
    let answer = match checked {
        Ok(value) => vec![Value::Bool(true), value],
        Err(error) => {
            let mut answer = tool_error(&error);
            answer.insert(0, Value::Bool(false));
            answer
        }
    };
    let mut bytes = Vec::new();
    marshal::encode(&Value::List(answer), &mut bytes);
    bytes
}

fn tool_error(error: &ToolError) -> Vec<Value> {
    let exceptions = error.exceptions().iter().map(|error| Value::List(tool_error(error)));
    vec![
        error.type_name().into(),
        error.message().into(),
        Value::List(error.bases().iter().map(|base| (**base).into()).collect()),
        Value::List(exceptions.collect()),
    ]
}

fn read_tool_error(parts: impl IntoIterator<Item = Value>) -> Option<ToolError> {
    let mut parts = parts.into_iter();
    let (
        Some(Value::Str(name)),
        Some(Value::Str(message)),
        Some(Value::List(bases)),
        Some(Value::List(exceptions)),
        None,
    ) = (parts.next(), parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    let mut error = ToolError::new(name, message);
    for base in bases {
        let Value::Str(base) = base else { return None };
        error = error.based_on(base);
    }
    for exception in exceptions {
        let Value::List(parts) = exception else { return None };
        error = error.with_exception(read_tool_error(parts)?);
    }
    Some(error)
}

/// Decodes an answer that [`encode_answer`] made.
pub(crate) fn decode_answer(bytes: &[u8]) -> Result<Value, ToolError> {
    let unreadable = || ToolError::new("RuntimeError", "the host's answer cannot be read");
    let Value::List(parts) = marshal::decode(bytes).map_err(|_| unreadable())? else {
        return Err(unreadable());
    };
    let mut parts = parts.into_iter();
    match parts.next() {
        Some(Value::Bool(true)) => match (parts.next(), parts.next()) {
            (Some(value), None) => Ok(value),
            _ => Err(unreadable()),
        },
        Some(Value::Bool(false)) => Err(read_tool_error(parts).unwrap_or_else(unreadable)),
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
        Role::Program | Role::KeptProgram => "program",
    }
}

/// Returns the maximum size of a report, in bytes, for this maximum size of a value.
pub(crate) fn max_report_bytes(max_value_bytes: u64) -> u64 {
    max_value_bytes.saturating_add(OVERHEAD_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the command, and its long texts.
    fn parts(command: Command) -> (Value, Vec<u8>) {
        let mut frame = CommandFrame::new(encode(command));
        let length = frame.length().try_into().unwrap();
        let command = marshal::decode(frame.take(length).unwrap()).unwrap();
        let texts = frame.take(frame.left()).unwrap().to_vec();
        assert_eq!((frame.left(), frame.take(1)), (0, None));
        (command, texts)
    }

    #[test]
    fn long_ascii_texts_follow_the_command_and_others_are_in_it() {
        let long = "x".repeat(LONG_TEXT_BYTES);
        let (short, other) = (long[1..].to_owned(), long.replacen('x', "\u{e9}", 1));
        let texts = [("a", &long), ("b", &short), ("c", &other), ("a", &short), ("d", &long)];
        let items = texts.map(|(name, text)| (name.to_owned(), text.as_str().into()));
        let (command, texts) = parts(Command::Set(items.into()));
        assert_eq!(texts, long.as_bytes());
        let inputs = Value::Dict(vec![
            ("a".into(), long.into()),
            ("b".into(), short.as_str().into()),
            ("c".into(), other.into()),
            ("a".into(), short.into()),
            ("d".into(), Value::None),
        ]);
        let expected = Value::dict([
            ("command", "set".into()),
            ("inputs", inputs),
            ("texts", Value::dict([("d", size(LONG_TEXT_BYTES as u64))])),
        ]);
        assert_eq!(command, expected);
    }

    #[test]
    fn several_long_texts_follow_in_their_order() {
        let long = ["a", "b"].map(|text| text.repeat(LONG_TEXT_BYTES));
        let items = long.iter().map(|text| (text[..1].to_owned(), text.as_str().into()));
        let (_, texts) = parts(Command::Set(items.collect()));
        assert_eq!(texts, long.concat().as_bytes());
    }

    #[test]
    fn a_frame_gives_no_more_than_it_has() {
        let mut frame = CommandFrame::new(encode(Command::Save { flushes_files: true }));
        let left = frame.left();
        assert_eq!(u32::try_from(left), Ok(frame.length()));
        assert_eq!(frame.take(left + 1), None);
        assert_eq!(frame.take(usize::MAX), None);
        assert_eq!(frame.take(left).map(<[u8]>::len), Some(left));
        for empty in [vec![], vec![1], vec![0; 4]].map(CommandFrame::new) {
            assert_eq!((empty.length(), empty.left()), (0, 0));
        }
        let mut wrong = CommandFrame::new([b"text".as_slice(), &[255; 4]].concat());
        assert_eq!((wrong.length(), wrong.take(4)), (4, Some(b"text".as_slice())));
    }
}
