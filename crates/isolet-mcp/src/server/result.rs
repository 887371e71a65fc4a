//! The results of runs: text and structured content that say the same, each by itself.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::{Execution, MimeData, Outcome, PyException, Termination, Value};
use rmcp::model::{CallToolResult, ContentBlock, Resource};
use serde_json::{Value as Json, json};

use super::approvals::{Call, Calls};
use super::apps::Shown;
use super::arguments;
use super::outputs::{Data, Output};
use super::python::PythonSession;
use super::running::Ran;
use super::tools::Runner;
use isolet_service::core::{hint_for_models, in_parameters};

/// The most images in a result. Further ones are resources.
const MAX_IMAGES: usize = 8;

/// The longest image in a result, in bytes. A longer one is a resource.
const MAX_IMAGE_BYTES: usize = 1 << 20;

/// The formats that clients show as images.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/webp", "image/gif"];

/// The most files that a result names.
const MAX_FILES: usize = 50;

/// Returns the result of a call that has no run, such as one of an unknown session.
pub(super) fn refusal(reason: &str) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(reason)])
}

/// Returns the result of a run, whose parts have at most `max_chars` characters each. `ignored`
/// are the arguments that the tool does not have, and `shown` is for a client that shows displays.
pub(super) fn of_run(
    ran: &Ran,
    ignored: &[String],
    runner: Runner,
    max_chars: usize,
    mut shown: Option<Shown>,
) -> CallToolResult {
    let handle = ran.execution.session_alive().then(|| ran.in_use.handle());
    let mut parts = Parts::new(ran.in_use.session(), handle, max_chars);
    let execution = &ran.execution;
    let ending = Ending::of(execution, runner);
    let stdout = parts.text("stdout", execution.stdout());
    let stderr = parts.text("stderr", execution.stderr());
    let repr = execution.repr().filter(|repr| *repr != "None");
    let repr = repr.map(|repr| parts.text("value", repr));
    let mut error = ending.error;
    if let Some(exception) = &mut error {
        exception.traceback = parts.text("traceback", &exception.traceback);
        exception.message = parts.text("message", &exception.message);
    }
    let (displayed, images) = parts.displays(execution, shown.as_mut());
    let files = execution.files().iter().map(|file| file.path.clone());
    let files: Vec<String> = files.take(MAX_FILES).collect();
    let value = execution.value().map(to_json).filter(|value| length(value) <= max_chars);

    let mut text = String::new();
    add(&mut text, "", &stdout);
    add(&mut text, "", &displayed);
    add(&mut text, "", repr.as_deref().unwrap_or_default());
    add(&mut text, "stderr:\n", &stderr);
    let traceback = error.as_ref().map_or("", |error| error.traceback.as_str());
    add(&mut text, "", traceback);
    add(&mut text, "", &ending.remark);
    add(&mut text, "", ran.unwritten.as_deref().unwrap_or_default());
    if !files.is_empty() {
        add(&mut text, "files: ", &files.join(", "));
    }
    if ending.status != "ok" && !ran.calls.made.is_empty() {
        // So that the model does not repeat them.
        add(&mut text, "calls already made: ", &calls_in_words(&ran.calls));
    }
    if text.is_empty() && images.is_empty() {
        text.push_str(match runner {
            Runner::Python => "The code ran and has no output.",
            Runner::Shell => "The command ran and has no output.",
            Runner::Skill => "The script ran and has no output.",
        });
    }
    let remark = arguments::remark(runner.name(), ignored, runner.params());
    add(&mut text, "", remark.as_deref().unwrap_or_default());
    match handle {
        Some(handle) => {
            if let Some(restored) = execution.restored() {
                add(&mut text, "", &restored.to_string());
            }
            add(&mut text, "session: ", handle);
        }
        None => add(&mut text, "", "The session has ended; its variables are gone."),
    }

    let truncated = parts
        .cut
        .iter()
        .map(|output| (output.name.clone(), output.address(ran.in_use.handle()).into()));
    let truncated: serde_json::Map<String, Json> = truncated.collect();
    let mut structured = json!({
        "status": ending.status,
        "session": handle,
        "value": value,
        "repr": repr,
        "stdout": stdout,
        "stderr": stderr,
        "error": error.map(|error| json!({
            "type": error.type_name,
            "message": error.message,
            "traceback": error.traceback,
        })),
        "truncated": truncated,
        "calls": ran.calls.made.iter().map(call).collect::<Vec<_>>(),
        "images": images.len(),
        "files": files,
        "ms": u64::try_from(execution.usage().wall_time.as_millis()).unwrap_or(u64::MAX),
    });
    if let Some(restored) = execution.restored() {
        structured["lost_runs"] = restored.lost_runs.into();
    }
    if !ignored.is_empty() {
        structured["ignored"] = ignored.into();
    }
    let mut content = vec![ContentBlock::text(text)];
    content.extend(images);
    content.extend(parts.links(ran.in_use.handle()));
    let mut result = if ending.status == "ok" {
        CallToolResult::success(content)
    } else {
        CallToolResult::error(content)
    };
    result.structured_content = Some(structured);
    result.meta = shown.map(Shown::meta);
    result
}

