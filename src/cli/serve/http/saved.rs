//! Sessions that are paused, copied and kept: their native routes.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::extract::State;
use axum::http::StatusCode;
use isolet::Value;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::Who;
use super::answers::check_name;
use super::body::{Answered, Given, Part};
use super::openapi::{self, Refusals};
use super::problem::Problem;
use super::sessions::{Renewal, created, shown};
use crate::service::node::{Listed, Node, Snapshot};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new()
        .routes(routes!(pause))
        .routes(routes!(resume))
        .routes(routes!(fork))
        .routes(routes!(keep))
        .routes(routes!(list))
        .routes(routes!(forget))
}

/// Saves a session and ends it until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/pause",
    params(
        ("id" = String, Path, description = "The session's id"),
    ),
    responses((status = 200, body = openapi::Session), Refusals),
)]
async fn pause(State(node): Served, who: Who, Part(id): Part<String>) -> Result<Answered, Problem> {
    node.pause(node.find(&who.0, &id)?).await?;
    answered(&node, &who, &id)
}

/// Has a paused session go on.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/resume",
    params(
        ("id" = String, Path, description = "The session's id"),
    ),
    request_body = Renewal,
    responses((status = 200, body = openapi::Session), Refusals),
)]
async fn resume(
    State(node): Served,
    who: Who,
    Part(id): Part<String>,
    Given(renewal): Given<Renewal>,
) -> Result<Answered, Problem> {
    node.resume(node.find(&who.0, &id)?, renewal.ttl_s).await?;
    answered(&node, &who, &id)
}

fn answered(node: &Node, who: &Who, id: &str) -> Result<Answered, Problem> {
    let session = node.find(&who.0, id)?;
    Ok(Answered(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

/// Makes a session that has all that this one has.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/fork",
    params(
        ("id" = String, Path, description = "The session's id"),
    ),
    request_body = Renewal,
    responses((status = 201, body = openapi::NewSession), Refusals),
)]
async fn fork(
    State(node): Served,
    who: Who,
    Part(id): Part<String>,
    Given(renewal): Given<Renewal>,
) -> Result<Answered, Problem> {
    let copy = node.fork(&node.find(&who.0, &id)?, renewal.ttl_s).await?;
    Ok(Answered(StatusCode::CREATED, Value::Dict(created(&node, &copy))))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct Name {
    /// What its owner calls it.
    name: Option<String>,
}

/// Keeps what a session has, so that others can begin with it.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/snapshots",
    params(
        ("id" = String, Path, description = "The session's id"),
    ),
    request_body = Name,
    responses((status = 201, body = openapi::Snapshot), Refusals),
)]
async fn keep(
    State(node): Served,
    who: Who,
    Part(id): Part<String>,
    Given(Name { name }): Given<Name>,
) -> Result<Answered, Problem> {
    check_name("name", name.as_deref())?;
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

/// Lists the snapshots of a key.
#[utoipa::path(
    get,
    path = "/v1/snapshots",
    responses((status = 200, body = openapi::Snapshots), Refusals),
)]
async fn list(State(node): Served, who: Who) -> Result<Answered, Problem> {
    let tenant = node.tenant(&who.0)?;
    let all = node.snapshots(&tenant).into_iter().map(shown_snapshot).collect();
    Ok(Answered(StatusCode::OK, Value::dict([("snapshots", Value::List(all))])))
}

/// Removes a snapshot.
#[utoipa::path(
    delete,
    path = "/v1/snapshots/{id}",
    params(
        ("id" = String, Path, description = "The snapshot's id"),
    ),
    responses((status = 204), Refusals),
)]
async fn forget(
    State(node): Served,
    who: Who,
    Part(id): Part<String>,
) -> Result<StatusCode, Problem> {
    let tenant = node.tenant(&who.0)?;
    if node.remove_snapshot(&tenant, &id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no snapshot `{id}`")))
    }
}
