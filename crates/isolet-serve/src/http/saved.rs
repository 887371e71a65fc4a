//! The native routes that pause, copy and snapshot sessions.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::answers::check_name;
use super::body::{ApiResponse, JsonBody, NoFields, PathParam};
use super::openapi::{self, Refusals};
use super::paths::{SessionPath, SnapshotPath};
use super::problem::Problem;
use super::sessions::{LifetimeRequest, created};
use crate::http::credentials::Credentials;
use isolet_service::node::{Listed, Node};

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
) -> Result<ApiResponse<openapi::Session>, Problem> {
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
) -> Result<ApiResponse<openapi::Session>, Problem> {
    node.resume(node.find(&credentials, &id)?, lifetime.ttl).await?;
    answered(&node, &credentials, &id)
}

fn answered(
    node: &Node,
    credentials: &Credentials,
    id: &str,
) -> Result<ApiResponse<openapi::Session>, Problem> {
    let session = node.find(credentials, id)?;
    Ok(ApiResponse(StatusCode::OK, Listed::of(&session).into()))
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
) -> Result<ApiResponse<openapi::NewSession>, Problem> {
    let copy = node.fork(&node.find(&credentials, &id)?, lifetime.ttl).await?;
    Ok(ApiResponse(StatusCode::CREATED, created(&node, &copy)))
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SnapshotRequest {
    /// The name of the snapshot.
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
) -> Result<ApiResponse<openapi::Snapshot>, Problem> {
    check_name("name", name.as_deref())?;
    let snapshot = node.snapshot(&node.find(&credentials, &id)?, name).await?;
    Ok(ApiResponse(StatusCode::CREATED, snapshot.into()))
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
) -> Result<ApiResponse<openapi::Snapshots>, Problem> {
    let tenant = node.tenant(&credentials)?;
    let snapshots = node.snapshots(&tenant).into_iter().map(openapi::Snapshot::from).collect();
    Ok(ApiResponse(StatusCode::OK, openapi::Snapshots { snapshots }))
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
