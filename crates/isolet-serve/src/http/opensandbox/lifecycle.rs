//! `OpenSandbox`'s API: creates, lists, pauses and ends sandboxes, and tells their addresses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::header::HOST;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use isolet::Value;
use serde::Deserialize;
use serde_json::{Value as AnyJson, json};

use super::{API, Failed, OpenSandboxBody, PREFIX};
use crate::http::answers::check_size;
use crate::http::body::DialectJson;
use crate::http::credentials::Credentials;
use crate::http::e2b::control::has_something;
use crate::http::network::Network;
use crate::http::sessions::{MAX_METADATA_BYTES, MAX_POLICY_BYTES};
use isolet_service::core::{Plain, Policy};
use isolet_service::node::{ImplicitGrants, Listed, MOST_SECONDS, NewSession, Node, SessionLease};

/// The ports of `execd` and of the network's proxy in a sandbox.
const EXECD: u16 = 44_772;
const EGRESS: u16 = 18_080;

/// The number of sandboxes in a page of a list, unless the client names one, and the maximum.
const PAGE: usize = 20;
const MAX_PAGE: usize = 200;

type Served = State<Arc<Node>>;

pub(super) fn routes() -> Router<Arc<Node>> {
    let path = |rest: &str| format!("{API}/{{id}}{rest}");
    Router::new()
        .route(API, get(list).post(create))
        .route(&path(""), get(look).delete(kill))
        .route(&path("/pause"), post(pause))
        .route(&path("/resume"), post(resume))
        .route(&path("/renew-expiration"), post(renew))
        .route(&path("/endpoints/{port}"), get(endpoint))
}

/// A sandbox to create. What says where it runs (`image`, `platform`, `resourceLimits`,
/// `entrypoint`) is the node's to say.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::http) struct SandboxRequest {
    snapshot_id: Option<String>,
    timeout: Option<f64>,
    env: BTreeMap<String, String>,
    metadata: BTreeMap<String, String>,
    entrypoint: Vec<String>,
    network_policy: Option<NetworkPolicy>,
    volumes: Value,
    lifecycle: Value,
    credential_proxy: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct NetworkPolicy {
    #[serde(default = "deny")]
    default_action: String,
    #[serde(default)]
    egress: Vec<NetworkRule>,
}

fn deny() -> String {
    "deny".to_owned()
}

#[derive(Deserialize)]
pub(in crate::http) struct NetworkRule {
    action: String,
    target: String,
}

impl NetworkPolicy {
    fn network(self) -> Result<Network, Failed> {
        let is_allowed = |field: &str, action: &str| match action {
            "allow" => Ok(true),
            "deny" => Ok(false),
            other => Err(Failed::invalid(format!(
                "`{field}` is {other:?}, and has to be `allow` or `deny`"
            ))),
        };
        let has_internet = is_allowed("networkPolicy.defaultAction", &self.default_action)?;
        let mut network = Network { has_internet, allowed: Vec::new(), denied: Vec::new() };
        for NetworkRule { action, target } in self.egress {
            let is_allowed = is_allowed("action", &action)?;
            let rules = if is_allowed { &mut network.allowed } else { &mut network.denied };
            rules.push(target);
        }
        Ok(network)
    }
}

impl SandboxRequest {
    fn new_session(self) -> Result<NewSession, Failed> {
        for (name, value) in [
            ("volumes", &self.volumes),
            ("lifecycle", &self.lifecycle),
            ("credentialProxy", &self.credential_proxy),
        ] {
            if has_something(value) {
                return Err(Failed::unsupported(format!("a sandbox of isolet has no `{name}`")));
            }
        }
        if self.snapshot_id.is_some() {
            return Err(Failed::unsupported("isolet has no snapshots for OpenSandbox's clients"));
        }
        let network = match self.network_policy {
            Some(policy) => policy.network()?,
            None => Network { has_internet: true, allowed: Vec::new(), denied: Vec::new() },
        };
        let public_net = network.has_internet;
        check_size("env", &self.env, MAX_POLICY_BYTES)?;
        let rules = network.rules();
        check_size("networkPolicy", &rules, MAX_POLICY_BYTES)?;
        let texts = |(name, text)| (name, Value::from(text));
        let metadata = Plain(Value::dict(self.metadata.into_iter().map(texts)));
        check_size("metadata", &metadata, MAX_METADATA_BYTES)?;
        Ok(NewSession {
            policy: Policy::of_environment(self.env, rules),
            grants: ImplicitGrants {
                public_net,
                packages: true,
                run_time: Some(MOST_SECONDS),
                most_run_time: Some(MOST_SECONDS),
            },
            ttl: self.timeout,
            metadata,
            ..NewSession::default()
        })
    }
}

