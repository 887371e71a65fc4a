//! Runs cells: what they write, display and raise goes to the front ends as it comes.

use std::collections::HashMap;
use std::fmt::Write as _;

use anyhow::Result;
use futures_util::FutureExt;
use isolet::{Cell, Display, Execution, Limits, Outcome, RunEvent, SessionState, Stream, Syntax};
use isolet::{ToolError, Value};
use isolet_service::core::in_options;
use isolet_support::inert::made_inert;
use isolet_support::json_text::count;
use isolet_support::mime_bundle::{CellError, Data, bundle, is_json};
use serde_json::{Map, Value as Json, json};

use super::asks::{Ask, AskKind};
use super::contents::{
    self, ClearOutput, DisplayContent, DisplayData, ErrorContent, Evaluated, ExecuteInput,
    ExecuteReply, ExecuteRequest, InputRequest,
};
use super::running::Running;
use super::text::Piece;
use super::{Arrival, Kernel, Sessions, error_content};
use crate::message::{Header, MessageKind, Request};

/// The most displays of a cell, and their bytes.
const MAX_DISPLAYS: u64 = 10_000;
const MAX_DISPLAY_BYTES: u64 = 64 << 20;
/// The most values in the JSON of a display that changes.
const JSON_VALUES: usize = 1_000_000;

/// The formats that front ends show without running code of the guest's, once they are inert.
/// Extensions of a front end may do anything with others.
const HARMLESS: [&str; 18] = [
    "application/geo+json",
    "application/json",
    "application/pdf",
    "application/vnd.dataresource+json",
    "application/vnd.isolet.chart.v1+json",
    "application/vnd.isolet.table.v1+json",
    "application/vnd.plotly.v1+json",
    "application/vnd.vegalite.v5+json",
    "application/vnd.vegalite.v6+json",
    "image/gif",
    "image/jpeg",
    "image/png",
    "image/svg+xml",
    "image/webp",
    "text/html",
    "text/latex",
    "text/markdown",
    "text/plain",
];

impl<S: Sessions> Kernel<S> {
    /// Runs a cell of a front end.
    pub(super) async fn execute(&mut self, request: &Request) -> Result<()> {
        let asked: ExecuteRequest = match super::contents(request) {
            Ok(asked) => asked,
            Err(error) => return self.end_execute(request, self.count, Err(error)).await,
        };
        let is_stored = asked.store_history && !asked.silent;
        let is_blank = asked.code.trim().is_empty();
        if is_stored && !is_blank {
            self.count += 1;
        }
        let number = self.count;
        if !asked.silent {
            let input = ExecuteInput { code: &asked.code, execution_count: number };
            self.out.publish(MessageKind::ExecuteInput, &request.header, &input).await?;
        }
        if is_blank {
            let expressions = self.evaluate(request, &asked).await?;
            return self.end_execute(request, number, Ok(expressions)).await;
        }
        let mut running = Running::new(request, self.options.max_output_bytes);
        running.allows_stdin = asked.allow_stdin;
        running.shows_value_of = (!asked.silent).then_some(number);
        let cell = Cell::new(&*asked.code).syntax(Syntax::Ipython);
        let cell = cell.name(format!("<cell {number}>")).chart_pictures();
        let ran = self.run_cell(cell, &mut running).await?;
        let mut value = None;
        let failure = match &ran {
            Err(error) => Some(error.clone()),
            Ok(execution) => {
                value = execution.repr().filter(|repr| *repr != "None").map(str::to_owned);
                self.show_value(execution, &mut running).await?;
                failure(execution)
            }
        };
        self.tell_what_is_missing(&ran, &running).await?;
        if is_stored {
            self.history.add(number, asked.code.clone(), value);
        }
        if self.ended.is_some() {
            return Ok(());
        }
        if !is_stored && self.session.is_some() {
            // Its place in the guest's history is nobody's.
            let _ = self.ask_guest::<()>(request, vec!["forget".into()]).await?;
        }
        if let Some(error) = failure {
            self.out.publish(MessageKind::Error, &request.header, &error).await?;
            if asked.stop_on_error {
                self.abort_waiting().await?;
            }
            self.settle(&running).await?;
            self.end_execute(request, number, Err(error)).await
        } else {
            let expressions = self.evaluate(request, &asked).await?;
            self.settle(&running).await?;
            self.end_execute(request, number, Ok(expressions)).await
        }
    }

