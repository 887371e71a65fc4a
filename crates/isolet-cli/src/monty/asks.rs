//! The guest's requests to the client, and the client's answers.

use isolet::Value;
use tokio::sync::oneshot;

use super::fields::Fields;
use super::messages::events::{
    Call, Event, FunctionCall, Getenv, Import, Mkdir, NameLookup, Open, OsCall, RaisedException,
    Rename, ResolveFutures, Seconds, TextWritten, Written,
};
use super::messages::requests::{Found, Outcome, Request, ResumeCall, ResumeFutures};
use super::messages::values::{Arena, Kind, Node, Unit};
use super::{exceptions, nodes};

/// A question of the guest's, which waits for its answer.
pub(super) struct Ask {
    pub(super) event: Event,
    pub(super) answer: oneshot::Sender<Value>,
}

/// The answer for a guest whose feed the client has ended.
pub(super) fn aborted() -> Value {
    Value::List(vec!["aborted".into()])
}

/// Reads a question of the guest's. A call has no number yet.
pub(super) fn read(question: Value) -> Result<Event, String> {
    let Value::List(fields) = question else { return Err("a question is a list".to_owned()) };
    let mut fields = Fields::new(fields);
    let kind = fields.text()?;
    let event = match kind.as_str() {
        "name" => Event::NameLookup(NameLookup {
            name: fields.text()?,
            object_id: fields.optional_identity()?,
            position: fields.position()?,
        }),
        "call" => {
            let function_name = fields.text()?;
            let (args, kwargs) = (fields.list()?, fields.list()?);
            let values = nodes::from_guest(fields.value()?)?;
            let count = values.node_count;
            Event::FunctionCall(FunctionCall {
                function_name,
                args: Fields::new(args).indexes(count)?,
                kwargs: Fields::new(kwargs).pairs(count)?,
                call_id: 0,
                object_id: fields.optional_identity()?,
                values: Some(values),
                position: fields.position()?,
            })
        }
        "system" => {
            let operation = fields.text()?;
            let mut arguments = Fields::new(fields.list()?);
            let call = system_call(&operation, &mut arguments)?;
            arguments.end()?;
            // The default of a variable that is not set: the guest has its own.
            let nothing =
                Arena { node_count: 1, nodes: vec![Node { kind: Some(Kind::None(Unit {})) }] };
            let values = matches!(call, Call::Getenv(_)).then_some(nothing);
            let position = fields.position()?;
            Event::OsCall(OsCall { call_id: 0, call: Some(call), values, position })
        }
        "resolve" => Event::ResolveFutures(ResolveFutures {
            pending_call_ids: {
                let mut numbers = Fields::new(fields.list()?);
                numbers.indexes(u32::MAX)?
            },
            position: fields.position()?,
        }),
        kind => return Err(format!("the question {kind:?} is unknown")),
    };
    fields.end()?;
    Ok(event)
}

fn system_call(operation: &str, fields: &mut Fields) -> Result<Call, String> {
    Ok(match operation {
        "exists" => Call::Exists(fields.text()?),
        "is_file" => Call::IsFile(fields.text()?),
        "is_dir" => Call::IsDir(fields.text()?),
        "read_text" => Call::ReadText(fields.text()?),
        "read_bytes" => Call::ReadBytes(fields.text()?),
        "stat" => Call::Stat(fields.text()?),
        "iterdir" => Call::Iterdir(fields.text()?),
        "unlink" => Call::Unlink(fields.text()?),
        "rmdir" => Call::Rmdir(fields.text()?),
        "write_text" => Call::WriteText(TextWritten { path: fields.text()?, data: fields.text()? }),
        "write_bytes" => Call::WriteBytes(Written { path: fields.text()?, data: fields.bytes()? }),
        "append_bytes" => {
            Call::AppendBytes(Written { path: fields.text()?, data: fields.bytes()? })
        }
        "open" => Call::Open(Open { path: fields.text()?, mode: fields.text()? }),
        "mkdir" => Call::Mkdir(Mkdir { path: fields.text()?, parents: false, exist_ok: false }),
        "rename" => Call::Rename(Rename { src: fields.text()?, dst: fields.text()? }),
        "getenv" => Call::Getenv(Getenv { key: fields.text()?, default: 0 }),
        "sleep" => Call::Sleep(seconds(fields)?),
        "async_sleep" => Call::AsyncSleep(seconds(fields)?),
        "system_sleep" => Call::SystemSleep(seconds(fields)?),
        "async_system_sleep" => Call::AsyncSystemSleep(seconds(fields)?),
        "import" => Call::Import(Import { module: fields.text()? }),
        operation => return Err(format!("the operation {operation:?} is unknown")),
    })
}

fn seconds(fields: &mut Fields) -> Result<Seconds, String> {
    let seconds = fields.float()?;
    // Clients take a number of nanoseconds of 63 bits.
    if (0.0..9e9).contains(&seconds) {
        Ok(Seconds { seconds })
    } else {
        Err(format!("a sleep of {seconds} seconds is out of range"))
    }
}

