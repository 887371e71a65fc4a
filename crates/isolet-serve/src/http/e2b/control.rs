//! E2B's API: creates, lists, pauses and ends sandboxes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery, State};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use isolet::Value;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::{E2bBody, ENVD_VERSION, Failed};
use crate::http::IdempotencyKey;
use crate::http::answers::check_size;
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use crate::http::network::{EVERYTHING, Network};
use crate::http::problem::Problem;
use crate::http::sessions::{MAX_METADATA_BYTES, MAX_POLICY_BYTES};
use isolet_service::core::{Plain, Policy};
use isolet_service::node::{
    ImplicitGrants, Listed, MOST_SECONDS, NewSession, Node, Refusal, SessionLease,
};

/// The default lifetime of a sandbox, in seconds.
const DEFAULT_SECONDS: f64 = 300.0;

/// The maximum number of sandboxes in a list.
const MAX_LISTED: usize = 100;

/// The template of all sandboxes.
const TEMPLATE: &str = "isolet";

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    Router::new()
        .route("/sandboxes", get(list).post(create))
        .route("/v2/sandboxes", get(list).post(create))
        .route("/sandboxes/{id}", get(look).delete(kill))
        .route("/sandboxes/{id}/timeout", post(set_timeout))
        .route("/sandboxes/{id}/refreshes", post(refresh))
        .route("/sandboxes/{id}/connect", post(connect))
        .route("/v2/sandboxes/{id}/connect", post(connect))
        .route("/sandboxes/{id}/pause", post(pause))
        .route("/sandboxes/{id}/resume", post(connect))
        .route("/sandboxes/{id}/fork", post(fork))
        .route("/sandboxes/{id}/metrics", get(metrics))
        .route("/sandboxes/{id}/network", put(set_network))
}

/// A sandbox to create. Unknown fields are ignored, because clients add fields with each version.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::http) struct SandboxRequest {
    #[serde(rename = "templateID")]
    template_id: Option<String>,
    timeout: Option<f64>,
    auto_pause: Option<bool>,
    auto_pause_memory: Option<bool>,
    auto_resume: Option<AutoResume>,
    #[serde(rename = "allow_internet_access")]
    allow_internet_access: Option<bool>,
    network: Option<BTreeMap<String, Value>>,
    metadata: Value,
    env_vars: Option<BTreeMap<String, String>>,
    mcp: Value,
    iam: Value,
    volume_mounts: Value,
}

#[derive(Deserialize)]
struct AutoResume {
    #[serde(default)]
    enabled: bool,
}

impl SandboxRequest {
    fn new_session(self, node: &Node) -> Result<NewSession, Failed> {
        for (name, value) in
            [("mcp", &self.mcp), ("iam", &self.iam), ("volumeMounts", &self.volume_mounts)]
        {
            if has_something(value) {
                return Err(unsupported(format!("a sandbox of isolet has no `{name}`")));
            }
        }
        if self.auto_pause_memory == Some(false) {
            return Err(no_memory());
        }
        let mut network = network(self.network.unwrap_or_default())?;
        if self.allow_internet_access == Some(false) {
            network.has_internet = false;
        }
        let has_internet = network.has_internet;
        let env = self.env_vars.unwrap_or_default();
        check_size("envVars", &env, MAX_POLICY_BYTES)?;
        let rules = network.rules();
        check_size("network", &rules, MAX_POLICY_BYTES)?;
        let policy = Policy::of_environment(env, rules);
        let metadata = Plain(self.metadata);
        check_size("metadata", &metadata, MAX_METADATA_BYTES)?;
        Ok(NewSession {
            policy,
            grants: ImplicitGrants {
                public_net: has_internet,
                packages: true,
                run_time: Some(MOST_SECONDS),
                most_run_time: Some(MOST_SECONDS),
            },
            ttl: Some(self.timeout.unwrap_or(DEFAULT_SECONDS)),
            pauses_at_end: self.auto_pause.unwrap_or_default(),
            resumes_on_use: self.auto_resume.is_some_and(|resume| resume.enabled),
            metadata,
            // Other templates are ignored: the node's policy defines sandboxes.
            snapshot: self.template_id.filter(|id| node.is_id(id)),
            ..NewSession::default()
        })
    }
}