    async fn end_execute(
        &mut self,
        request: &Request,
        number: u64,
        ended: Result<HashMap<String, Evaluated>, ErrorContent>,
    ) -> Result<()> {
        let reply = match ended {
            Ok(user_expressions) => {
                ExecuteReply::Ok { execution_count: number, user_expressions, payload: [] }
            }
            Err(error) => ExecuteReply::Error {
                execution_count: number,
                error,
                user_expressions: contents::Empty {},
                payload: [],
            },
        };
        self.out.reply(request, MessageKind::ExecuteReply, &reply).await
    }

    /// Returns the values of the expressions that came with a cell.
    async fn evaluate(
        &mut self,
        request: &Request,
        asked: &ExecuteRequest,
    ) -> Result<HashMap<String, Evaluated>> {
        if asked.user_expressions.is_empty() {
            return Ok(HashMap::new());
        }
        let expressions = Value::dict(asked.user_expressions.clone());
        let question = vec!["evaluate".into(), expressions];
        let values: Result<HashMap<String, Evaluated>, _> =
            self.ask_guest(request, question).await?;
        let mut running = Running::new(request, None);
        let mut harmless = |value| match value {
            Evaluated::Ok { data, metadata } => {
                Evaluated::Ok { data: self.shown(data_of(data), &mut running), metadata }
            }
            error @ Evaluated::Error(_) => error,
        };
        let values = values.unwrap_or_default().into_iter();
        Ok(values.map(|(name, value)| (name, harmless(value))).collect())
    }

    /// Takes out what a cell has changed.
    async fn settle(&mut self, running: &Running) -> Result<()> {
        let Some(guest) = &mut self.session else { return Ok(()) };
        if let Err(error) = self.sessions.settle(&mut guest.session).await {
            let said = in_options(&format!("isolet: {error:#}\n"));
            self.tell(&said, running).await?;
        }
        Ok(())
    }