async fn create(
    State(node): Served,
    credentials: Credentials,
    OpenSandboxBody(mut wanted): OpenSandboxBody<SandboxRequest>,
) -> Result<Response, Failed> {
    let tenant = node.tenant(&credentials)?;
    let entrypoint = std::mem::take(&mut wanted.entrypoint);
    let session = node.create(&tenant, wanted.new_session()?, None).await?;
    let mut shown = shown(&Listed::of(&session));
    shown["entrypoint"] = entrypoint.into();
    Ok((StatusCode::ACCEPTED, DialectJson(shown)).into_response())
}

fn find(node: &Node, credentials: &Credentials, id: &str) -> Result<SessionLease, Failed> {
    Ok(node.find(credentials, id)?)
}

fn shown(session: &Listed) -> AnyJson {
    let metadata = session.metadata.0.as_dict().unwrap_or_default().iter();
    let metadata: BTreeMap<&str, &str> =
        metadata.filter_map(|(name, text)| Some((name.as_str()?, text.as_str()?))).collect();
    json!({
        "id": session.id,
        "status": {"state": state(session)},
        "createdAt": time(session.created),
        "expiresAt": time(SystemTime::now() + session.left),
        "metadata": metadata,
        // Nothing else runs in a sandbox.
        "entrypoint": [],
    })
}

fn state(session: &Listed) -> &'static str {
    if session.is_paused() { "Paused" } else { "Running" }
}

fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

async fn look(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<DialectJson, Failed> {
    Ok(DialectJson(shown(&Listed::of(&find(&node, &credentials, &id)?))))
}

async fn list(
    State(node): Served,
    credentials: Credentials,
    RawQuery(query): RawQuery,
) -> Result<DialectJson, Failed> {
    let tenant = node.tenant(&credentials)?;
    let (mut states, mut metadata, mut page, mut size) = (Vec::new(), Vec::new(), 1, PAGE);
    let number = |name: &str, text: &str| {
        let number = text.parse::<usize>().ok().filter(|number| *number > 0);
        number.ok_or_else(|| {
            Failed::invalid(format!("`{name}` is {text:?}, and has to be a number above 0"))
        })
    };
    let query = query.unwrap_or_default();
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "state" => states.push(value.into_owned()),
            // Names and values are percent-encoded once more.
            "metadata" => {
                metadata = url::form_urlencoded::parse(value.as_bytes()).into_owned().collect();
            }
            "page" => page = number(&name, &value)?,
            "pageSize" => size = number(&name, &value)?.min(MAX_PAGE),
            _ => {
                let text = format!("sandboxes cannot be listed by `{}`", name.escape_debug());
                return Err(Failed::invalid(text));
            }
        }
    }
    let mut all = node.list(&tenant);
    all.retain(|session| {
        let found = |name: &str| session.metadata.0.get(name).and_then(Value::as_str);
        (states.is_empty() || states.iter().any(|its| its == state(session)))
            && metadata.iter().all(|(name, value): &(String, String)| found(name) == Some(value))
    });
    all.reverse();
    let (count, pages) = (all.len(), all.len().div_ceil(size));
    let items = all.iter().skip((page - 1).saturating_mul(size)).take(size).map(shown);
    Ok(DialectJson(json!({
        "items": items.collect::<AnyJson>(),
        "pagination": {
            "page": page,
            "pageSize": size,
            "totalItems": count,
            "totalPages": pages,
            "hasNextPage": page < pages,
        },
    })))
}

async fn kill(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    node.end(&find(&node, &credentials, &id)?).await;
    Ok(StatusCode::NO_CONTENT)
}

async fn pause(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    node.pause(find(&node, &credentials, &id)?).await?;
    Ok(StatusCode::ACCEPTED)
}

async fn resume(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
) -> Result<StatusCode, Failed> {
    node.resume(find(&node, &credentials, &id)?, None).await?;
    Ok(StatusCode::ACCEPTED)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::http) struct RenewRequest {
    expires_at: String,
}

