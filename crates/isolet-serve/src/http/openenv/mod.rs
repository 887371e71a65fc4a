//! OpenEnv's protocol: each connection, and each request without one, gets a new environment.
//! Errors of the guest's code are never protocol errors.

mod coding;
mod interpreter;
mod repl;
mod schema;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use tokio_websockets::CloseCode;

use self::coding::Coding;
use self::interpreter::Interpreter;
use self::repl::Repl;
use super::answers::check_name;
use super::body::{DialectJson, RawBody, count_values, in_turn};
use super::problem::Problem;
use super::websocket::{Socket, Upgrade};
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Refusal, Tenant};

/// How long a connection waits for a slot. Clients wait for 10 s.
const PATIENCE: Duration = Duration::from_secs(8);

/// The maximum size of a message, as in clients.
const MAX_MESSAGE_BYTES: usize = 100 << 20;

/// The JSON-RPC error of an environment without MCP tools.
const METHOD_NOT_FOUND: i32 = -32601;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/openenv/{environment}/ws", get(connect))
        .route("/openenv/{environment}/reset", post(reset))
        .route("/openenv/{environment}/step", post(step))
        .route("/openenv/{environment}/state", get(state))
        .route("/openenv/{environment}/schema", get(async |kind: Kind| DialectJson(kind.schema())))
        .route(
            "/openenv/{environment}/metadata",
            get(async |kind: Kind| DialectJson(kind.metadata())),
        )
        .route("/openenv/{environment}/health", get(health))
        .route("/openenv/{environment}/mcp", post(call))
}

/// The environment of a route.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Coding,
    Repl,
}

impl<S: Sync + Send> axum::extract::FromRequestParts<S> for Kind {
    type Rejection = Problem;

    async fn from_request_parts(
        parts: &mut axum::http::request::Parts,
        state: &S,
    ) -> Result<Self, Problem> {
        let found = Path::<Self>::from_request_parts(parts, state).await;
        found.map(|Path(kind)| kind).map_err(|_| {
            Problem::nothing("there is no such environment; there are `coding` and `repl`")
        })
    }
}

/// Why an environment refuses a message.
pub(super) enum Failed {
    /// The message is invalid.
    Invalid(String),
    /// The message cannot be carried out.
    Execution(String),
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::Execution(Problem::from(refusal).detail().to_owned())
    }
}

impl Failed {
    fn message(self) -> String {
        match self {
            Self::Invalid(text) => {
                error("VALIDATION_ERROR", &text, json!({"errors": [{"msg": text}]}))
            }
            Self::Execution(text) => error("EXECUTION_ERROR", &text, json!({})),
        }
    }

    fn problem(self) -> Problem {
        match self {
            Self::Invalid(text) | Self::Execution(text) => {
                Problem::unreadable(text).with_status(axum::http::StatusCode::UNPROCESSABLE_ENTITY)
            }
        }
    }
}

/// An observation of an environment.
struct Observation {
    shown: Json,
    metadata: Option<Json>,
    reward: f64,
    done: bool,
}

impl Observation {
    fn json(self) -> Json {
        let Self { mut shown, metadata, reward, done } = self;
        let mut data = json!({"reward": reward, "done": done});
        if let Some(metadata) = metadata {
            // Clients look in both.
            shown["metadata"] = metadata.clone();
            data["metadata"] = metadata;
        }
        data["observation"] = shown;
        data
    }
}

/// Returns the client's id of an episode, or a new one.
fn episode(given: Option<String>) -> Result<String, Failed> {
    if let Some(name) = given {
        check_name("episode_id", Some(&name))
            .map_err(|problem| Failed::Invalid(problem.detail().to_owned()))?;
        return Ok(name);
    }
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| Failed::Execution(error.to_string()))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

enum Environment {
    Coding(Coding),
    Repl(Box<Repl>),
}

impl Environment {
    /// Starts an environment, waiting for a slot.
    async fn start(kind: Kind, node: &Arc<Node>, tenant: &Arc<Tenant>) -> Result<Self, Refusal> {
        let (node, tenant) = (Arc::clone(node), Arc::clone(tenant));
        Ok(match kind {
            Kind::Coding => {
                Self::Coding(Coding::new(Interpreter::start(node, tenant, coding::HELPERS).await?))
            }
            Kind::Repl => {
                let interpreter = Interpreter::start(node, tenant, repl::HELPERS).await?;
                Self::Repl(Box::new(Repl::new(interpreter)))
            }
        })
    }