/// Reads the network access of a sandbox.
fn network(given: BTreeMap<String, Value>) -> Result<Network, Failed> {
    let mut network = Network { has_internet: true, allowed: Vec::new(), denied: Vec::new() };
    for (name, value) in given {
        match name.as_str() {
            "allowOut" => network.allowed = rules(&name, value)?,
            "denyOut" => network.denied = rules(&name, value)?,
            // Sandboxes accept no connections.
            "allowPublicTraffic" | "maskRequestHost" => {}
            _ if !has_something(&value) => {}
            _ => return Err(unsupported(format!("isolet has no `network.{name}`"))),
        }
    }
    let is_all = |rule: &String| EVERYTHING.contains(&rule.as_str());
    // As with E2B, explicit rules hold even if everything else is denied.
    if network.denied.iter().any(is_all) {
        network.has_internet = network.allowed.iter().any(is_all);
    }
    network.allowed.retain(|rule| !is_all(rule));
    network.denied.retain(|rule| !is_all(rule));
    Ok(network)
}

fn rules(name: &str, value: Value) -> Result<Vec<String>, Failed> {
    let rules: Result<Option<Vec<String>>, _> = isolet::from_value(value);
    let rules = rules
        .map_err(|_| Failed::unreadable(format!("`network.{name}` has to be a list of strings")))?;
    Ok(rules.unwrap_or_default())
}

pub(in crate::http) fn has_something(value: &Value) -> bool {
    match value {
        Value::None | Value::Bool(false) => false,
        Value::List(items) => !items.is_empty(),
        Value::Dict(items) => !items.is_empty(),
        _ => true,
    }
}

fn unsupported(text: impl Into<String>) -> Failed {
    Failed(Problem::unsupported(text).with_status(StatusCode::BAD_REQUEST))
}

pub(super) fn no_memory() -> Failed {
    unsupported("isolet saves a sandbox with its memory only: leave `memory` out")
}

async fn create(
    State(node): Served,
    credentials: Credentials,
    IdempotencyKey(key): IdempotencyKey,
    E2bBody(wanted): E2bBody<SandboxRequest>,
) -> Result<Response, Failed> {
    let tenant = node.tenant(&credentials).map_err(Failed::control)?;
    let new = wanted.new_session(&node)?;
    let session = node.create(&tenant, new, key.as_deref()).await.map_err(Failed::control)?;
    Ok((StatusCode::CREATED, DialectJson(created(&node, &session))).into_response())
}

/// A created sandbox, with the data that its client needs.
fn created(node: &Node, session: &SessionLease) -> AnyJson {
    let token = node.token(session.handle());
    json!({
        "templateID": TEMPLATE,
        "sandboxID": session.handle(),
        "clientID": node.name(),
        "envdVersion": ENVD_VERSION,
        "envdAccessToken": token,
        // Some requests to a sandbox send only this token.
        "trafficAccessToken": token,
        "domain": node.domain().map(ToString::to_string),
    })
}

fn find(node: &Node, credentials: &Credentials, id: &str) -> Result<SessionLease, Failed> {
    node.find(credentials, id).map_err(Failed::control)
}

