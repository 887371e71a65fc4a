//! The native routes that pause, copy and snapshot sessions.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use axum::extract::State;
use axum::http::StatusCode;
use isolet::Value;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::check_name;
use super::body::{ApiResponse, JsonBody, NoFields, PathParam};
use super::openapi::{self, Refusals};
use super::paths::{SessionPath, SnapshotPath};
use super::problem::Problem;
use super::sessions::{LifetimeRequest, created, shown};
use crate::service::node::{Credentials, Listed, Node, Snapshot};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new()
        .routes(routes!(pause_session))
        .routes(routes!(resume_session))
        .routes(routes!(fork_session))
        .routes(routes!(create_snapshot))
        .routes(routes!(list_snapshots))
        .routes(routes!(delete_snapshot))
}

/// Saves a session and ends it until it is resumed.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/pause",
    params(SessionPath),
    responses(
        (status = 200, description = "The paused session", body = openapi::Session),
        Refusals,
    ),
)]
async fn pause_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(NoFields {}): JsonBody<NoFields>,
) -> Result<ApiResponse, Problem> {
    node.pause(node.find(&credentials, &id)?).await?;
    answered(&node, &credentials, &id)
}

/// Resumes a paused session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/resume",
    params(SessionPath),
    request_body = LifetimeRequest,
    responses(
        (status = 200, description = "The resumed session", body = openapi::Session),
        Refusals,
    ),
)]
async fn resume_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(lifetime): JsonBody<LifetimeRequest>,
) -> Result<ApiResponse, Problem> {
    node.resume(node.find(&credentials, &id)?, lifetime.ttl).await?;
    answered(&node, &credentials, &id)
}

fn answered(node: &Node, credentials: &Credentials, id: &str) -> Result<ApiResponse, Problem> {
    let session = node.find(credentials, id)?;
    Ok(ApiResponse(StatusCode::OK, Value::Dict(shown(Listed::of(&session)))))
}

/// Copies a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/fork",
    params(SessionPath),
    request_body = LifetimeRequest,
    responses((status = 201, description = "The copy", body = openapi::NewSession), Refusals),
)]
async fn fork_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(lifetime): JsonBody<LifetimeRequest>,
) -> Result<ApiResponse, Problem> {
    let copy = node.fork(&node.find(&credentials, &id)?, lifetime.ttl).await?;
    Ok(ApiResponse(StatusCode::CREATED, Value::Dict(created(&node, &copy))))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
struct SnapshotRequest {
    /// What its owner calls it.
    name: Option<String>,
}

/// Creates a snapshot of a session, from which new sessions can start.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/snapshots",
    params(SessionPath),
    request_body = SnapshotRequest,
    responses((status = 201, description = "The snapshot", body = openapi::Snapshot), Refusals),
)]
async fn create_snapshot(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(SnapshotRequest { name }): JsonBody<SnapshotRequest>,
) -> Result<ApiResponse, Problem> {
    check_name("name", name.as_deref())?;
    let snapshot = node.snapshot(&node.find(&credentials, &id)?, name).await?;
    Ok(ApiResponse(StatusCode::CREATED, shown_snapshot(snapshot)))
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
    responses(
        (
            status = 200,
            description = "The key's snapshots, the oldest first",
            body = openapi::Snapshots,
        ),
        Refusals,
    ),
)]
async fn list_snapshots(
    State(node): Served,
    credentials: Credentials,
) -> Result<ApiResponse, Problem> {
    let tenant = node.tenant(&credentials)?;
    let all = node.snapshots(&tenant).into_iter().map(shown_snapshot).collect();
    Ok(ApiResponse(StatusCode::OK, Value::dict([("snapshots", Value::List(all))])))
}

/// Deletes a snapshot.
#[utoipa::path(
    delete,
    path = "/v1/snapshots/{id}",
    params(SnapshotPath),
    responses((status = 204, description = "The snapshot was deleted"), Refusals),
)]
async fn delete_snapshot(
    State(node): Served,
    credentials: Credentials,
    PathParam(SnapshotPath { id }): PathParam<SnapshotPath>,
) -> Result<StatusCode, Problem> {
    let tenant = node.tenant(&credentials)?;
    if node.remove_snapshot(&tenant, &id) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no snapshot `{id}`")))
    }
}