/// Returns the structured content of a text that no code has made.
pub(super) fn of_text(text: &str) -> Json {
    json!({
        "status": "ok",
        "session": null,
        "value": null,
        "repr": null,
        "stdout": text,
        "stderr": "",
        "error": null,
        "truncated": {},
        "calls": [],
        "images": 0,
        "files": [],
        "ms": 0,
    })
}

fn call(call: &Call) -> Json {
    let Call { tool, status, count, milliseconds } = call;
    json!({"tool": tool, "status": status, "count": count, "ms": milliseconds})
}

/// Returns the calls that were made, with how often each ended how.
fn calls_in_words(calls: &Calls) -> String {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for call in &calls.made {
        let words = format!("{} ({})", call.tool, call.status);
        match counts.iter_mut().find(|(other, _)| *other == words) {
            Some((_, count)) => *count += call.count,
            None => counts.push((words, call.count)),
        }
    }
    let mut words: Vec<String> = counts
        .into_iter()
        .map(|(words, count)| if count == 1 { words } else { format!("{count} x {words}") })
        .collect();
    if calls.more > 0 {
        words.push(format!("and {} more", calls.more));
    }
    words.join(", ")
}

/// The end of a run.
struct Ending {
    status: &'static str,
    error: Option<PyException>,
    /// A note besides the traceback.
    remark: String,
}

impl Ending {
    fn of(execution: &Execution, runner: Runner) -> Self {
        let ok = |remark| Self { status: "ok", error: None, remark };
        match execution.outcome() {
            Outcome::Completed(_) | Outcome::Submitted(_) => {
                let unknown = execution.value_error().filter(|_| execution.repr().is_none());
                ok(unknown.unwrap_or_default().to_owned())
            }
            Outcome::Raised(exception) => {
                let remark = hint_for_models(execution).unwrap_or_default();
                Self { status: "error", error: Some(exception.clone()), remark }
            }
            Outcome::Exited(0) if runner != Runner::Python => ok(String::new()),
            Outcome::Exited(code) if runner != Runner::Python => {
                Self { status: "error", error: None, remark: format!("exit status: {code}") }
            }
            Outcome::Exited(0) => ok("The code called sys.exit().".to_owned()),
            Outcome::Exited(code) => Self {
                status: "error",
                error: execution.system_exit().cloned(),
                remark: format!("The code exited with status {code}."),
            },
            Outcome::Terminated(termination) => {
                let status = match termination {
                    Termination::Deadline { .. } | Termination::HostTime { .. } => "timeout",
                    Termination::Interrupted => "interrupted",
                    Termination::Died { .. } => "died",
                    _ => "limit",
                };
                let remark = in_parameters(&termination.to_string());
                Self { status, error: None, remark }
            }
            _ => ok(String::new()),
        }
    }
}

/// The parts of a result, and those that did not fit.
struct Parts<'a> {
    session: &'a PythonSession,
    handle: Option<&'a str>,
    max_chars: usize,
    /// The parts that were cut, whole.
    cut: Vec<Output>,
    /// Pictures that did not fit.
    left_out: Vec<Output>,
}

impl<'a> Parts<'a> {
    fn new(session: &'a PythonSession, handle: Option<&'a str>, max_chars: usize) -> Self {
        Self { session, handle, max_chars, cut: Vec::new(), left_out: Vec::new() }
    }

    /// Returns a text, cut if it is too long.
    fn text(&mut self, name: &str, text: &str) -> String {
        let Some((head, left_out, tail)) = cut(text, self.max_chars) else {
            return text.to_owned();
        };
        let mut whole = String::new();
        // The session keeps the whole text, which is removed with it.
        if let Some(handle) = self.handle {
            let data = Data::Text(text.to_owned());
            let output = self.session.outputs.keep(name, "text/plain", data);
            let _ = write!(whole, "; {} has all of it", output.address(handle));
            self.cut.push(output);
        }
        format!("{head}\n[... {left_out} characters left out{whole} ...]\n{tail}")
    }