async fn look(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<DialectJson, Failed> {
    let session = find(&node, &credentials, &id)?;
    let mut shown = shown(&node, &Listed::of(&session));
    shown["envdAccessToken"] = node.token(session.handle()).into();
    shown["allowInternetAccess"] = session.session().policy().has_public_net().into();
    shown["domain"] = node.domain().map(ToString::to_string).into();
    shown["lifecycle"] = json!({
        "onTimeout": if session.session().pauses_at_end() { "pause" } else { "kill" },
        "autoResume": session.session().resumes_on_use(),
    });
    Ok(DialectJson(shown))
}

fn shown(node: &Node, session: &Listed) -> AnyJson {
    json!({
        "templateID": TEMPLATE,
        "sandboxID": session.id,
        "clientID": node.name(),
        "startedAt": time(session.created),
        "endAt": time(SystemTime::now() + session.left),
        "cpuCount": 1,
        "memoryMB": session.memory_bytes >> 20,
        // Files are in memory.
        "diskSizeMB": 0,
        "envdVersion": ENVD_VERSION,
        "state": if session.is_paused() { "paused" } else { "running" },
        "metadata": texts(&session.metadata.0),
    })
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// Returns the texts of a dict. E2B's metadata has only texts.
fn texts(metadata: &Value) -> BTreeMap<&str, &str> {
    let items = metadata.as_dict().unwrap_or_default().iter();
    items.filter_map(|(name, value)| Some((name.as_str()?, value.as_str()?))).collect()
}

/// The filter of a list.
struct Filter {
    metadata: Vec<(String, String)>,
    states: Option<String>,
    is_ascending: bool,
    first: usize,
    most: usize,
}

impl Filter {
    fn read(query: &str) -> Result<Self, Failed> {
        let mut filter = Self {
            metadata: Vec::new(),
            states: None,
            is_ascending: false,
            first: 0,
            most: MAX_LISTED,
        };
        let number = |name: &str, text: &str| {
            text.parse::<usize>().map_err(|_| {
                Failed::unreadable(format!("`{name}` is {text:?}, and has to be a number"))
            })
        };
        for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
            match &*name {
                "metadata" => {
                    // Names and values are percent-encoded twice.
                    let pairs = url::form_urlencoded::parse(value.as_bytes()).into_owned();
                    let decode = |text: String| {
                        let text = url::form_urlencoded::parse(text.as_bytes()).next();
                        text.map(|(text, _)| text.into_owned()).unwrap_or_default()
                    };
                    filter.metadata =
                        pairs.map(|(name, value)| (decode(name), decode(value))).collect();
                }
                "state" => filter.states = Some(value.into_owned()),
                "order" => filter.is_ascending = value == "asc",
                "limit" => filter.most = number(&name, &value)?.clamp(1, MAX_LISTED),
                "nextToken" => filter.first = number(&name, &value)?,
                _ => {
                    return Err(unsupported(format!("sandboxes cannot be listed by `{name}`")));
                }
            }
        }
        Ok(filter)
    }

    fn matches(&self, session: &Listed) -> bool {
        let state = if session.is_paused() { "paused" } else { "running" };
        let texts = texts(&session.metadata.0);
        self.states.as_ref().is_none_or(|states| states.split(',').any(|one| one == state))
            && self
                .metadata
                .iter()
                .all(|(name, value)| texts.get(name.as_str()).is_some_and(|found| found == value))
    }
}

async fn list(
    State(node): Served,
    credentials: Credentials,
    RawQuery(query): RawQuery,
) -> Result<Response, Failed> {
    let tenant = node.tenant(&credentials).map_err(Failed::control)?;
    let filter = Filter::read(&query.unwrap_or_default())?;
    let mut all = node.list(&tenant);
    if !filter.is_ascending {
        all.reverse();
    }
    all.retain(|session| filter.matches(session));
    let next = filter.first.saturating_add(filter.most);
    let has_more = all.len() > next;
    let page = all.into_iter().skip(filter.first).take(filter.most);
    let page = DialectJson(page.map(|session| shown(&node, &session)).collect());
    if has_more {
        let header = HeaderName::from_static("x-next-token");
        return Ok(([(header, next.to_string())], page).into_response());
    }
    Ok(page.into_response())
}

async fn kill(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    let session = find(&node, &credentials, &id)?;
    node.end(&session).await;
    Ok(StatusCode::NO_CONTENT)
}

#[derive(Default, Deserialize)]
#[serde(default)]
pub(in crate::http) struct SandboxChange {
    timeout: Option<f64>,
    duration: Option<f64>,
    memory: Option<bool>,
    count: Option<usize>,
}

async fn set_timeout(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    E2bBody(wanted): E2bBody<SandboxChange>,
) -> Result<StatusCode, Failed> {
    let session = find(&node, &credentials, &id)?;
    if session.session().is_paused() {
        return Err(Failed::control(Refusal::Paused));
    }
    let seconds = wanted.timeout.or(wanted.duration).unwrap_or(DEFAULT_SECONDS);
    node.renew(&session, Some(seconds)).map_err(Failed::control)?;
    Ok(StatusCode::NO_CONTENT)
}

async fn refresh(
    state: Served,
    credentials: Credentials,
    path: Path<String>,
    wanted: E2bBody<SandboxChange>,
) -> Result<StatusCode, Failed> {
    set_timeout(state, credentials, path, wanted).await
}

/// Resumes a paused sandbox, and extends its lifetime. Never shortens it.
async fn connect(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    E2bBody(wanted): E2bBody<SandboxChange>,
) -> Result<Response, Failed> {
    if wanted.memory == Some(false) {
        return Err(unsupported("isolet cannot start a sandbox from its files alone"));
    }
    let seconds = wanted.timeout.unwrap_or(DEFAULT_SECONDS);
    let session = find(&node, &credentials, &id)?;
    let was_paused = node.resume(session, Some(seconds)).await.map_err(Failed::control)?;
    let session = find(&node, &credentials, &id)?;
    if !was_paused && Listed::of(&session).left < seconds_of(seconds) {
        node.renew(&session, Some(seconds)).map_err(Failed::control)?;
    }
    let status = if was_paused { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, DialectJson(created(&node, &session))).into_response())
}

