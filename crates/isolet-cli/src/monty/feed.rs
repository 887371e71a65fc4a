//! A feed: code that runs, and the client's answers to its questions.

use std::io;
use std::time::Duration;

use isolet::{Cell, RunEvent, RunOutput, Value};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::asks::{self, Ask};
use super::channel::Incoming;
use super::messages::events::{Event, RaisedException};
use super::messages::requests::{AbortFeed, Feed, Request};
use super::outcome;
use super::printer::Printer;
use super::report::{self, Report};
use super::session::Held;
use super::{nodes, worker};

/// The variable that passes a feed to the guest's half, which unbinds it.
const FED: &str = "_monty_fed";
const CELL: &str = "_monty_feed()";
const CELL_NAME: &str = "<isolet>/monty";

/// The time that a feed may take to end before it is interrupted, and then again before the session
/// is killed.
const PATIENCE: Duration = Duration::from_millis(500);

/// The next step after a feed.
pub(super) enum After {
    /// The next request.
    Ready,
    /// The end of the session, in the middle of the feed.
    Reset,
    /// The end of the worker.
    Shutdown,
    /// The end of the worker, because of the client.
    Broken(String),
}

/// Why a feed is to end that does not end by itself.
pub(super) enum Stop {
    /// A turn took longer than this.
    Turn(Duration),
    /// The client ends it with this exception.
    Abort(RaisedException),
}

/// Runs a feed and reports on it until it has ended.
pub(super) async fn run(
    held: &mut Held,
    feed: Feed,
    requests: &mut mpsc::Receiver<Incoming>,
) -> io::Result<After> {
    held.report.begin_feed();
    let variable = match for_guest(feed) {
        Ok(variable) => variable,
        Err(reason) => return ready(&held.report, worker::violation(&reason)),
    };
    if let Some(reason) = &held.ended {
        let text = format!("the session has ended, {reason}; check out another one");
        return ready(&held.report, report::error("RuntimeError", text));
    }
    let handle = held.session.interrupt_handle();
    let Held { session, asks, report, feed_limit, turn_limit, calls, .. } = held;
    let mut printer = Printer::new(held.print_interval_ms);
    let mut cell = Cell::new(CELL).name(CELL_NAME).inputs([(FED, variable)]);
    if let Some(limit) = *feed_limit {
        cell = cell.timeout(limit);
    }
    let mut stream = session.run_streaming(cell);
    let mut output = stream.take_output();
    let mut run = std::pin::pin!(stream.finish());
    let mut stop = None;
    let mut is_interrupted = false;
    let turn = || turn_limit.map(|limit| Instant::now() + limit);
    let mut deadline = turn();
    report.run();
    let result = loop {
        tokio::select! {
            biased;
            event = next(&mut output) => match event {
                Some(event) => print(&mut printer, event),
                None => output = None,
            },
            () = at(printer.due()) => flush(&mut printer, report)?,
            () = at(deadline) => {
                if stop.is_none() {
                    stop = turn_limit.map(Stop::Turn);
                }
                if is_interrupted {
                    handle.kill();
                    deadline = None;
                } else {
                    handle.interrupt();
                    is_interrupted = true;
                    deadline = Some(Instant::now() + PATIENCE);
                }
            }
            Some(ask) = asks.recv() => {
                if matches!(stop, Some(Stop::Abort(_))) {
                    // If the call has been cancelled, its answer is not awaited.
                    let _ = ask.answer.send(asks::aborted());
                    continue;
                }
                report.stop();
                flush(&mut printer, report)?;
                match answer(ask, calls, report, requests).await? {
                    Answered::Yes if is_interrupted => {}
                    Answered::Yes => deadline = turn(),
                    Answered::Aborted(exception) => {
                        stop = Some(Stop::Abort(exception));
                        deadline = Some(Instant::now() + PATIENCE);
                    }
                    Answered::Not(after) => {
                        handle.kill();
                        return Ok(after);
                    }
                }
                report.run();
            }
            result = &mut run => break result,
        }
    };
    report.stop();
    // The run has ended, so that this does not wait.
    while let Some(output) = &mut output
        && let Some(event) = output.next().await
    {
        print(&mut printer, event);
    }
    if let Some(event) = printer.take(true) {
        report.write(event)?;
    }
    let event = outcome::event(result, stop, &mut held.ended);
    ready(&held.report, event)
}

fn ready(report: &Report, event: Event) -> io::Result<After> {
    report.write(event)?;
    Ok(After::Ready)
}

/// Returns a feed for the guest's half.
fn for_guest(feed: Feed) -> Result<Value, String> {
    let nodes = nodes::to_guest(feed.values)?;
    let mut inputs = Vec::with_capacity(feed.inputs.len());
    for input in feed.inputs {
        let index = nodes::index(input.value, &nodes)?;
        inputs.push(Value::List(vec![input.name.into(), index]));
    }
    Ok(Value::List(vec![feed.code.into(), nodes, Value::List(inputs), feed.cwd.into()]))
}

fn print(printer: &mut Printer, event: RunEvent) {
    // The protocol has no displays.
    if let RunEvent::Output(chunk) = event {
        printer.push(chunk.stream, chunk.bytes);
    }
}

fn flush(printer: &mut Printer, report: &Report) -> io::Result<()> {
    printer.take(false).map_or(Ok(()), |event| report.write(event))
}

async fn next(output: &mut Option<RunOutput>) -> Option<RunEvent> {
    match output {
        Some(output) => output.next().await,
        None => std::future::pending().await,
    }
}

async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

enum Answered {
    Yes,
    /// The client ends the feed with this exception.
    Aborted(RaisedException),
    /// The feed ends without an answer.
    Not(After),
}

/// Asks the client, and passes its answer on. A message that does not answer the question is
/// refused, and the question stays.
async fn answer(
    ask: Ask,
    calls: &mut u32,
    report: &Report,
    requests: &mut mpsc::Receiver<Incoming>,
) -> io::Result<Answered> {
    let Ask { mut event, answer } = ask;
    if asks::set_number(&mut event, *calls) {
        *calls = calls.wrapping_add(1);
    }
    report.write(event.clone())?;
    loop {
        let refusal = match requests.recv().await {
            Some(Err(reason)) => return Ok(Answered::Not(After::Broken(reason))),
            Some(Ok(Request::Reset(_))) => return Ok(Answered::Not(After::Reset)),
            None | Some(Ok(Request::Shutdown(_))) => return Ok(Answered::Not(After::Shutdown)),
            Some(Ok(Request::AbortFeed(AbortFeed { exception: Some(exception) }))) => {
                // If the call has been cancelled, its answer is not awaited.
                let _ = answer.send(asks::aborted());
                return Ok(Answered::Aborted(exception));
            }
            Some(Ok(Request::AbortFeed(_))) => "AbortFeed has no exception".to_owned(),
            Some(Ok(request @ (Request::Dump(_) | Request::Load(_)))) => {
                report.write(worker::no_dumps(&request))?;
                continue;
            }
            Some(Ok(request)) => match asks::answer(&event, request) {
                Ok(value) => {
                    let _ = answer.send(value);
                    return Ok(Answered::Yes);
                }
                Err(reason) => reason,
            },
        };
        report.write(worker::violation(&refusal))?;
    }
}
