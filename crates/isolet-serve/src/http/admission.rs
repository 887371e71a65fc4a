//! Authenticates requests: a layer around all routes checks each request's key or token before its
//! body is read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_LENGTH, EXPECT};
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::problem::Problem;
use super::transfer::{Download, Transfer, Upload};
use super::{console, e2b, jupyter, librechat, nemo_skills, opensandbox, request_log};
use crate::http::credentials::Credentials;
use isolet_service::node::{Node, Refusal, with_results};
use isolet_support::http_server::Peer;

/// The routes that need no key. They return public information and read no body.
const PUBLIC: [&str; 9] = [
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/v1/ping",
    "/openenv/*/schema",
    "/openenv/*/metadata",
    "/openenv/*/health",
    // Only without a sandbox's header.
    HEALTH,
];

const HEALTH: &str = "/health";

/// The protocols, each with its own form of refusals.
enum Protocol {
    /// Also `SandboxFusion`, `OpenEnv`, and unknown routes.
    Native,
    E2bApi,
    E2bSandbox,
    Jupyter,
    LibreChat,
    NemoSkills,
    OpenSandbox,
}

impl Protocol {
    fn of(path: &str, headers: &HeaderMap) -> Self {
        let first = path.split('/').nth(1).unwrap_or_default();
        match first {
            "sandboxes" | "v2" | "snapshots" | "templates" => Self::E2bApi,
            "files" | "contexts" | "filesystem.Filesystem" | "process.Process" | "health" => {
                Self::E2bSandbox
            }
            "execute" if headers.contains_key(e2b::SANDBOX_ID) => Self::E2bSandbox,
            "execute" => Self::NemoSkills,
            librechat::PREFIX => Self::LibreChat,
            opensandbox::PREFIX => Self::OpenSandbox,
            jupyter::PREFIX => Self::Jupyter,
            _ if opensandbox::is_of_api(path) => Self::OpenSandbox,
            _ => Self::Native,
        }
    }

    /// Returns the id of the session in the path or headers.
    fn subject<'a>(&self, path: &'a str, headers: &'a HeaderMap) -> Option<&'a str> {
        match self {
            Self::Native => path.strip_prefix("/v1/sessions/")?.split('/').next(),
            Self::E2bApi => {
                let path = path.strip_prefix("/v2").unwrap_or(path);
                path.strip_prefix("/sandboxes/")?.split('/').next()
            }
            Self::E2bSandbox => headers.get(e2b::SANDBOX_ID)?.to_str().ok(),
            Self::OpenSandbox => opensandbox::subject(path),
            Self::Jupyter | Self::LibreChat | Self::NemoSkills => None,
        }
    }

    async fn credentials(&self, parts: &mut Parts) -> Credentials {
        if matches!(self, Self::E2bSandbox) {
            return e2b::credentials(parts).await;
        }
        if matches!(self, Self::Jupyter) {
            return jupyter::credentials(parts).await;
        }
        let Ok(credentials) = Credentials::from_request_parts(parts, &()).await;
        credentials
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        match self {
            Self::Native => Problem::from(refusal).into_response(),
            Self::Jupyter => jupyter::refused(refusal),
            Self::E2bApi => e2b::refused_by_api(refusal),
            Self::E2bSandbox => e2b::refused_by_sandbox(refusal),
            Self::LibreChat => librechat::refused(refusal),
            Self::OpenSandbox => opensandbox::refused(refusal),
            Self::NemoSkills => nemo_skills::refused(&refusal.into()),
        }
    }
}

fn is_public(path: &str, headers: &HeaderMap) -> bool {
    let public = PUBLIC.into_iter().find(|route| is_of(route, path));
    public.is_some_and(|route| route != HEALTH || !headers.contains_key(e2b::SANDBOX_ID))
}

/// Returns `true` if a path matches a route, in which `*` stands for any segment.
fn is_of(route: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    route.split('/').all(|part| parts.next().is_some_and(|its| part == "*" || its == part))
        && parts.next().is_none()
}

/// Returns why credentials are refused, for the log.
fn why_refused(credentials: &Credentials) -> &'static str {
    match (&credentials.key, &credentials.token) {
        (None, None) => "no key was sent",
        (Some(_), _) => "the key is none of this node's",
        (None, Some(_)) => "the token is none of this session's",
    }
}

