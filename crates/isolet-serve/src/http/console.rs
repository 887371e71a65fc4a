//! The console for browsers at `/`: static files that are a part of the program. They have no data
//! and need no key; the page's scripts ask the API, with the key of who uses the page.

use std::fmt::Write;
use std::sync::Arc;

use axum::Router;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::e2b;
use super::problem::Problem;
use isolet_service::node::Node;

/// A file of the console.
struct File {
    path: &'static str,
    kind: &'static str,
    policy: &'static str,
    text: &'static str,
}

/// The policy of the page, with a directive on each line: it loads only what the node serves, sends
/// only to the node, and makes no element from a text.
const PAGE_POLICY: &str = include_str!("../../console/page.csp");

/// The policy of the frame around HTML of guests, which that HTML gets, too: it has no scripts and
/// loads nothing.
const FRAME_POLICY: &str = include_str!("../../console/frame.csp");

/// The policy of what is no page.
const PART_POLICY: &str = "default-src 'none'; frame-ancestors 'none'; sandbox";

const SCRIPT: &str = "text/javascript; charset=utf-8";
const PAGE: &str = "text/html; charset=utf-8";

macro_rules! files {
    ($($path:literal $name:literal $kind:expr, $policy:expr;)*) => {
        [$(File {
            path: $path,
            kind: $kind,
            policy: $policy,
            text: include_str!(concat!("../../console/", $name)),
        },)*]
    };
}

static FILES: [File; 10] = files! {
    "/" "index.html" PAGE, PAGE_POLICY;
    "/console/frame.html" "frame.html" PAGE, FRAME_POLICY;
    "/console/console.css" "console.css" "text/css; charset=utf-8", PART_POLICY;
    "/console/icon.svg" "icon.svg" "image/svg+xml", PART_POLICY;
    "/console/main.js" "main.js" SCRIPT, PART_POLICY;
    "/console/api.js" "api.js" SCRIPT, PART_POLICY;
    "/console/cell.js" "cell.js" SCRIPT, PART_POLICY;
    "/console/output.js" "output.js" SCRIPT, PART_POLICY;
    "/console/facts.js" "facts.js" SCRIPT, PART_POLICY;
    "/console/sessions.js" "sessions.js" SCRIPT, PART_POLICY;
};

/// Makes an answer of the API no page, wherever a browser shows it, and no script: files in it are
/// the guests', and the console is of the same origin.
pub(super) fn is_no_page(answer: &mut Response) {
    let headers = answer.headers_mut();
    if !headers.contains_key(CONTENT_SECURITY_POLICY) {
        headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(PART_POLICY));
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    }
}

/// Returns `true` if a request is for a file of the console, and so needs no key.
pub(super) fn is_for_it(request: &Parts) -> bool {
    let path = request.uri.path();
    FILES.iter().any(|file| file.path == path) && !is_about_a_sandbox(&request.headers)
}

/// A sandbox that has a name of its own is another origin, and has no console.
fn is_about_a_sandbox(headers: &HeaderMap) -> bool {
    headers.contains_key(e2b::SANDBOX_ID)
}

/// Returns the routes of the console; none if there is to be none.
pub(super) fn routes(is_on: bool) -> Router<Arc<Node>> {
    FILES.iter().filter(|_| is_on).fold(Router::new(), |routes, file| {
        let heads = Arc::new((tag(file.text), header(file.policy)));
        let answer = move |headers: HeaderMap| {
            let heads = Arc::clone(&heads);
            async move { file.answer(&heads.0, &heads.1, &headers) }
        };
        routes.route(file.path, get(answer))
    })
}

impl File {
    fn answer(&self, tag: &str, policy: &HeaderValue, request: &HeaderMap) -> Response {
        if is_about_a_sandbox(request) {
            return Problem::no_route().into_response();
        }
        let known = request.get(IF_NONE_MATCH).and_then(|known| known.to_str().ok());
        let is_known = known.is_some_and(|known| known.contains(tag));
        let mut response = if is_known {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            ([(CONTENT_TYPE, self.kind)], self.text).into_response()
        };
        let headers = response.headers_mut();
        // A browser asks each time, so that a newer node has its newer page.
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        if let Ok(tag) = HeaderValue::from_str(tag) {
            headers.insert(ETAG, tag);
        }
        headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
        for (name, value) in [
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (REFERRER_POLICY, "no-referrer"),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns a policy as a header. The strictest one stands for one that cannot be a header.
fn header(policy: &str) -> HeaderValue {
    let words: Vec<_> = policy.split_whitespace().collect();
    let strictest = || HeaderValue::from_static(PART_POLICY);
    HeaderValue::try_from(words.join(" ")).unwrap_or_else(|_| strictest())
}

/// Returns the entity tag of a text.
fn tag(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let mut tag = String::from("\"");
    for byte in &digest.as_ref()[..8] {
        // Writing to a string does not fail.
        let _ = write!(tag, "{byte:02x}");
    }
    tag.push('"');
    tag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_only_files_that_there_are_and_makes_no_element_from_a_text() {
        let paths: Vec<_> = FILES.iter().map(|file| file.path).collect();
        let mut named = 0;
        for file in &FILES {
            for lead in ["src=\"", "from \"", "rel=\"icon\" href=\"", "rel=\"stylesheet\" href=\""]
            {
                for rest in file.text.split(lead).skip(1) {
                    let name = rest.split('"').next().unwrap_or_default();
                    let path = name.replace("./", "/console/");
                    assert!(paths.contains(&&*path), "{}: {name}", file.path);
                    named += 1;
                }
            }
            for word in ["style=\"", "innerHTML", "insertAdjacent", "document.write", "eval("] {
                assert!(!file.text.contains(word), "{}: {word}", file.path);
            }
        }
        assert!(named > FILES.len(), "{named}");
    }

    #[test]
    fn the_policies_are_headers() {
        for file in &FILES {
            let words: Vec<_> = file.policy.split_whitespace().collect();
            assert_eq!(header(file.policy), words.join(" "), "{}", file.path);
        }
        assert_eq!(header("\0"), PART_POLICY);
    }
}
