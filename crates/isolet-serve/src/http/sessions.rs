//! Sessions: create, list, get, extend, reset and delete them; their variables and files.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use isolet::Value;
use serde::Deserialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::IdempotencyKey;
use super::answers::{check_size, checked};
use super::body::{ApiResponse, JsonBody, NoFields, PathParam, RawBody, variables};
use super::openapi::{self, Refusals};
use super::paths::{FilePath, SessionPath, VariablePath};
use super::problem::Problem;
use crate::http::credentials::Credentials;
use isolet_service::core::{Command, Plain, Policy};
use isolet_service::node::{Durability, Listed, NewSession, Node, SessionLease};

type Served = State<Arc<Node>>;

pub(super) fn routes() -> OpenApiRouter<Arc<Node>> {
    OpenApiRouter::new()
        .routes(routes!(list_sessions, create_session))
        .routes(routes!(get_session, delete_session))
        .routes(routes!(extend_session))
        .routes(routes!(reset_session))
        .routes(routes!(interrupt_session))
        .routes(routes!(list_variables))
        .routes(routes!(get_variable, set_variable, delete_variable))
        .routes(routes!(get_file, put_file, delete_file))
        .routes(routes!(get_node))
}

/// The maximum size of a session's metadata, as JSON. It stays in memory for the session's
/// lifetime.
pub(super) const MAX_METADATA_BYTES: u64 = 16 << 10;

/// The maximum size of a policy with its tools, as JSON.
pub(super) const MAX_POLICY_BYTES: u64 = 1 << 20;

/// A new session.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct SessionRequest {
    /// The policy of its code.
    #[schema(value_type = Policy)]
    policy: Value,
    /// Its initial variables.
    #[schema(value_type = Object)]
    inputs: Value,
    /// Its lifetime, in seconds.
    ttl: Option<f64>,
    /// Any value, returned with the session.
    #[schema(value_type = serde_json::Value)]
    metadata: Value,
    /// The snapshot to start from.
    snapshot: Option<String>,
    /// Whether it outlives the node's process: the node goes on with it, and with its run, when it
    /// is started again.
    durable: bool,
}

impl SessionRequest {
    /// Creates a request with this policy.
    pub(super) fn of(policy: Value) -> Self {
        Self { policy, ..Self::default() }
    }

    pub(super) fn new_session(self) -> Result<NewSession, Problem> {
        let Self { policy, inputs, ttl, metadata, snapshot, durable } = self;
        let policy = match policy {
            Value::None => Value::Dict(Vec::new()),
            Value::Dict(items) => Value::Dict(items),
            other => {
                let kind = other.type_name();
                let detail = format!("`policy` is {kind}, and has to be an object");
                return Err(Problem::unreadable(detail));
            }
        };
        let (policy, metadata) = (Plain(policy), Plain(metadata));
        check_size("policy", &policy, MAX_POLICY_BYTES)?;
        check_size("metadata", &metadata, MAX_METADATA_BYTES)?;
        let (policy, inputs) = (Policy::read(policy.0)?, variables(inputs)?);
        let durable = durable.then_some(Durability::Session);
        Ok(NewSession { policy, inputs, ttl, metadata, snapshot, durable, ..NewSession::default() })
    }
}

/// Starts a session.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    params(
        ("Idempotency-Key" = Option<String>, Header, description = "Finds the same session again"),
    ),
    request_body = SessionRequest,
    responses(
        (status = 201, description = "The new session", body = openapi::NewSession),
        Refusals,
    ),
)]
async fn create_session(
    State(node): Served,
    credentials: Credentials,
    IdempotencyKey(key): IdempotencyKey,
    JsonBody(request): JsonBody<SessionRequest>,
) -> Result<ApiResponse<openapi::NewSession>, Problem> {
    let tenant = node.tenant(&credentials)?;
    let session = node.create(&tenant, request.new_session()?, key.as_deref()).await?;
    Ok(ApiResponse(StatusCode::CREATED, created(&node, &session)))
}

/// Describes a new session to its client.
pub(super) fn created(node: &Node, session: &SessionLease) -> openapi::NewSession {
    openapi::NewSession {
        session: Listed::of(session).into(),
        token: node.token(session.handle()),
        node: node.name().to_owned(),
    }
}