    /// Returns the text of the displays, and the pictures.
    fn displays(
        &mut self,
        execution: &Execution,
        mut for_page: Option<&mut Shown>,
    ) -> (String, Vec<ContentBlock>) {
        let (mut text, mut images) = (String::new(), Vec::new());
        for display in execution.displays() {
            let before = images.len();
            let image = IMAGES.iter().find_map(|format| Some((*format, display.get(format)?)));
            if let Some((format, data)) = image {
                let data = bytes(data);
                if images.len() < MAX_IMAGES && data.len() <= MAX_IMAGE_BYTES {
                    images.push(ContentBlock::image(STANDARD.encode(data), format));
                } else {
                    self.leave_out("image", format, Data::Bytes(data));
                }
            } else if let Some(data) = display.get("image/svg+xml").and_then(MimeData::as_str) {
                self.leave_out("image", "image/svg+xml", Data::Text(data.to_owned()));
            } else if !display.is_result() {
                let formats = ["text/markdown", "text/plain", "text/latex"];
                let shown = formats.iter().find_map(|format| display.get(format)?.as_str());
                let shown = self.text("display", shown.unwrap_or_default());
                add(&mut text, "", &shown);
            }
            if let Some(for_page) = for_page.as_mut() {
                for_page.add(display, (images.len() > before).then_some(before));
            }
        }
        (text, images)
    }

    fn leave_out(&mut self, name: &str, format: &str, data: Data) {
        if self.handle.is_some() {
            self.left_out.push(self.session.outputs.keep(name, format, data));
        }
    }

    /// Returns where everything is that is not in the result.
    fn links(&self, handle: &str) -> impl Iterator<Item = ContentBlock> {
        let outputs = self.cut.iter().chain(&self.left_out);
        outputs.map(move |output| ContentBlock::resource_link(resource(output, handle)))
    }
}

/// Returns a kept output as a resource that can be read.
pub(super) fn resource(output: &Output, handle: &str) -> Resource {
    Resource::new(output.address(handle), output.name.clone())
        .with_mime_type(output.format.clone())
        .with_size(output.data.len() as u64)
}

fn bytes(data: &MimeData) -> Vec<u8> {
    match data {
        // Some libraries give pictures as base64, as notebooks store them.
        MimeData::Text(text) => STANDARD.decode(text.trim()).unwrap_or_default(),
        data => data.as_bytes().to_vec(),
    }
}

/// Adds a paragraph.
fn add(to: &mut String, label: &str, text: &str) {
    let text = text.trim_end_matches('\n');
    if text.is_empty() {
        return;
    }
    if !to.is_empty() {
        to.push('\n');
    }
    to.push_str(label);
    to.push_str(text);
}

/// Cuts a text that has more characters than `max`. Returns its head, how many characters are left
/// out, and its tail.
fn cut(text: &str, max: usize) -> Option<(&str, usize, &str)> {
    if text.len() <= max {
        return None;
    }
    let count = text.chars().count();
    if count <= max {
        return None;
    }
    let tail = max / 3;
    let head = max - tail;
    let at = |characters: usize| {
        text.char_indices().nth(characters).map_or(text.len(), |(index, _)| index)
    };
    Some((&text[..at(head)], count - max, &text[at(count - tail)..]))
}

/// Returns a value as JSON; bytes as an object with base64.
fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Int(number) => (*number).into(),
        // JSON has no limit, its readers have.
        Value::BigInt(number) => number.to_string().into(),
        Value::Float(number) => {
            serde_json::Number::from_f64(*number).map_or(Json::Null, Json::from)
        }
        Value::Str(text) => text.as_str().into(),
        Value::Bytes(bytes) => json!({"$bytes": STANDARD.encode(bytes)}),
        Value::List(items) => items.iter().map(to_json).collect(),
        Value::Dict(items) => {
            let items = items.iter().map(|(key, item)| {
                let key = key.as_str().map_or_else(|| key.to_string(), str::to_owned);
                (key, to_json(item))
            });
            Json::Object(items.collect())
        }
        _ => Json::Null,
    }
}

/// Returns how many characters a value has as JSON.
fn length(value: &Json) -> usize {
    value.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_keeps_its_head_and_its_tail() {
        assert_eq!(cut("abc", 3), None);
        assert_eq!(cut("äöü", 3), None);
        assert_eq!(cut("abcdefghij", 6), Some(("abcd", 4, "ij")));
        assert_eq!(cut("äöüäöüäöüä", 6), Some(("äöüä", 4, "üä")));
    }

    #[test]
    fn every_value_has_a_form_in_json() {
        let value = Value::List(vec![
            Value::Float(f64::NAN),
            (1i128 << 100).into(),
            Value::bytes(b"\0".to_vec()),
            Value::Dict(vec![(1.into(), Value::None)]),
        ]);
        let json = to_json(&value).to_string();
        assert_eq!(
            json,
            r#"[null,"1267650600228229401496703205376",{"$bytes":"AA=="},{"1":null}]"#
        );
    }
}