async fn renew(
    State(node): Served,
    credentials: Credentials,
    Path(id): Path<String>,
    OpenSandboxBody(RenewRequest { expires_at }): OpenSandboxBody<RenewRequest>,
) -> Result<DialectJson, Failed> {
    let session = find(&node, &credentials, &id)?;
    let until = read_time(&expires_at).ok_or_else(|| {
        Failed::invalid(format!("`expiresAt` is {expires_at:?}, and has to be a time of RFC 3339"))
    })?;
    let left = until.duration_since(SystemTime::now()).unwrap_or_default();
    node.renew(&session, Some(left.as_secs_f64()))?;
    let until = SystemTime::now() + Listed::of(&session).left;
    Ok(DialectJson(json!({"expiresAt": time(until)})))
}

/// Reads a time with its offset from UTC.
fn read_time(text: &str) -> Option<SystemTime> {
    let Some(at) = text.len().checked_sub("+00:00".len()).filter(|_| !text.ends_with('Z')) else {
        return humantime::parse_rfc3339(text).ok();
    };
    let (time, offset) = text.split_at_checked(at)?;
    let (hours, minutes) = offset.get(1..)?.split_once(':')?;
    let minutes = hours.parse::<u64>().ok()? * 60 + minutes.parse::<u64>().ok()?;
    let (time, offset) =
        (humantime::parse_rfc3339(&format!("{time}Z")).ok()?, Duration::from_mins(minutes));
    match text.as_bytes().get(at)? {
        b'+' => time.checked_sub(offset),
        b'-' => time.checked_add(offset),
        _ => None,
    }
}

/// Tells where a sandbox's own API is: on this node, as the client reaches it.
async fn endpoint(
    State(node): Served,
    credentials: Credentials,
    Path((id, port)): Path<(String, u16)>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<DialectJson, Failed> {
    let session = find(&node, &credentials, &id)?;
    let place = match port {
        EXECD => "",
        // Clients ask for it whether they use it or not.
        EGRESS => "/egress",
        _ => {
            let text = format!("a sandbox of isolet serves nothing on port {port}");
            return Err(Failed::unsupported(text));
        }
    };
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
    let host = host.or_else(|| uri.authority().map(ToString::to_string));
    let host = host.ok_or_else(|| Failed::invalid("the request has no `Host`"))?;
    Ok(DialectJson(json!({
        "endpoint": format!("{host}/{PREFIX}/{}{place}", session.handle()),
        "headers": {"X-Session-Token": node.token(session.handle())},
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_read_with_its_offset() {
        let read = |text: &str| read_time(text).map(time);
        let noon = Some("2026-11-30T12:00:00.500Z".to_owned());
        for text in [
            "2026-11-30T12:00:00.5Z",
            "2026-11-30T12:00:00.500000+00:00",
            "2026-11-30T14:30:00.5+02:30",
            "2026-11-30T07:00:00.5-05:00",
        ] {
            assert_eq!(read(text), noon, "{text}");
        }
        for text in ["", "Z", "now", "2026-11-30", "2026-11-30T12:00:00", "é:00", "x+99999999:0"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn a_network_policy_is_the_nodes_rules() {
        let network = |default_action: &str, egress: &[(&str, &str)]| {
            let egress = egress.iter().map(|(action, target)| NetworkRule {
                action: (*action).to_owned(),
                target: (*target).to_owned(),
            });
            let default_action = default_action.to_owned();
            let network = NetworkPolicy { default_action, egress: egress.collect() }.network();
            network.ok().map(|network| (network.has_internet, network.rules()))
        };
        let (has_internet, (allowed, denied)) = network("deny", &[]).unwrap();
        assert!(!has_internet && allowed.is_empty() && denied == ["0.0.0.0/0", "::/0"]);
        let (has_internet, rules) = network("deny", &[("allow", "a.example")]).unwrap();
        assert!(!has_internet && rules == (vec!["a.example".to_owned()], Vec::new()));
        let (has_internet, rules) = network("allow", &[("deny", "a.example")]).unwrap();
        assert!(has_internet && rules == (Vec::new(), vec!["a.example".to_owned()]));
        assert!(network("ask", &[]).is_none() && network("deny", &[("log", "a")]).is_none());
    }
}