/// Lists the sessions of a key.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    responses(
        (
            status = 200,
            description = "The key's sessions, the oldest first",
            body = openapi::Sessions,
        ),
        Refusals,
    ),
)]
async fn list_sessions(
    State(node): Served,
    credentials: Credentials,
) -> Result<ApiResponse<openapi::Sessions>, Problem> {
    let tenant = node.tenant(&credentials)?;
    let sessions = node.list_all(&tenant).into_iter().map(openapi::Session::from).collect();
    Ok(ApiResponse(StatusCode::OK, openapi::Sessions { sessions }))
}

/// Returns a session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    params(SessionPath),
    responses((status = 200, description = "The session", body = openapi::Session), Refusals),
)]
async fn get_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
) -> Result<ApiResponse<openapi::Session>, Problem> {
    Ok(ApiResponse(StatusCode::OK, node.describe(&credentials, &id)?.into()))
}

/// Ends a session, or removes the result of one that has ended with a run.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    params(SessionPath),
    responses((status = 204, description = "The session was ended"), Refusals),
)]
async fn delete_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
) -> Result<StatusCode, Problem> {
    node.delete(&credentials, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct LifetimeRequest {
    /// The new lifetime from now, in seconds.
    pub(super) ttl: Option<f64>,
}

/// Extends or shortens the lifetime of a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/renew",
    params(SessionPath),
    request_body = LifetimeRequest,
    responses(
        (status = 200, description = "The session with its new lifetime", body = openapi::Session),
        Refusals,
    ),
)]
async fn extend_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(lifetime): JsonBody<LifetimeRequest>,
) -> Result<ApiResponse<openapi::Session>, Problem> {
    let session = node.find(&credentials, &id)?;
    node.renew(&session, lifetime.ttl)?;
    Ok(ApiResponse(StatusCode::OK, Listed::of(&session).into()))
}

/// Resets a session: replaces its interpreter by a new one.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/reset",
    params(SessionPath),
    responses(
        (
            status = 200,
            description = "The session, with a fresh interpreter",
            body = openapi::Session,
        ),
        Refusals,
    ),
)]
async fn reset_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(NoFields {}): JsonBody<NoFields>,
) -> Result<ApiResponse<openapi::Session>, Problem> {
    let session = node.find(&credentials, &id)?;
    node.reset(&session).await?;
    Ok(ApiResponse(StatusCode::OK, Listed::of(&session).into()))
}

/// Interrupts the run of a session.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/interrupt",
    params(SessionPath),
    responses((status = 204, description = "The interrupt was sent"), Refusals),
)]
async fn interrupt_session(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
    JsonBody(NoFields {}): JsonBody<NoFields>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    session.session().interrupt()?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the variables of a session.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/variables",
    params(SessionPath),
    responses(
        (status = 200, description = "The session's variables", body = openapi::Variables),
        Refusals,
    ),
)]
async fn list_variables(
    State(node): Served,
    credentials: Credentials,
    PathParam(SessionPath { id }): PathParam<SessionPath>,
) -> Result<ApiResponse<openapi::Variables>, Problem> {
    let session = node.find(&credentials, &id)?;
    let variables = node.carry_out(&session, |reply| Command::Variables { reply }).await?;
    Ok(ApiResponse(StatusCode::OK, checked(&node, openapi::Variables { variables })?))
}

