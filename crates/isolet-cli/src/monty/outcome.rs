//! Turns the outcome of a feed into the event for the client.

use isolet::{Error, Execution, Outcome, PyException, Termination, Value};

use super::feed::Stop;
use super::fields::Fields;
use super::messages::events::{CodeLoc, Complete, Event, RaisedException, StackFrame};
use super::{exceptions, nodes, report};

/// Returns the event that ends a feed. Notes in `ended` if the session has ended with it.
pub(super) fn event(
    result: Result<Execution, Error>,
    stop: Option<Stop>,
    ended: &mut Option<String>,
) -> Event {
    let execution = match result {
        Ok(execution) => execution,
        Err(error) => {
            let event = failure(&error, ended);
            return stop.map_or(event, stopped);
        }
    };
    let is_alive = execution.session_alive();
    let event = match (execution.outcome(), stop) {
        (_, Some(stop @ Stop::Abort(_))) => stopped(stop),
        // The guest may be through before it notices that it is to end.
        (Outcome::Completed(Some(_)), _) => match execution.into_result() {
            Ok(Value::List(told)) => told_event(told).unwrap_or_else(|reason| malformed(&reason)),
            _ => malformed("it is no list"),
        },
        (_, Some(stop)) => stopped(stop),
        (Outcome::Raised(exception), None) => raised(exception),
        (Outcome::Exited(status), None) => report::error("SystemExit", status.to_string()),
        (Outcome::Terminated(Termination::Deadline { limit, observed }), None) => {
            timed_out("feed", *observed, *limit)
        }
        (Outcome::Completed(None), None) => {
            malformed(execution.value_error().unwrap_or("there is none"))
        }
        (_, None) => match execution.into_result() {
            Err(error) => report::error("RuntimeError", error.to_string()),
            Ok(_) => malformed("it is no list"),
        },
    };
    if !is_alive {
        let reason = match &event {
            Event::Error(error) => error.exception.as_ref().and_then(|one| one.message.clone()),
            _ => None,
        };
        *ended = Some(reason.unwrap_or_else(|| "its interpreter is gone".to_owned()));
    }
    event
}

/// Returns the event of a feed that could not run.
fn failure(error: &Error, ended: &mut Option<String>) -> Event {
    let text = error.to_string();
    if !error.session_survives() {
        *ended = Some(text.clone());
    }
    report::error("RuntimeError", text)
}

fn stopped(stop: Stop) -> Event {
    match stop {
        Stop::Abort(exception) => report::raised(exception),
        Stop::Turn(limit) => timed_out("turn", limit, limit),
    }
}

/// The words by which clients know that a time is over.
fn timed_out(what: &str, observed: std::time::Duration, limit: std::time::Duration) -> Event {
    report::error("TimeoutError", format!("{what} time limit exceeded: {observed:?} > {limit:?}"))
}

/// An exception that left the guest's half itself.
fn raised(exception: &PyException) -> Event {
    match exception.type_name.as_str() {
        // The words by which clients know it.
        "MemoryError" => report::error("MemoryError", "memory limit exceeded"),
        "KeyboardInterrupt" => report::error("KeyboardInterrupt", exception.message.clone()),
        name => report::error("RuntimeError", format!("{name}: {}", exception.message)),
    }
}

fn malformed(reason: &str) -> Event {
    report::error("RuntimeError", format!("the guest's report of the feed is malformed: {reason}"))
}

/// Reads the report of the guest's half. Guest code may have changed it.
fn told_event(told: Vec<Value>) -> Result<Event, String> {
    let mut fields = Fields::new(told);
    let kind = fields.text()?;
    let event = match kind.as_str() {
        "complete" => {
            let values = nodes::from_guest(fields.value()?)?;
            let value = fields.index(values.node_count)?;
            Event::Complete(Complete { value, values: Some(values) })
        }
        "raised" => {
            let (exc_type, message) = (fields.text()?, Some(fields.text()?));
            let traceback = fields.list()?.into_iter().map(frame).collect::<Result<_, _>>()?;
            let data = exceptions::from_guest(fields.value()?)?;
            report::raised(RaisedException { exc_type, message, traceback, data })
        }
        kind => return Err(format!("its kind is {kind:?}")),
    };
    fields.end()?;
    Ok(event)
}

fn frame(frame: Value) -> Result<StackFrame, String> {
    let Value::List(fields) = frame else { return Err("a frame is no list".to_owned()) };
    let mut fields = Fields::new(fields);
    let mut frame = StackFrame {
        filename: fields.text()?,
        start: Some(CodeLoc { line: fields.int()?, column: fields.int()? }),
        end: Some(CodeLoc { line: fields.int()?, column: fields.int()? }),
        frame_name: fields.optional_text()?,
        preview_line: fields.optional_text()?,
        hide_caret: fields.bool()?,
        hide_frame_name: fields.bool()?,
    };
    // Clients refuse a span that leaves its line.
    if let (Some(line), Some(start), Some(end)) =
        (&frame.preview_line, &frame.start, &mut frame.end)
        && start.line == end.line
    {
        let last = u32::try_from(line.chars().count()).unwrap_or(u32::MAX).saturating_add(1);
        if end.column < start.column || end.column > last {
            frame.preview_line = None;
        }
    }
    Ok(frame)
}