/// Lets a request through if its key is valid, or its token for its session, and there is room for
/// its body.
pub(super) async fn admit(State(node): State<Arc<Node>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    // A client with `Expect` sends no body before it is asked to.
    let mut upload = Upload::new(body, !parts.headers.contains_key(EXPECT));
    let path = parts.uri.path().to_owned();
    if is_public(&path, &parts.headers) || (node.has_console() && console::is_for_it(&parts)) {
        return next.run(Request::from_parts(parts, Body::empty())).await;
    }
    let protocol = Protocol::of(&path, &parts.headers);
    let credentials = protocol.credentials(&mut parts).await;
    let subject = protocol.subject(&path, &parts.headers);
    let admitted = node.authenticate(&credentials, subject).and_then(|tenant| {
        if let Some(peer) = parts.extensions.get::<Peer>() {
            peer.is_known();
        }
        let length = parts.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length = length.and_then(|length| length.parse().ok()).unwrap_or_default();
        // A longer body is refused as too large by its handler.
        if length <= super::MAX_BODY_BYTES as u64 {
            node.check_in_flight(&tenant, length)?;
        }
        Ok((node.begin(&tenant)?, tenant))
    });
    let record = request_log::record(&parts.extensions).cloned();
    let (asked, tenant) = match admitted {
        Ok((asked, tenant)) => (Arc::new(asked), tenant),
        Err(refusal) => {
            if let Some(record) = record.filter(|_| matches!(refusal, Refusal::Key)) {
                record.refused(why_refused(&credentials));
            }
            return protocol.refuse(refusal);
        }
    };
    if let Some(record) = &record {
        record.of(&tenant, subject);
    }
    let transfer = Transfer::new(node.charge(&tenant), Arc::clone(&asked));
    upload.count(transfer.clone());
    // Charged until the request has been carried out.
    parts.extensions.insert(transfer.clone());
    let work = next.run(Request::from_parts(parts, Body::new(upload)));
    let (response, results) = with_results(work).await;
    drop(transfer);
    if let Some((record, session)) = record.zip(results.session()) {
        record.started(session);
    }
    let response = response.map(|body| Body::new(Download::new(body, node.charge(&tenant), asked)));
    drop(results);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_without_a_key_are_those_of_the_list_and_nothing_below() {
        let none = HeaderMap::new();
        for path in ["/livez", "/metrics", "/health", "/openenv/coding/schema", "/v1/ping"] {
            assert!(is_public(path, &none), "{path}");
        }
        for path in [
            "",
            "/",
            "/livez/",
            "/livez/x",
            "//livez",
            "/openenv/coding/state",
            "/openenv/schema",
            "/openenv/a/b/schema",
            "/v1/run",
            "/v1/node",
        ] {
            assert!(!is_public(path, &none), "{path}");
        }
        let mut about = HeaderMap::new();
        about.insert(e2b::SANDBOX_ID, "n-1".parse().unwrap());
        assert!(!is_public("/health", &about) && is_public("/livez", &about));
    }

    #[test]
    fn a_request_is_about_the_session_of_its_path_or_of_its_header() {
        let mut headers = HeaderMap::new();
        headers.insert(e2b::SANDBOX_ID, "other".parse().unwrap());
        for (path, about) in [
            ("/v1/sessions/one/runs", Some("one")),
            ("/v1/sessions", None),
            ("/v1/run", None),
            ("/sandboxes/one", Some("one")),
            ("/v2/sandboxes/one/connect", Some("one")),
            ("/sessions/one", None),
            ("/files", Some("other")),
            ("/execute", Some("other")),
            ("/process.Process/Start", Some("other")),
            ("/v1/sandboxes/one/endpoints/44772", Some("one")),
            ("/v1/sandboxes", None),
            ("/v1/sandboxesx/one", None),
            ("/opensandbox/one/code", Some("one")),
        ] {
            let subject = Protocol::of(path, &headers).subject(path, &headers);
            assert_eq!(subject, about, "{path}");
        }
        assert!(
            Protocol::of("/execute", &HeaderMap::new()).subject("/execute", &headers).is_none()
        );
    }
}
