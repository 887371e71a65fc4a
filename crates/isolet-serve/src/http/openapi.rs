//! `GET /openapi.json`: the description of the native routes, collected from their handlers, and
//! the schemas of answers.

use std::collections::BTreeMap;
use std::ops::Not;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use isolet::Isolation;
use serde::Serialize;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{Content, RefOr, Response, ResponseBuilder};
use utoipa::{IntoResponses, Modify, OpenApi, ToSchema};
use utoipa_axum::router::OpenApiRouter;

pub(super) use isolet_service::core::Execution;
use isolet_service::core::{Plain, Variable};
use isolet_service::node::{Allowance, Listed, MostAllowed, Node, SessionState};

/// Metadata of the description.
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

/// Adds the authentication schemes.
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

/// Adds a route that serves the description of the routes.
pub(super) fn described(routes: OpenApiRouter<Arc<Node>>) -> Router<Arc<Node>> {
    let (routes, mut description) = routes.split_for_parts();
    // The router marks a wildcard parameter with an asterisk.
    let paths = std::mem::take(&mut description.paths.paths);
    let paths = paths.into_iter().map(|(path, item)| (path.replace("{*", "{"), item));
    description.paths.paths = paths.collect();
    // Serialising fails only for an invalid description, which a test would find.
    let text: Arc<str> = description.to_json().unwrap_or_default().into();
    routes.route(
        "/openapi.json",
        get(async move || ([(CONTENT_TYPE, "application/json")], text.to_string()).into_response()),
    )
}

/// The refusals that every route may return.
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
#[derive(Serialize, ToSchema)]
pub(super) struct Problem {
    pub(super) r#type: &'static str,
    pub(super) title: &'static str,
    pub(super) status: u16,
    /// The kind of refusal, for programs.
    pub(super) code: &'static str,
    /// The message, for people.
    pub(super) detail: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

/// A session.
#[derive(Serialize, ToSchema)]
pub(super) struct Session {
    /// The node's name, its start, and random characters.
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created_at: f64,
    /// The remaining lifetime, in seconds.
    pub(super) ttl: f64,
    pub(super) state: SessionState,
    /// The time that its code has run, in seconds.
    pub(super) run_time: f64,
    /// The most memory that its runs have used.
    pub(super) peak_memory_bytes: u64,
    /// The memory that it may use; 0 if it has ended.
    pub(super) max_memory_bytes: u64,
    /// `true` if it is paused.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    pub(super) is_paused: bool,
    /// `true` if it outlives the node's process.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    pub(super) durable: bool,
    /// `true` if it has ended with a run, whose result is kept.
    #[serde(skip_serializing_if = "Not::not")]
    #[schema(required = false)]
    pub(super) has_ended: bool,
    /// The metadata of its creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<serde_json::Value>)]
    pub(super) metadata: Option<Plain>,
}

impl From<Listed> for Session {
    fn from(session: Listed) -> Self {
        let Listed { id, created, left, state, is_durable, memory_bytes, used, metadata } = session;
        Self {
            id,
            created_at: since_1970(created),
            ttl: left.as_secs_f64(),
            state,
            run_time: used.run_time.as_secs_f64(),
            peak_memory_bytes: used.peak_memory_bytes,
            max_memory_bytes: memory_bytes,
            is_paused: state == SessionState::Paused,
            durable: is_durable,
            has_ended: state == SessionState::Ended,
            metadata: Some(metadata).filter(|Plain(metadata)| !metadata.is_none()),
        }
    }
}

/// A new session.
#[derive(Serialize, ToSchema)]
pub(super) struct NewSession {
    #[schema(inline)]
    #[serde(flatten)]
    pub(super) session: Session,
    /// Grants access to the session.
    pub(super) token: String,
    /// The node's name.
    pub(super) node: String,
}

/// The sessions of a key, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct Sessions {
    pub(super) sessions: Vec<Session>,
}

/// A snapshot of a session.
#[derive(Serialize, ToSchema)]
pub(super) struct Snapshot {
    pub(super) id: String,
    /// The session that it is a snapshot of.
    pub(super) session: String,
    /// Seconds since 1970.
    pub(super) created_at: f64,
    /// The name that its owner has given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<String>,
}

impl From<isolet_service::node::Snapshot> for Snapshot {
    fn from(snapshot: isolet_service::node::Snapshot) -> Self {
        let isolet_service::node::Snapshot { id, name, session, created } = snapshot;
        Self { id, session, created_at: since_1970(created), name }
    }
}

/// The snapshots of a key, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct Snapshots {
    pub(super) snapshots: Vec<Snapshot>,
}

/// The value of a variable.
#[derive(Serialize, ToSchema)]
pub(super) struct VariableValue {
    #[schema(value_type = serde_json::Value)]
    pub(super) value: Plain,
}

/// The variables of a session.
#[derive(Serialize, ToSchema)]
pub(super) struct Variables {
    pub(super) variables: Vec<Variable>,
}

/// A run of a durable session that is under way.
#[derive(Serialize, ToSchema)]
pub(super) struct RunUnderWay {
    /// Its number in its session.
    pub(super) run: u64,
}

/// A durable run in a session of its own, which has begun.
#[derive(Serialize, ToSchema)]
pub(super) struct BegunRun {
    /// The id of its session.
    pub(super) session: String,
    /// Gives access to this session alone.
    pub(super) token: String,
    /// Its number in its session.
    pub(super) run: u64,
}

/// What a node is, how full it is, and what it allows.
#[derive(Serialize, ToSchema)]
pub(super) struct NodeInfo {
    pub(super) name: String,
    pub(super) version: &'static str,
    /// The time since its start, in seconds.
    pub(super) uptime: f64,
    /// Where code runs: `process` or `thread`.
    #[schema(value_type = String)]
    pub(super) isolation: Isolation,
    /// Whether clients need a key.
    pub(super) needs_key: bool,
    pub(super) sessions: usize,
    pub(super) max_sessions: usize,
    pub(super) running: usize,
    pub(super) waiting: usize,
    pub(super) is_draining: bool,
    pub(super) tenant: TenantInfo,
    /// What a session may do without asking for it.
    pub(super) allowed: Allowance,
    /// The most that a session may ask for.
    pub(super) ceiling: MostAllowed,
}

/// The tenant of a key.
#[derive(Serialize, ToSchema)]
pub(super) struct TenantInfo {
    pub(super) name: String,
    pub(super) max_sessions: usize,
}

fn since_1970(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
