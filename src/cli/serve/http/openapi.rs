//! The description of the native routes, `GET /openapi.json`, collected from the handlers, and the
//! shapes of their answers.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::service::node::Node;

/// What the description begins with.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "isolet",
        description = "A node: sessions of untrusted Python. Values have the form of JSON; see the \
                       documentation for those that JSON does not have.",
    ),
    components(schemas(Problem)),
    modifiers(&Keys),
    security((), ("bearer" = []), ("api_key" = []), ("session_token" = [])),
)]
pub(super) struct Description;

/// What proves who asks.
struct Keys;

impl Modify for Keys {
    fn modify(&self, api: &mut utoipa::openapi::OpenApi) {
        let Some(components) = &mut api.components else { return };
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer);
        let bearer = bearer.description(Some("A key of a tenant, or the token of a session"));
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer.build()));
        for (name, header, text) in [
            ("api_key", "X-API-Key", "A key of a tenant"),
            ("session_token", "X-Session-Token", "The token of a session"),
        ] {
            let value = ApiKeyValue::with_description(header, text);
            components.add_security_scheme(name, SecurityScheme::ApiKey(ApiKey::Header(value)));
        }
    }
}

/// Serves the description of the routes with them.
pub(super) fn described(routes: OpenApiRouter<Arc<Node>>) -> Router<Arc<Node>> {
    let (routes, mut description) = routes.split_for_parts();
    // A router's name of what may have slashes.
    let paths = std::mem::take(&mut description.paths.paths);
    let paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item));
    description.paths.paths = paths.collect();
    // What cannot be written would be a mistake in the description itself; a test reads it.
    let text: Arc<str> = description.to_json().unwrap_or_default().into();
    routes.route(
        "/openapi.json",
        get(async move || ([(CONTENT_TYPE, "application/json")], text.to_string()).into_response()),
    )
}

/// The refusals that every route may have.
pub(super) struct Refusals;

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let problem = || {
            let schema = RefOr::Ref(utoipa::openapi::Ref::from_schema_name("Problem"));
            let content = Content::new(Some(schema));
            ResponseBuilder::new().content("application/problem+json", content)
        };
        let answer = |text: &str| RefOr::T(problem().description(text).build());
        BTreeMap::from([
            ("4XX".to_owned(), answer("The request cannot be carried out as it is")),
            ("5XX".to_owned(), answer("The node is full, slow, or ends")),
        ])
    }
}

/// A refused request (RFC 9457).
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Problem {
    r#type: String,
    title: String,
    status: u16,
    /// What refuses, for programs.
    code: String,
    /// What has happened, for people.
    detail: String,
    /// What helps.
    hint: Option<String>,
}

/// A session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Session {
    /// The node's name, its start, and the session.
    id: String,
    /// Seconds since 1970.
    created_at: f64,
    /// For how many seconds it still lives.
    ttl: f64,
    /// What its creation has said.
    metadata: Option<serde_json::Value>,
    /// `true` if it is paused.
    is_paused: Option<bool>,
}

/// A new session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct NewSession {
    #[schema(inline)]
    #[serde(flatten)]
    session: Session,
    /// Whoever has it may use the session.
    token: String,
    /// The node's name.
    node: String,
}

/// The sessions of a key, the oldest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Sessions {
    sessions: Vec<Session>,
}

/// A snapshot of a session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Snapshot {
    id: String,
    /// What its owner calls it.
    name: Option<String>,
    /// The session that it was made of.
    session: String,
    /// Seconds since 1970.
    created_at: f64,
}

/// The snapshots of a key, the oldest first.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Snapshots {
    snapshots: Vec<Snapshot>,
}

/// The value of a variable.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct VariableValue {
    value: serde_json::Value,
}

/// The variables of a session.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Variables {
    variables: Vec<Variable>,
}

#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
struct Variable {
    name: String,
    r#type: String,
    repr: String,
}

/// What a run has done. What there is nothing of is left out.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct Execution {
    status: Status,
    /// The value of the last expression.
    value: Option<serde_json::Value>,
    repr: Option<String>,
    /// Why the value could not cross.
    value_error: Option<String>,
    /// The status of `sys.exit`.
    exit_code: Option<i64>,
    /// The `SystemExit` that it exited by.
    system_exit: Option<serde_json::Value>,
    exception: Option<serde_json::Value>,
    termination: Option<serde_json::Value>,
    stdout: Option<String>,
    stderr: Option<String>,
    displays: Option<Vec<serde_json::Value>>,
    files: Option<Vec<serde_json::Value>>,
    locals: Option<BTreeMap<String, String>>,
    usage: serde_json::Value,
    truncated: Option<BTreeMap<String, u64>>,
    /// `false` if the session has ended.
    session_alive: Option<bool>,
}

#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "a shape")]
enum Status {
    Completed,
    Submitted,
    Raised,
    Exited,
    Terminated,
}

/// How full a node is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "a shape")]
pub(super) struct NodeLoad {
    name: String,
    version: String,
    sessions: u64,
    max_sessions: u64,
    running: u64,
    waiting: u64,
    is_draining: bool,
}