/// Returns a variable.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/variables/{name}",
    params(VariablePath),
    responses(
        (status = 200, description = "The variable's value", body = openapi::VariableValue),
        Refusals,
    ),
)]
async fn get_variable(
    State(node): Served,
    credentials: Credentials,
    PathParam(VariablePath { id, name }): PathParam<VariablePath>,
) -> Result<ApiResponse<openapi::VariableValue>, Problem> {
    let session = node.find(&credentials, &id)?;
    let get = |reply| Command::Get { name: name.clone(), reply };
    let found = node.carry_out(&session, get).await?;
    let value = found.ok_or_else(|| Problem::nothing(format!("there is no variable `{name}`")))?;
    let answer = openapi::VariableValue { value: Plain(value) };
    Ok(ApiResponse(StatusCode::OK, checked(&node, answer)?))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct VariableRequest {
    #[schema(value_type = serde_json::Value)]
    value: Value,
}

/// Sets a variable.
#[utoipa::path(
    put,
    path = "/v1/sessions/{id}/variables/{name}",
    params(VariablePath),
    request_body = VariableRequest,
    responses((status = 204, description = "The variable was set"), Refusals),
)]
async fn set_variable(
    State(node): Served,
    credentials: Credentials,
    PathParam(VariablePath { id, name }): PathParam<VariablePath>,
    JsonBody(new): JsonBody<VariableRequest>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    let variables = vec![(name, new.value)];
    node.carry_out(&session, |reply| Command::Set { variables, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Deletes a variable.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}/variables/{name}",
    params(VariablePath),
    responses((status = 204, description = "The variable was deleted"), Refusals),
)]
async fn delete_variable(
    State(node): Served,
    credentials: Credentials,
    PathParam(VariablePath { id, name }): PathParam<VariablePath>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    let delete = |reply| Command::Delete { name: name.clone(), reply };
    if node.carry_out(&session, delete).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no variable `{name}`")))
    }
}

/// Returns the bytes of a file.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/files/{*path}",
    params(FilePath),
    responses(
        (
            status = 200,
            description = "The file's bytes",
            content_type = "application/octet-stream", body = Vec<u8>,
        ),
        Refusals,
    ),
)]
async fn get_file(
    State(node): Served,
    credentials: Credentials,
    PathParam(FilePath { id, path }): PathParam<FilePath>,
) -> Result<Response, Problem> {
    let session = node.find(&credentials, &id)?;
    let path = format!("/{path}");
    let get = |reply| Command::GetFile { path: path.clone(), reply };
    match node.carry_out(&session, get).await? {
        Some(bytes) => Ok(([(CONTENT_TYPE, "application/octet-stream")], bytes).into_response()),
        None => Err(Problem::nothing(format!("there is no file `{path}`"))),
    }
}

/// Writes a file.
#[utoipa::path(
    put,
    path = "/v1/sessions/{id}/files/{*path}",
    params(FilePath),
    request_body(content = Vec<u8>, content_type = "application/octet-stream"),
    responses((status = 204, description = "The file was written"), Refusals),
)]
async fn put_file(
    State(node): Served,
    credentials: Credentials,
    PathParam(FilePath { id, path }): PathParam<FilePath>,
    RawBody(contents): RawBody,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    let (path, contents) = (format!("/{path}"), contents.to_vec());
    node.carry_out(&session, |reply| Command::PutFile { path, contents, reply }).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Removes a file.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}/files/{*path}",
    params(FilePath),
    responses((status = 204, description = "The file was deleted"), Refusals),
)]
async fn delete_file(
    State(node): Served,
    credentials: Credentials,
    PathParam(FilePath { id, path }): PathParam<FilePath>,
) -> Result<StatusCode, Problem> {
    let session = node.find(&credentials, &id)?;
    let path = format!("/{path}");
    let remove = |reply| Command::RemoveFile { path: path.clone(), reply };
    if node.carry_out(&session, remove).await? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::nothing(format!("there is no file `{path}`")))
    }
}

/// Reports what the node is, how full it is, and what it allows.
#[utoipa::path(
    get,
    path = "/v1/node",
    responses(
        (status = 200, description = "What the node is and allows", body = openapi::NodeInfo),
        Refusals,
    ),
)]
async fn get_node(
    State(node): Served,
    credentials: Credentials,
) -> Result<ApiResponse<openapi::NodeInfo>, Problem> {
    let tenant = node.tenant(&credentials)?;
    let load = node.load();
    let (allowed, ceiling) = node.allowed(&tenant)?;
    let answer = openapi::NodeInfo {
        name: node.name().to_owned(),
        version: env!("CARGO_PKG_VERSION"),
        uptime: node.uptime().as_secs_f64(),
        isolation: node.isolation(),
        needs_key: !node.is_open(),
        sessions: load.sessions,
        max_sessions: load.max_sessions,
        running: load.running,
        waiting: load.waiting,
        is_draining: node.is_draining(),
        tenant: openapi::TenantInfo {
            max_sessions: node.most_sessions(&tenant),
            name: tenant.name.clone(),
        },
        allowed,
        ceiling,
    };
    Ok(ApiResponse(StatusCode::OK, answer))
}
