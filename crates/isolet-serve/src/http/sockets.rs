//! Sessions over WebSockets: requests in order, with events, tool answers and interrupts during a
//! run.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use isolet::Value;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tokio_websockets::CloseCode;

use super::MAX_BODY_BYTES;
use super::answers::{checked, fit, fit_message};
use super::body::{NoFields, decode, in_turn, json, read, variables};
use super::openapi;
use super::problem::Problem;
use super::runs::{EventMessage, RunRequest, ToolException, answer_of};
use super::sessions::{SessionRequest, created};
use super::websocket::{Socket, SocketEvent, Upgrade};
use crate::http::credentials::Credentials;
use isolet_service::core::{Command, Execution, Plain, Variable};
use isolet_service::node::{Node, OwnSession, SessionLease, Streamed, Tenant};
use isolet_support::json_rpc::Outline;
use isolet_support::json_text::message_id;

/// The description of a message in problems.
const MESSAGE: &str = "the message";

/// Added to a problem's status, this is the close code.
const PRIVATE_CODES: u16 = 4000;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new().route("/v1/ws", get(open)).route("/v1/sessions/{id}/ws", get(attach))
}

/// Opens a socket to a session.
async fn attach(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    upgrade: Upgrade,
) -> Result<Response, Problem> {
    let session = node.find(&credentials, &id)?;
    upgrade.accept(&Arc::clone(&node), MAX_BODY_BYTES, async move |socket| {
        let mut conversation = Conversation { node, credentials, id, socket };
        let (code, reason) = conversation.hold(&session).await;
        // The lease ends first, so that nothing waits for the closing handshake.
        drop(session);
        conversation.socket.close(code, &reason).await;
    })
}

/// Opens a socket with a new session, which the first message describes.
async fn open(
    State(node): Served,
    credentials: Credentials,
    upgrade: Upgrade,
) -> Result<Response, Problem> {
    let tenant = node.tenant(&credentials)?;
    upgrade.accept(&Arc::clone(&node), MAX_BODY_BYTES, async move |mut socket| {
        let Some(message) = socket.next().await else { return };
        let session = match socket.during(create(&node, &tenant, &message)).await {
            Some(Ok((session, answer))) => match socket.deliver(json(answer)).await {
                Some(()) => session,
                None => return,
            },
            Some(Err((id, problem))) => {
                if socket.deliver(failed(id, &problem)).await.is_some() {
                    socket.close(code(&problem), problem.detail()).await;
                }
                return;
            }
            None => return,
        };
        let id = session.used().handle().to_owned();
        socket.started(&id);
        let credentials = Credentials::of_session(node.token(&id));
        let mut conversation = Conversation { node, credentials, id, socket };
        let (code, reason) = conversation.hold(session.used()).await;
        session.end().await;
        conversation.socket.close(code, &reason).await;
    })
}

/// Creates the session of a first message. Returns it with the answer.
async fn create(
    node: &Arc<Node>,
    tenant: &Arc<Tenant>,
    message: &[u8],
) -> Result<(OwnSession, WithId<Answer>), (Option<Value>, Problem)> {
    let message = Message::read(message).await?;
    let Message { kind, id, fields } = message;
    let wanted = if kind == "session" {
        read(MESSAGE, fields).and_then(SessionRequest::new_session)
    } else {
        Err(Problem::unreadable(format!(
            "the first message is a `{kind}`, and has to be a `session`"
        )))
    };
    let made = match wanted {
        Ok(new) => node.create_own(tenant, new, Duration::ZERO).await.map_err(Problem::from),
        Err(problem) => Err(problem),
    };
    let session = made.map_err(|problem| (id.clone(), problem))?;
    let openapi::NewSession { session: its, token, node } = created(node, session.used());
    // It ends with the socket, so it is not durable.
    let openapi::Session { id: own, created_at, ttl, is_paused, metadata, .. } = its;
    let answer =
        Answer::Session { session: own, created_at, ttl, is_paused, metadata, token, node };
    Ok((session, WithId { what: answer, id: id.map(Plain) }))
}