fn seconds_of(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

async fn pause(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    E2bBody(wanted): E2bBody<SandboxChange>,
) -> Result<StatusCode, Failed> {
    if wanted.memory == Some(false) {
        return Err(no_memory());
    }
    let session = find(&node, &credentials, &id)?;
    if node.pause(session).await.map_err(Failed::control)? {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Failed::control(Refusal::Paused))
    }
}

/// Copies a sandbox. Each copy succeeds or fails independently.
async fn fork(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    E2bBody(wanted): E2bBody<SandboxChange>,
) -> Result<Response, Failed> {
    let session = find(&node, &credentials, &id)?;
    let seconds = wanted.timeout.unwrap_or(DEFAULT_SECONDS);
    let count = wanted.count.unwrap_or(1);
    if !(1..=MAX_LISTED).contains(&count) {
        let text = format!("`count` is {count}, and has to be 1 to {MAX_LISTED}");
        return Err(Failed::unreadable(text));
    }
    let mut results = Vec::with_capacity(count);
    for _ in 0..count {
        results.push(match node.fork(&session, Some(seconds)).await {
            Ok(copy) => json!({"sandbox": created(&node, &copy)}),
            Err(refusal) => {
                let Failed(problem) = Failed::control(refusal);
                let error = json!({"code": problem.status().as_u16(), "message": problem.text()});
                json!({"error": error})
            }
        });
    }
    Ok((StatusCode::CREATED, DialectJson(results.into())).into_response())
}

/// Returns the usage of a sandbox, from the reports of its runs.
async fn metrics(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<DialectJson, Failed> {
    let session = find(&node, &credentials, &id)?;
    let (used, now) = (session.session().use_so_far(), SystemTime::now());
    let listed = Listed::of(&session);
    let age = now.duration_since(listed.created).unwrap_or_default().as_secs_f64();
    let share = if age > 0.0 { used.run_time.as_secs_f64() / age } else { 0.0 };
    let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(DialectJson(json!([{
        "timestamp": time(now),
        "timestampUnix": since.as_secs(),
        "cpuCount": 1,
        "cpuUsedPct": 100.0 * share.min(1.0),
        "memUsed": used.peak_memory_bytes,
        "memTotal": listed.memory_bytes,
        "memCache": 0,
        "diskUsed": 0,
        "diskTotal": 0,
    }])))
}

async fn set_network(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    _body: Bytes,
) -> Result<StatusCode, Failed> {
    find(&node, &credentials, &id)?;
    Err(unsupported("what a sandbox may reach is said when it is created, and stays so"))
}
