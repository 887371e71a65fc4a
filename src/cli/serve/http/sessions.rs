//! Sessions: create, list, look, renew, reset and end them; their variables and files.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolet::Value;
use serde::Deserialize;

use super::Who;
use super::body::{Answered, Given, variables};
use super::problem::Problem;
use crate::service::SessionCommand;
use crate::service::node::{Listed, NewSession, Node, Used};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/v1/sessions", get(list).post(create))
        .route("/v1/sessions/{id}", get(look).delete(end))
        .route("/v1/sessions/{id}/renew", post(renew))
        .route("/v1/sessions/{id}/reset", post(reset))
        .route("/v1/sessions/{id}/interrupt", post(interrupt))
        .route("/v1/sessions/{id}/variables", get(list_variables))
        .route(
            "/v1/sessions/{id}/variables/{name}",
            get(get_variable).put(set_variable).delete(delete_variable),
        )
        .route("/v1/sessions/{id}/files/{*path}", get(get_file).put(put_file).delete(remove_file))
}

/// What a new session is to be.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Wanted {
    policy: Value,
    inputs: Value,
    ttl_s: Option<f64>,
    metadata: Value,
}

impl Wanted {
    /// A session with this policy.
    pub(super) fn of(policy: Value) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(super) fn new_session(self) -> Result<NewSession, Problem> {
        let policy = match self.policy {
            Value::None => Value::Dict(Vec::new()),
            Value::Dict(items) => Value::Dict(items),
            other => {
                let kind = other.type_name();
                let detail = format!("`policy` is {kind}, and has to be an object");
                return Err(Problem::unreadable(detail));
            }
        };
        let inputs = variables(self.inputs)?;
        Ok(NewSession { policy, inputs, ttl: self.ttl_s, metadata: self.metadata })
    }
}

async fn create(
    State(node): Served,
    who: Who,
    Given(wanted): Given<Wanted>,
) -> Result<Answered, Problem> {
    let tenant = node.tenant(&who.0)?;
    let session = node.create(&tenant, wanted.new_session()?).await?;
    Ok(Answered(StatusCode::CREATED, Value::Dict(created(&node, &session))))
}

/// What the client of a new session learns of it.
pub(super) fn created(node: &Node, session: &Used) -> Vec<(Value, Value)> {
    let mut shown = shown(Listed::of(session));
    shown.push(("token".into(), node.token(session.handle()).into()));
    shown.push(("node".into(), node.name().into()));
    shown
}

async fn list(State(node): Served, who: Who) -> Result<Answered, Problem> {
    let tenant = node.tenant(&who.0)?;
    let sessions = node.list(&tenant).into_iter().map(|one| Value::Dict(shown(one)));
    let sessions = Value::List(sessions.collect());
    Ok(Answered(StatusCode::OK, Value::dict([("sessions", sessions)])))
}

async fn look(State(node): Served, who: Who, Path(id): Path<String>) -> Result<Answered, Problem> {
    let session = node.find(&who.0, &id)?;
    Ok(Answered(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

async fn end(State(node): Served, who: Who, Path(id): Path<String>) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    node.end(&session).await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Renewal {
    ttl_s: Option<f64>,
}

async fn renew(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
    Given(renewal): Given<Renewal>,
) -> Result<Answered, Problem> {
    let session = node.find(&who.0, &id)?;
    node.renew(&session, renewal.ttl_s)?;
    Ok(Answered(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

async fn reset(State(node): Served, who: Who, Path(id): Path<String>) -> Result<Answered, Problem> {
    let session = node.find(&who.0, &id)?;
    node.carry_out(&session, SessionCommand::Reset).await?;
    Ok(Answered(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

async fn interrupt(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    node.interrupt(&session).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn list_variables(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
) -> Result<Answered, Problem> {
    let session = node.find(&who.0, &id)?;
    let variables = node.carry_out(&session, SessionCommand::Variables).await?;
    Ok(Answered(StatusCode::OK, Value::dict([("variables", variables)])))
}

async fn get_variable(
    State(node): Served,
    who: Who,
    Path((id, name)): Path<(String, String)>,
) -> Result<Answered, Problem> {
    let session = node.find(&who.0, &id)?;
    let found = node.carry_out(&session, SessionCommand::Get { name: name.clone() }).await?;
    match found {
        Value::List(mut items) if items.len() == 1 => {
            Ok(Answered(StatusCode::OK, Value::dict([("value", items.remove(0))])))
        }
        _ => Err(Problem::nothing(format!("there is no variable `{name}`"))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewValue {
    value: Value,
}

async fn set_variable(
    State(node): Served,
    who: Who,
    Path((id, name)): Path<(String, String)>,
    Given(new): Given<NewValue>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    let variables = vec![(name, new.value)];
    node.carry_out(&session, SessionCommand::Set { variables }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn delete_variable(
    State(node): Served,
    who: Who,
    Path((id, name)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    let was = node.carry_out(&session, SessionCommand::Delete { name: name.clone() }).await?;
    if was == Value::Bool(true) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no variable `{name}`")))
    }
}

async fn get_file(
    State(node): Served,
    who: Who,
    Path((id, path)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let session = node.find(&who.0, &id)?;
    let path = format!("/{path}");
    let found = node.carry_out(&session, SessionCommand::GetFile { path: path.clone() }).await?;
    match found {
        Value::Bytes(bytes) => {
            Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response())
        }
        _ => Err(Problem::nothing(format!("there is no file `{path}`"))),
    }
}

async fn put_file(
    State(node): Served,
    who: Who,
    Path((id, path)): Path<(String, String)>,
    contents: Bytes,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    let (path, contents) = (format!("/{path}"), contents.to_vec());
    node.carry_out(&session, SessionCommand::PutFile { path, contents }).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn remove_file(
    State(node): Served,
    who: Who,
    Path((id, path)): Path<(String, String)>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&who.0, &id)?;
    let path = format!("/{path}");
    let was = node.carry_out(&session, SessionCommand::RemoveFile { path: path.clone() }).await?;
    if was == Value::Bool(true) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no file `{path}`")))
    }
}

/// How full the node is.
pub(super) async fn node(State(node): Served, who: Who) -> Result<Answered, Problem> {
    node.tenant(&who.0)?;
    let load = node.load();
    let count = |number: usize| Value::from(i64::try_from(number).unwrap_or(i64::MAX));
    let answer = Value::dict([
        ("name", node.name().into()),
        ("version", env!("CARGO_PKG_VERSION").into()),
        ("sessions", count(load.sessions)),
        ("max_sessions", count(load.max_sessions)),
        ("running", count(load.running)),
        ("waiting", count(load.waiting)),
        ("is_draining", node.is_draining().into()),
    ]);
    Ok(Answered(StatusCode::OK, answer))
}

fn shown(session: Listed) -> Vec<(Value, Value)> {
    let since = session.created.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut fields = vec![
        ("id".into(), session.id.into()),
        ("created_at".into(), since.as_secs_f64().into()),
        ("ttl_s".into(), session.left.as_secs_f64().into()),
    ];
    if !session.metadata.is_none() {
        fields.push(("metadata".into(), session.metadata));
    }
    fields
}
