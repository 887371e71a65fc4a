//! Sessions that are paused, copied and kept: their native routes.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{delete, get, post};
use isolet::Value;
use serde::Deserialize;

use super::Who;
use super::body::{Answered, Given};
use super::problem::Problem;
use super::sessions::{Renewal, created, shown};
use crate::service::node::{Listed, Node, Snapshot};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/v1/sessions/{id}/pause", post(pause))
        .route("/v1/sessions/{id}/resume", post(resume))
        .route("/v1/sessions/{id}/fork", post(fork))
        .route("/v1/sessions/{id}/snapshots", post(keep))
        .route("/v1/snapshots", get(list))
        .route("/v1/snapshots/{id}", delete(forget))
}

async fn pause(State(node): Served, who: Who, Path(id): Path<String>) -> Result<Answered, Problem> {
    node.pause(node.find(&who.0, &id)?).await?;
    answered(&node, &who, &id)
}

async fn resume(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
    Given(renewal): Given<Renewal>,
) -> Result<Answered, Problem> {
    node.resume(node.find(&who.0, &id)?, renewal.ttl_s).await?;
    answered(&node, &who, &id)
}

fn answered(node: &Node, who: &Who, id: &str) -> Result<Answered, Problem> {
    let session = node.find(&who.0, id)?;
    Ok(Answered(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

async fn fork(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
    Given(renewal): Given<Renewal>,
) -> Result<Answered, Problem> {
    let copy = node.fork(&node.find(&who.0, &id)?, renewal.ttl_s).await?;
    Ok(created(&node, &copy))
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Name {
    name: Option<String>,
}

async fn keep(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
    Given(Name { name }): Given<Name>,
) -> Result<Answered, Problem> {
    let snapshot = node.snapshot(&node.find(&who.0, &id)?, name).await?;
    Ok(Answered(StatusCode::CREATED, shown_snapshot(snapshot)))
}

fn shown_snapshot(snapshot: Snapshot) -> Value {
    let since = snapshot.created.duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut fields = vec![
        ("id".into(), snapshot.id.into()),
        ("session".into(), snapshot.session.into()),
        ("created_at".into(), since.as_secs_f64().into()),
    ];
    if let Some(name) = snapshot.name {
        fields.push(("name".into(), name.into()));
    }
    Value::Dict(fields)
}

async fn list(State(node): Served, who: Who) -> Result<Answered, Problem> {
    let tenant = node.tenant(&who.0)?;
    let all = node.snapshots(&tenant).into_iter().map(shown_snapshot).collect();
    Ok(Answered(StatusCode::OK, Value::dict([("snapshots", Value::List(all))])))
}

async fn forget(
    State(node): Served,
    who: Who,
    Path(id): Path<String>,
) -> Result<StatusCode, Problem> {
    let tenant = node.tenant(&who.0)?;
    if node.remove_snapshot(&tenant, &id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no snapshot `{id}`")))
    }
}
