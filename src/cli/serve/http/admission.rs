//! Who asks comes first: one layer around all routes looks at the key or token of each request,
//! before anything of its body is read.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use axum::http::header::EXPECT;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;

use super::problem::Problem;
use super::{MAX_BODY_BYTES, Who, e2b, nemo_skills};
use crate::cli::http_server::Peer;
use crate::service::node::{Credentials, Node, Refusal};

/// The routes that need no key. They say what everybody may know, and read no body.
const PUBLIC: [&str; 9] = [
    "/livez",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/v1/ping",
    "/openenv/*/schema",
    "/openenv/*/metadata",
    "/openenv/*/health",
    // Without a sandbox, that is.
    HEALTH,
];

const HEALTH: &str = "/health";

/// How long, and how much, a client may still send after it was refused. Who is sending reads no
/// answer, and would find the connection reset instead.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = MAX_BODY_BYTES;

/// The protocols whose clients read refusals in forms of their own.
enum Protocol {
    /// Also that of `SandboxFusion` and `OpenEnv`, and of routes that do not exist.
    Native,
    E2bApi,
    E2bSandbox,
    NemoSkills,
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
            _ => Self::Native,
        }
    }

    /// Returns the id of the session that a request is about, if it is about one.
    fn subject<'a>(&self, path: &'a str, headers: &'a HeaderMap) -> Option<&'a str> {
        match self {
            Self::Native => path.strip_prefix("/v1/sessions/")?.split('/').next(),
            Self::E2bApi => {
                let path = path.strip_prefix("/v2").unwrap_or(path);
                path.strip_prefix("/sandboxes/")?.split('/').next()
            }
            Self::E2bSandbox => headers.get(e2b::SANDBOX_ID)?.to_str().ok(),
            Self::NemoSkills => None,
        }
    }

    async fn credentials(&self, parts: &mut Parts) -> Credentials {
        if matches!(self, Self::E2bSandbox) {
            return e2b::credentials(parts).await;
        }
        let Ok(Who(credentials)) = Who::from_request_parts(parts, &()).await;
        credentials
    }

    fn refuse(&self, refusal: Refusal) -> Response {
        match self {
            Self::Native => Problem::from(refusal).into_response(),
            Self::E2bApi => e2b::refused_by_api(refusal),
            Self::E2bSandbox => e2b::refused_by_sandbox(refusal),
            Self::NemoSkills => nemo_skills::refused(&refusal.into()),
        }
    }
}

fn is_public(path: &str, headers: &HeaderMap) -> bool {
    let public = PUBLIC.into_iter().find(|route| is_of(route, path));
    public.is_some_and(|route| route != HEALTH || !headers.contains_key(e2b::SANDBOX_ID))
}

/// Whether a path is of a route, in which `*` stands for any part.
fn is_of(route: &str, path: &str) -> bool {
    let mut parts = path.split('/');
    route.split('/').all(|part| parts.next().is_some_and(|its| part == "*" || its == part))
        && parts.next().is_none()
}

/// Lets a request through whose key or token is right. A token is right for its session only.
pub(super) async fn admit(State(node): State<Arc<Node>>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    // Who waits to be told to send it sends nothing before.
    let lingers = !parts.headers.contains_key(EXPECT);
    if is_public(&path, &parts.headers) {
        drop(Upload { body, lingers });
        return next.run(Request::from_parts(parts, Body::empty())).await;
    }
    let protocol = Protocol::of(&path, &parts.headers);
    let credentials = protocol.credentials(&mut parts).await;
    let subject = protocol.subject(&path, &parts.headers);
    match node.authenticate(&credentials, subject) {
        Ok(_tenant) => {
            if let Some(peer) = parts.extensions.get::<Peer>() {
                peer.is_known();
            }
            let body = Body::new(Upload { body, lingers });
            next.run(Request::from_parts(parts, body)).await
        }
        Err(refusal) => {
            drop(Upload { body, lingers });
            protocol.refuse(refusal)
        }
    }
}

/// The body of a request. What nobody has read of it when it is dropped is read and thrown away, so
/// that its client gets to read the answer.
struct Upload {
    body: Body,
    lingers: bool,
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.body.is_end_stream() || !self.lingers {
            return;
        }
        let mut body = std::mem::take(&mut self.body);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(tokio::time::timeout(LINGER, async move {
            let mut left = LINGER_BYTES;
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(length) else { return };
                left = rest;
            }
        }));
    }
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
        ] {
            let subject = Protocol::of(path, &headers).subject(path, &headers);
            assert_eq!(subject, about, "{path}");
        }
        assert!(
            Protocol::of("/execute", &HeaderMap::new()).subject("/execute", &headers).is_none()
        );
    }
}