/// Returns the id of an invalid message.
fn named(text: &[u8]) -> Option<Value> {
    Some(message_id(Outline::of(text))).filter(|id| !id.is_none())
}

/// A message of a client.
pub(super) struct Message {
    kind: String,
    /// The client's id of the request, repeated in its answers.
    id: Option<Value>,
    fields: Value,
}

impl Message {
    async fn read(text: &[u8]) -> Result<Self, (Option<Value>, Problem)> {
        in_turn(text.len(), || Self::decode(text)).await
    }

    /// Returns `true` if none of its fields is named like its kind or its id.
    #[cfg(feature = "fuzzing")]
    pub(super) fn has_no_head(&self) -> bool {
        let mut fields = self.fields.as_dict().into_iter().flatten();
        !fields.any(|(name, _)| matches!(name.as_str(), Some("type" | "id")))
    }

    pub(super) fn decode(text: &[u8]) -> Result<Self, (Option<Value>, Problem)> {
        let fields = decode(MESSAGE, text).and_then(|value| match value {
            Value::Dict(fields) => Ok(fields),
            other => {
                let kind = other.type_name();
                let detail = format!("{MESSAGE} is {kind}, and has to be an object");
                Err(Problem::unreadable(detail))
            }
        });
        let mut fields = fields.map_err(|problem| (named(text), problem))?;
        let mut take = |name: &str| {
            let place = fields.iter().position(|(key, _)| key.as_str() == Some(name))?;
            Some(fields.remove(place).1)
        };
        let (kind, id) = (take("type"), take("id"));
        // As in all other objects, where serde says so.
        if let Some(name) = ["type", "id"].into_iter().find(|name| take(name).is_some()) {
            let detail = format!("{MESSAGE} is invalid: duplicate field `{name}`");
            return Err((id, Problem::unreadable(detail)));
        }
        match kind {
            Some(Value::Str(kind)) => Ok(Self { kind, id, fields: Value::Dict(fields) }),
            _ => Err((id, Problem::unreadable("the string `type` is missing"))),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewVariables {
    variables: Value,
}

/// The answer to a tool call.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolResultMessage {
    call_id: u64,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    error: Option<ToolException>,
}

/// A request that runs no code.
enum Work {
    Get(String),
    Delete(String),
    Set(Vec<(String, Value)>),
    Variables,
    Reset,
}

impl Work {
    async fn done(self, node: &Node, session: &SessionLease) -> Result<Done, Problem> {
        Ok(match self {
            Self::Get(name) => {
                let found = node.carry_out(session, |reply| Command::Get { name, reply }).await?;
                let missing = || Problem::nothing("there is no such variable");
                Done::Value(Plain(found.ok_or_else(missing)?))
            }
            Self::Delete(name) => {
                Done::Was(node.carry_out(session, |reply| Command::Delete { name, reply }).await?)
            }
            Self::Set(variables) => {
                node.carry_out(session, |reply| Command::Set { variables, reply }).await?;
                Done::Nothing
            }
            Self::Variables => {
                let list = |reply| Command::Variables { reply };
                Done::Variables(node.carry_out(session, list).await?)
            }
            Self::Reset => {
                node.reset(session).await?;
                Done::Nothing
            }
        })
    }
}

/// The peer has gone.
struct Gone;

/// A socket and its session.
struct Conversation {
    node: Arc<Node>,
    credentials: Credentials,
    /// The session's id.
    id: String,
    socket: Socket,
}

impl Conversation {
    /// Serves the client until it disconnects or the session ends. Returns the reason for closing.
    async fn hold(&mut self, session: &SessionLease) -> (CloseCode, String) {
        let ended = session.session().ended().clone();
        let is_ended = self.listen(&ended).await.is_ok();
        match self.node.find(&self.credentials, &self.id) {
            _ if !is_ended => (CloseCode::NORMAL_CLOSURE, String::new()),
            _ if self.node.is_draining() => (CloseCode::GOING_AWAY, "the node ends".to_owned()),
            Ok(_) => (CloseCode::GOING_AWAY, "the session is gone".to_owned()),
            Err(refusal) => {
                let problem = Problem::from(refusal);
                (code(&problem), problem.detail().to_owned())
            }
        }
    }

    /// Returns once the session has ended.
    async fn listen(&mut self, ended: &CancellationToken) -> Result<(), Gone> {
        loop {
            let message = tokio::select! {
                biased;
                message = self.socket.next() => message.ok_or(Gone)?,
                () = ended.cancelled() => return Ok(()),
            };
            let answer = match Message::read(&message).await {
                Ok(message) if message.kind == "run" => {
                    Some(self.run(message.id, message.fields).await?)
                }
                Ok(message) => self.carry_out(message).await?,
                Err((id, problem)) => Some(failed(id, &problem)),
            };
            if let Some(answer) = answer {
                self.socket.deliver(answer).await.ok_or(Gone)?;
            }
        }
    }

    /// Carries out a request that runs no code. Returns its answer, if there is one.
    async fn carry_out(&mut self, message: Message) -> Result<Option<Vec<u8>>, Gone> {
        let Message { kind, id, fields } = message;
        let work = match kind.as_str() {
            "interrupt" | "tool_result" => {
                return Ok(self.meanwhile(&kind, fields).map(|problem| failed(id, &problem)));
            }
            "get" => read(MESSAGE, fields).map(|Named { name }| Work::Get(name)),
            "delete" => read(MESSAGE, fields).map(|Named { name }| Work::Delete(name)),
            "set" => read(MESSAGE, fields)
                .and_then(|NewVariables { variables: given }| variables(given))
                .map(Work::Set),
            "variables" => read(MESSAGE, fields).map(|NoFields {}| Work::Variables),
            "reset" => read(MESSAGE, fields).map(|NoFields {}| Work::Reset),
            _ => Err(Problem::unreadable(format!("there is no message `{kind}`"))),
        };
        let found = work
            .and_then(|work| Ok((work, self.node.find(&self.credentials, &self.id)?)))
            .map_err(|problem| failed(id.clone(), &problem));
        let (work, session) = match found {
            Ok(found) => found,
            Err(answer) => return Ok(Some(answer)),
        };
        let done = self.socket.during(work.done(&self.node, &session)).await.ok_or(Gone)?;
        let answer = done.and_then(|value| checked(&self.node, Answer::Ok { value }));
        Ok(Some(match answer {
            Ok(what) => json(WithId { what, id: id.map(Plain) }),
            Err(problem) => failed(id, &problem),
        }))
    }

    /// Carries out a message that is allowed during a run. Returns its problem, if it has one.
    fn meanwhile(&self, kind: &str, fields: Value) -> Option<Problem> {
        let session = match self.node.find(&self.credentials, &self.id) {
            Ok(session) => session,
            Err(refusal) => return Some(refusal.into()),
        };
        if kind == "interrupt" {
            if let Err(problem) = read::<NoFields>(MESSAGE, fields) {
                return Some(problem);
            }
            // The end of the run is the answer.
            let _ = session.session().interrupt();
            return None;
        }
        match read(MESSAGE, fields) {
            Ok(ToolResultMessage { call_id, value, error }) => {
                // An answer to a cancelled call is ignored.
                self.node.answer(&session, call_id, answer_of(value, error));
                None
            }
            Err(problem) => Some(problem),
        }
    }

    /// Runs code and sends its events. Returns the last message.
    async fn run(&mut self, id: Option<Value>, fields: Value) -> Result<Vec<u8>, Gone> {
        let begun = read(MESSAGE, fields)
            .and_then(|request: RunRequest| request.new_run(true))
            .and_then(|run| {
                let find = || self.node.find(&self.credentials, &self.id);
                Ok((run, find()?, find()?))
            });
        let (run, session, same) = match begun {
            Ok(begun) => begun,
            Err(problem) => return Ok(failed(id, &problem)),
        };
        let node = Arc::clone(&self.node);
        let mut starting = std::pin::pin!(node.stream(session, run));
        let started = loop {
            tokio::select! {
                started = &mut starting => break started,
                event = self.socket.next_event() => if self.take(event).await? == Taken::Interrupt {
                    // The request was interrupted while it was queued.
                    return Ok(ended(id, Execution::interrupted()));
                }
            }
        };
        let Streamed { mut events, mut result } = match started {
            Ok(streamed) => streamed,
            Err(refusal) => return Ok(failed(id, &refusal.into())),
        };
        let result = loop {
            tokio::select! {
                biased;
                // Polled first, so that the run has started before an interrupt.
                result = &mut result => break result,
                event = self.socket.next_event() => {
                    self.take(event).await?;
                }
                Some(event) = events.next(), if self.socket.has_room() => {
                    self.socket.send(to_message(event, id.clone()));
                }
            }
        };
        // No event follows the result.
        while let Some(event) = events.try_next() {
            self.socket.deliver(to_message(event, id.clone())).await.ok_or(Gone)?;
        }
        Ok(match result {
            Ok(execution) => ended(id, fit_message(fit(&self.node, &same, execution))),
            Err(refusal) => failed(id, &refusal.into()),
        })
    }

    /// Handles a message during a run.
    async fn take(&mut self, event: SocketEvent) -> Result<Taken, Gone> {
        let text = match event {
            SocketEvent::Message(text) => text,
            SocketEvent::Sent => return Ok(Taken::Nothing),
            SocketEvent::Gone => return Err(Gone),
        };
        let problem = match Message::read(&text).await {
            Ok(message) if matches!(message.kind.as_str(), "interrupt" | "tool_result") => {
                match self.meanwhile(&message.kind, message.fields) {
                    Some(problem) => (message.id, problem),
                    None if message.kind == "interrupt" => return Ok(Taken::Interrupt),
                    None => return Ok(Taken::Nothing),
                }
            }
            // Validated when its turn comes.
            Ok(_) | Err(_) => {
                return self.socket.keep_message(text).map(|()| Taken::Nothing).ok_or(Gone);
            }
        };
        self.socket.deliver(failed(problem.0, &problem.1)).await.ok_or(Gone)?;
        Ok(Taken::Nothing)
    }
}

/// The effect of a message during a run.
#[derive(PartialEq)]
enum Taken {
    Interrupt,
    Nothing,
}

/// A message with the id of its request.
#[derive(Serialize)]
struct WithId<T> {
    #[serde(flatten)]
    what: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Plain>,
}

/// The answer to a request that runs no code.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Answer {
    Session {
        /// Not `id`, because the message may have one.
        session: String,
        created_at: f64,
        ttl: f64,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_paused: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        metadata: Option<Plain>,
        token: String,
        node: String,
    },
    Ok {
        value: Done,
    },
}

/// The result of a request.
#[derive(Serialize)]
#[serde(untagged)]
enum Done {
    Value(Plain),
    Variables(Vec<Variable>),
    /// Whether the deleted object existed.
    Was(bool),
    Nothing,
}

fn to_message(what: impl Into<EventMessage>, id: Option<Value>) -> Vec<u8> {
    json(WithId { what: what.into(), id: id.map(Plain) })
}

/// Returns the last message of a run.
fn ended(id: Option<Value>, execution: Execution) -> Vec<u8> {
    to_message(EventMessage::End { execution: Box::new(execution) }, id)
}

fn failed(id: Option<Value>, problem: &Problem) -> Vec<u8> {
    to_message(EventMessage::Error { problem: problem.to_body() }, id)
}

/// Returns the close code for a problem.
fn code(problem: &Problem) -> CloseCode {
    CloseCode::try_from(PRIVATE_CODES + problem.status().as_u16())
        .unwrap_or(CloseCode::POLICY_VIOLATION)
}