/// Gives a call its number. Returns `false` for an event that is no call.
pub(super) fn set_number(event: &mut Event, number: u32) -> bool {
    match event {
        Event::FunctionCall(call) => call.call_id = number,
        Event::OsCall(call) => call.call_id = number,
        _ => return false,
    }
    true
}

/// Returns the answer to a question for the guest. Fails if the request is not an answer to it.
pub(super) fn answer(question: &Event, request: Request) -> Result<Value, String> {
    match (question, request) {
        (Event::NameLookup(_), Request::ResumeNameLookup(resume)) => {
            let nodes = nodes::to_guest(resume.values)?;
            Ok(match resume.kind.ok_or("the answer to a lookup is empty")? {
                Found::Value(root) => value(nodes, root)?,
                Found::Undefined(_) => list(["undefined".into()]),
                Found::Error(error) => raised(error),
            })
        }
        (Event::FunctionCall(call), Request::ResumeCall(resume)) => {
            call_answer(call.call_id, resume)
        }
        (Event::OsCall(call), Request::ResumeCall(resume)) => call_answer(call.call_id, resume),
        (Event::ResolveFutures(waiting), Request::ResumeFutures(resume)) => {
            resolved(&waiting.pending_call_ids, resume)
        }
        (question, request) => Err(format!(
            "{} cannot answer {}",
            request_name(&request),
            match question {
                Event::NameLookup(_) => "a name lookup",
                Event::FunctionCall(_) => "a call",
                Event::OsCall(_) => "a call of the system",
                _ => "the wait for calls",
            }
        )),
    }
}

fn call_answer(number: u32, resume: ResumeCall) -> Result<Value, String> {
    if resume.call_id != number {
        return Err(format!("the answer is to call {}, call {number} waits", resume.call_id));
    }
    let nodes = nodes::to_guest(resume.values)?;
    let outcome = resume.result.and_then(|result| result.kind).ok_or("the answer is empty")?;
    outcome_for(outcome, number, nodes)
}

fn outcome_for(outcome: Outcome, number: u32, nodes: Value) -> Result<Value, String> {
    Ok(match outcome {
        Outcome::ReturnValue(root) => value(nodes, root)?,
        Outcome::Error(error) => raised(error),
        Outcome::Future(future) if future == number => list(["future".into(), number.into()]),
        Outcome::Future(future) => {
            return Err(format!("the future is of call {future}, call {number} waits"));
        }
        Outcome::NotFound(name) => list(["not_found".into(), name.into()]),
        Outcome::NotHandled(_) => list(["not_handled".into()]),
    })
}

/// Returns the answers to some of the calls that wait: their nodes, and a list for each of its
/// number and what became of it.
fn resolved(waiting: &[u32], resume: ResumeFutures) -> Result<Value, String> {
    let nodes = nodes::to_guest(resume.values)?;
    let mut answers = Vec::with_capacity(resume.results.len());
    for result in resume.results {
        let number = result.call_id;
        if !waiting.contains(&number) {
            return Err(format!("call {number} is not among those that wait, {waiting:?}"));
        }
        let mut answer = vec![number.into()];
        match result.result.and_then(|result| result.kind).ok_or("a result is empty")? {
            Outcome::ReturnValue(root) => {
                answer.extend(["value".into(), nodes::index(root, &nodes)?]);
            }
            outcome => {
                if let Value::List(outcome) = outcome_for(outcome, number, Value::None)? {
                    answer.extend(outcome);
                }
            }
        }
        answers.push(Value::List(answer));
    }
    Ok(list(["results".into(), nodes, Value::List(answers)]))
}

fn value(nodes: Value, root: u32) -> Result<Value, String> {
    let root = nodes::index(root, &nodes)?;
    Ok(list(["value".into(), nodes, root]))
}

fn raised(error: RaisedException) -> Value {
    let message = error.message.map_or(Value::None, Value::from);
    let data = error.data.map_or(Value::None, exceptions::to_guest);
    list(["raised".into(), error.exc_type.into(), message, data])
}

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(items.into())
}

/// Returns the name of a request in the protocol.
pub(super) fn request_name(request: &Request) -> &'static str {
    match request {
        Request::Configure(_) => "Configure",
        Request::InstallDependencies(_) => "InstallDependencies",
        Request::Feed(_) => "Feed",
        Request::ResumeCall(_) => "ResumeCall",
        Request::ResumeNameLookup(_) => "ResumeNameLookup",
        Request::ResumeFutures(_) => "ResumeFutures",
        Request::Dump(_) => "Dump",
        Request::Load(_) => "Load",
        Request::Reset(_) => "Reset",
        Request::Shutdown(_) => "Shutdown",
        Request::AbortFeed(_) => "AbortFeed",
    }
}