    fn interpreter(&self) -> &Interpreter {
        match self {
            Self::Coding(coding) => coding.interpreter(),
            Self::Repl(repl) => repl.interpreter(),
        }
    }

    async fn reset(&mut self, data: Json) -> Result<Observation, Failed> {
        match self {
            Self::Coding(coding) => coding.reset(read(data)?).await,
            Self::Repl(repl) => repl.reset(read(data)?).await,
        }
    }

    async fn step(&mut self, data: Json, seconds: Option<f64>) -> Result<Observation, Failed> {
        match self {
            Self::Coding(coding) => coding.step(read(data)?, seconds).await,
            Self::Repl(repl) => repl.step(read(data)?, seconds).await,
        }
    }

    fn state(&self) -> Result<Json, Failed> {
        match self {
            Self::Coding(coding) => Ok(coding.state()),
            Self::Repl(repl) => repl.state(),
        }
    }
}

/// Deserialises an object.
pub(super) fn read<T: DeserializeOwned>(data: Json) -> Result<T, Failed> {
    // Serde would read a list as the fields in order.
    if !data.is_object() {
        let kind = match data {
            Json::Null => "null",
            Json::Bool(_) => "a boolean",
            Json::Number(_) => "a number",
            Json::String(_) => "a string",
            _ => "an array",
        };
        return Err(Failed::Invalid(format!("`data` is {kind}, and has to be an object")));
    }
    serde_json::from_value(data).map_err(|error| Failed::Invalid(error.to_string()))
}

async fn connect(
    State(node): Served,
    credentials: Credentials,
    kind: Kind,
    uri: Uri,
    upgrade: Upgrade,
) -> Result<Response, Problem> {
    let tenant = node.tenant(&credentials)?;
    let started = if uri.query().unwrap_or_default().contains("session_id=") {
        let text = "the session of another connection cannot be used, each has its own";
        Err(error("SESSION_ERROR", text, json!({})))
    } else {
        // Before the handshake, because clients wait longer for it than for an error message after
        // it.
        let started = Environment::start(kind, &node, &tenant).await;
        started.map_err(|refusal| refused(&node, &tenant, refusal))
    };
    upgrade.accept(&Arc::clone(&node), MAX_MESSAGE_BYTES, async move |mut socket| {
        let (code, reason) = match started {
            Ok(environment) => serve(&node, &mut socket, environment).await,
            Err(message) => {
                let _ = socket.deliver(message.into_bytes()).await;
                (CloseCode::SERVICE_OVERLOAD, "there is no session")
            }
        };
        socket.close(code, reason).await;
    })
}

/// Answers messages in order. Returns why the connection is closed.
async fn serve(
    node: &Node,
    socket: &mut Socket,
    mut environment: Environment,
) -> (CloseCode, &'static str) {
    loop {
        let ended = environment.interpreter().ended();
        let message = tokio::select! {
            biased;
            message = socket.next() => message,
            () = ended.cancelled() => {
                let reason =
                    if node.is_draining() { "the node ends" } else { "the session is over" };
                let message = error("SESSION_ERROR", reason, json!({}));
                let _ = socket.deliver(message.into_bytes()).await;
                return (CloseCode::GOING_AWAY, reason);
            }
        };
        let Some(message) = message else { break };
        let Some(Some(answer)) = socket.during(environment.answer(&message)).await else { break };
        if socket.deliver(answer.into_bytes()).await.is_none() {
            break;
        }
    }
    (CloseCode::NORMAL_CLOSURE, "")
}

/// A message of a client.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    #[serde(rename = "type")]
    kind: String,
    data: Option<Json>,
}