    /// Runs code in the session, for a request. The outer error is that the transport has gone; the
    /// inner one, that there is no execution to speak of.
    pub(super) async fn run_cell(
        &mut self,
        cell: Cell,
        running: &mut Running,
    ) -> Result<Result<Execution, ErrorContent>> {
        if let Err(error) = self.open().await {
            let message = format!("no session can be started: {error:#}");
            return Ok(Err(error_content("RuntimeError", &message)));
        }
        let Some(mut guest) = self.session.take() else {
            return Ok(Err(error_content("RuntimeError", "there is no session")));
        };
        if let Err(error) = self.sessions.admit().await {
            self.session = Some(guest);
            return Ok(Err(error_content("RuntimeError", &format!("{error:#}"))));
        }
        let cell = running.begin(cell, guest.session.interrupt_handle());
        let mut run = guest.session.run_streaming(cell);
        loop {
            let due = running.text.due();
            let moment = async {
                match due {
                    Some(due) => tokio::time::sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                arrival = self.arrivals.recv() => match arrival {
                    Some(Arrival::Interrupt) => running.interrupt(),
                    Some(Arrival::Request(request)) => self.meanwhile(request, running).await?,
                    None => anyhow::bail!("the transport has ended"),
                },
                event = run.next() => match event {
                    Some(event) => self.tell_event(event, running).await?,
                    None => break,
                },
                Some(ask) = guest.asks.recv() => {
                    // What the guest wrote before it asked comes first.
                    while let Some(Some(event)) = run.next().now_or_never() {
                        self.tell_event(event, running).await?;
                    }
                    self.flush(running).await?;
                    self.carry_out(ask, running).await?;
                }
                () = moment => self.tell_piece(running.text.take_whole(), running).await?,
            }
            if self.ended.is_some() {
                // The session goes with its run.
                return Ok(Err(error_content("RuntimeError", "the kernel ends")));
            }
        }
        let ran = run.finish().await;
        self.sessions.ran(ran.as_ref().ok());
        self.flush(running).await?;
        let is_lost = guest.session.state() != SessionState::Ready;
        if is_lost {
            let note = "isolet: the session was lost with its variables; the next cell runs in a \
                        new one\n";
            self.tell(note, running).await?;
        } else {
            self.session = Some(guest);
        }
        Ok(ran.map_err(|error| error_content("RuntimeError", &error.to_string())))
    }

    async fn tell_event(&mut self, event: RunEvent, running: &mut Running) -> Result<()> {
        match event {
            RunEvent::Output(chunk) => {
                let piece = running.text.add(chunk.stream, &chunk.bytes);
                self.tell_piece(piece, running).await
            }
            RunEvent::Display(display) => {
                self.flush(running).await?;
                self.show(&display, running).await
            }
            _ => Ok(()),
        }
    }

    async fn flush(&mut self, running: &mut Running) -> Result<()> {
        let piece = running.text.take_all();
        self.tell_piece(piece, running).await
    }

    async fn tell_piece(&mut self, piece: Option<Piece>, running: &Running) -> Result<()> {
        let Some(Piece { stream, text }) = piece else { return Ok(()) };
        let name = if stream == Stream::Stderr { "stderr" } else { "stdout" };
        let content = contents::Stream { name, text: &text };
        self.out.publish(MessageKind::Stream, &running.parent, &content).await
    }

    /// Adds a line of the host to standard error.
    async fn tell(&mut self, line: &str, running: &Running) -> Result<()> {
        let content = contents::Stream { name: "stderr", text: line };
        self.out.publish(MessageKind::Stream, &running.parent, &content).await
    }

    async fn show(&mut self, display: &Display, running: &mut Running) -> Result<()> {
        let data = self.shown(bundle(display), running);
        if data.is_empty() {
            return Ok(());
        }
        let is_value = display.is_result() && running.shows_value_of.is_some();
        running.has_value |= display.is_result();
        let (kind, execution_count) = if is_value {
            (MessageKind::ExecuteResult, running.shows_value_of)
        } else {
            (MessageKind::DisplayData, None)
        };
        let content = DisplayData { data, metadata: Map::new(), execution_count };
        self.out.publish(kind, &running.parent, &content).await
    }

    /// Returns the formats in which front ends may show something.
    fn shown(&self, formats: Vec<(String, Data)>, running: &mut Running) -> Map<String, Json> {
        let formats = if self.options.trusts_output {
            formats
        } else {
            let before = formats.len();
            let is_harmless = |format: &str| HARMLESS.contains(&format);
            let formats = formats.into_iter().filter(|(format, _)| is_harmless(format));
            let formats: Vec<_> = formats.collect();
            running.left_out += u64::from(formats.is_empty() && before > 0);
            made_inert(formats)
        };
        let json = |(format, data)| match data {
            Data::Text(text) | Data::Bytes(text) => (format, Json::String(text)),
            Data::Json(json) => (format, json),
        };
        formats.into_iter().map(json).collect()
    }

    /// Shows the value of a cell's last line, unless it has shown itself.
    async fn show_value(&mut self, execution: &Execution, running: &mut Running) -> Result<()> {
        let (Some(number), Outcome::Completed(_), Some(repr)) =
            (running.shows_value_of, execution.outcome(), execution.repr())
        else {
            return Ok(());
        };
        if running.has_value || repr == "None" {
            return Ok(());
        }
        let data = Map::from_iter([("text/plain".to_owned(), Json::from(repr))]);
        let execution_count = Some(number);
        let content = DisplayData { data, metadata: Map::new(), execution_count };
        self.out.publish(MessageKind::ExecuteResult, &running.parent, &content).await
    }

    /// Says what of a cell's output front ends do not have.
    async fn tell_what_is_missing(
        &mut self,
        ran: &Result<Execution, ErrorContent>,
        running: &Running,
    ) -> Result<()> {
        let mut lines = String::new();
        for (name, dropped) in running.text.left_out() {
            let most = self.options.max_output_bytes.unwrap_or_default();
            let _ = writeln!(
                lines,
                "isolet: the last {dropped} bytes of standard {name} are left out, a cell may \
                 write {most} (`--max-output`)"
            );
        }
        if let Ok(execution) = ran
            && let dropped @ 1.. = execution.truncated().displays
        {
            let _ = writeln!(
                lines,
                "isolet: displays left out: {dropped}; a cell may have {MAX_DISPLAYS} of together \
                 {MAX_DISPLAY_BYTES} bytes"
            );
        }
        if running.left_out > 0 {
            let _ = writeln!(
                lines,
                "isolet: widgets and scripts left out: {}; they would run in this page with your \
                 rights, which `isolet jupyter install -- --trust-output` allows",
                running.left_out
            );
        }
        if lines.is_empty() { Ok(()) } else { self.tell(&lines, running).await }
    }

    /// Does what the guest's half asks for.
    async fn carry_out(&mut self, ask: Ask, running: &mut Running) -> Result<()> {
        let wrong = |reason: String| Err(ToolError::new("ValueError", reason));
        if ask.kind == AskKind::Input {
            return self.ask_user(ask, running).await;
        }
        let (done, answer) = match ask.kind {
            AskKind::Display | AskKind::UpdateDisplay => {
                let done = if count(ask.content.as_bytes()) > JSON_VALUES {
                    wrong(format!("a display has more than {JSON_VALUES} values"))
                } else {
                    match serde_json::from_str::<DisplayContent>(&ask.content) {
                        Err(error) => wrong(error.to_string()),
                        Ok(content) => {
                            self.show_again(ask.kind, content, running).await?;
                            Ok(Value::None)
                        }
                    }
                };
                (done, ask.answer)
            }
            AskKind::ClearOutput => {
                let done = match serde_json::from_str::<ClearOutput>(&ask.content) {
                    Err(error) => wrong(error.to_string()),
                    Ok(content) => {
                        let kind = MessageKind::ClearOutput;
                        self.out.publish(kind, &running.parent, &content).await?;
                        Ok(Value::None)
                    }
                };
                (done, ask.answer)
            }
            AskKind::Parent => {
                let Header { id, kind, .. } = &*running.parent;
                // Not the whole header, which names the user.
                let parent = json!({ "header": { "msg_id": id, "msg_type": kind } });
                (Ok(parent.to_string().into()), ask.answer)
            }
            _ => {
                let (sender, _) = tokio::sync::oneshot::channel();
                let Ask { kind, content, metadata, buffers, answer } = ask;
                let ask = Ask { kind, content, metadata, buffers, answer: sender };
                let done = self.publish_of_comm(ask, running).await?;
                (done.map(|()| Value::None), answer)
            }
        };
        // If nobody waits any longer, the run was interrupted.
        let _ = answer.send(done);
        Ok(())
    }

    /// Shows what has an id, or what takes its place.
    async fn show_again(
        &mut self,
        kind: AskKind,
        content: DisplayContent,
        running: &mut Running,
    ) -> Result<()> {
        let data = self.shown(data_of(content.data), running);
        if data.is_empty() {
            return Ok(());
        }
        let kind = match kind {
            AskKind::UpdateDisplay => MessageKind::UpdateDisplayData,
            _ => MessageKind::DisplayData,
        };
        let content = DisplayContent { data, ..content };
        self.out.publish(kind, &running.parent, &content).await
    }

    /// Asks the user of the front end for a line.
    async fn ask_user(&mut self, ask: Ask, running: &mut Running) -> Result<()> {
        let content = match serde_json::from_str::<InputRequest>(&ask.content) {
            Ok(content) if running.allows_stdin => content,
            Ok(_) => {
                let reason = "input() was called, but this front end does not support it: its \
                              request has `allow_stdin` false";
                let error = ToolError::new("StdinNotImplementedError", reason);
                let _ = ask.answer.send(Err(error.based_on("NotImplementedError")));
                return Ok(());
            }
            Err(error) => {
                let _ = ask.answer.send(Err(ToolError::new("ValueError", error.to_string())));
                return Ok(());
            }
        };
        let id = self.out.ask(&running.peer, &running.parent, &content).await?;
        running.await_input(id, ask.answer);
        Ok(())
    }
}

/// Returns the formats of a display that came in JSON.
fn data_of(data: Map<String, Json>) -> Vec<(String, Data)> {
    let data = data.into_iter().map(|(format, data)| {
        let data = match data {
            Json::String(text) if !is_json(&format) => Data::Text(text),
            json => Data::Json(json),
        };
        (format, data)
    });
    data.collect()
}

/// Returns how a cell ended, unless it completed.
pub(super) fn failure(execution: &Execution) -> Option<ErrorContent> {
    CellError::of(execution, in_options).map(ErrorContent::from)
}

/// Returns the limits of a kernel's session: cells of notebooks display much, and widgets and
/// progress bars make calls of the kernel's tool.
pub fn limits(limits: Limits) -> Limits {
    limits.max_displays(MAX_DISPLAYS).max_display_bytes(MAX_DISPLAY_BYTES).max_tool_calls(u64::MAX)
}