impl Environment {
    /// Answers a message; `None` if it closes the connection.
    async fn answer(&mut self, text: &[u8]) -> Option<String> {
        let decode = || count_values("the message", text).map(|_| serde_json::from_slice(text));
        let message = match in_turn(text.len(), decode).await {
            Ok(Ok(message)) => message,
            Err(problem) => return Some(Failed::Invalid(problem.text()).message()),
            Ok(Err(reason)) => {
                return Some(error("INVALID_JSON", &format!("Invalid JSON: {reason}"), json!({})));
            }
        };
        let Message { kind, data } = match read::<Message>(message) {
            Ok(message) => message,
            Err(failed) => return Some(failed.message()),
        };
        let missing = || Failed::Invalid("the object `data` is missing".to_owned());
        let answer = match kind.as_str() {
            "reset" => self.reset(data.unwrap_or_else(|| json!({}))).await.map(observation),
            "step" => match data.ok_or_else(missing) {
                Ok(data) => self.step(data, None).await.map(observation),
                Err(failed) => Err(failed),
            },
            "state" => self.state().map(|state| json!({"type": "state", "data": state})),
            "mcp" => Ok(json!({"type": "mcp", "data": no_tools(&data.unwrap_or_default())})),
            "close" => return None,
            other => {
                return Some(error(
                    "UNKNOWN_TYPE",
                    &format!("Unknown message type: {other}"),
                    json!({}),
                ));
            }
        };
        Some(answer.map_or_else(Failed::message, |answer| answer.to_string()))
    }
}

fn observation(observation: Observation) -> Json {
    json!({"type": "observation", "data": observation.json()})
}

fn error(code: &str, message: &str, more: Json) -> String {
    let mut data = more;
    data["message"] = message.into();
    data["code"] = code.into();
    json!({"type": "error", "data": data}).to_string()
}

/// Returns the message for a connection without an environment.
fn refused(node: &Node, tenant: &Tenant, refusal: Refusal) -> String {
    let load = node.load();
    let counts = match &refusal {
        Refusal::Full(most) => Some((load.sessions.min(*most), *most)),
        Refusal::Quota(_) => {
            let most = tenant.most_sessions(load.max_sessions);
            Some((most, most))
        }
        _ => None,
    };
    let code = match &refusal {
        Refusal::Draining => "SESSION_ERROR",
        _ if counts.is_some() => "CAPACITY_REACHED",
        _ => "FACTORY_ERROR",
    };
    let problem = Problem::from(refusal);
    let more = match counts {
        Some((active, most)) => json!({"active_sessions": active, "max_sessions": most}),
        None if code == "FACTORY_ERROR" => json!({"factory_name": "isolet"}),
        None => json!({}),
    };
    error(code, problem.detail(), more)
}

/// Answers an MCP call: these environments have no tools.
fn no_tools(request: &Json) -> Json {
    json!({
        "jsonrpc": "2.0",
        "id": request.get("id"),
        "error": {"code": METHOD_NOT_FOUND, "message": "the environment has no tools of MCP"},
    })
}

async fn reset(
    State(node): Served,
    credentials: Credentials,
    kind: Kind,
    body: RawBody,
) -> Result<DialectJson, Problem> {
    let data = given(&body).await?;
    let mut environment = Environment::start(kind, &node, &node.tenant(&credentials)?).await?;
    let shown = environment.reset(data).await.map_err(Failed::problem)?;
    Ok(DialectJson(shown.json()))
}

/// A step without a connection. Unknown fields are ignored.
#[derive(Deserialize)]
pub(super) struct StepRequest {
    action: Json,
    #[serde(default)]
    timeout_s: Option<f64>,
}

async fn step(
    State(node): Served,
    credentials: Credentials,
    kind: Kind,
    body: RawBody,
) -> Result<DialectJson, Problem> {
    let StepRequest { action, timeout_s } = read(given(&body).await?).map_err(Failed::problem)?;
    let mut environment = Environment::start(kind, &node, &node.tenant(&credentials)?).await?;
    let shown = environment.step(action, timeout_s).await.map_err(Failed::problem)?;
    Ok(DialectJson(shown.json()))
}

async fn state(
    State(node): Served,
    credentials: Credentials,
    kind: Kind,
) -> Result<DialectJson, Problem> {
    let environment = Environment::start(kind, &node, &node.tenant(&credentials)?).await?;
    Ok(DialectJson(environment.state().map_err(Failed::problem)?))
}

async fn call(body: RawBody) -> Result<DialectJson, Problem> {
    Ok(DialectJson(no_tools(&given(&body).await?)))
}

async fn health(State(node): Served, _kind: Kind) -> Response {
    if node.is_draining() {
        return Problem::draining().into_response();
    }
    DialectJson(json!({"status": "healthy"})).into_response()
}

/// Reads a JSON body. An empty body is an empty object.
async fn given(RawBody(body): &RawBody) -> Result<Json, Problem> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    in_turn(body.len(), || {
        count_values("the body", body)?;
        let given = serde_json::from_slice(body);
        given.map_err(|error| Problem::unreadable(format!("the body is no JSON: {error}")))
    })
    .await
}
