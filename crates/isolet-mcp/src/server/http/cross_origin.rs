//! Cross-origin requests: the pages that may send them, and the headers that browsers need (CORS).

use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use url::Url;

/// The headers of an answer that a page may read.
const EXPOSED: &str = "mcp-session-id, mcp-protocol-version, www-authenticate";

/// Asked by browsers about pages of the internet that want to reach a machine of a local network.
const ASKS_PRIVATE: &str = "access-control-request-private-network";
const ALLOWS_PRIVATE: &str = "access-control-allow-private-network";

/// The time for which a browser may cache the answer to a preflight, in seconds.
const MAX_AGE: &str = "600";

/// The origins whose pages may send requests.
pub(super) struct Origins(Vec<Origin>);

/// An origin, whose port may be any.
struct Origin {
    scheme: String,
    host: String,
    port: Option<u16>,
}

impl Origins {
    /// Reads origins such as `https://app.example.com:443`. Without a port, or with `*` in its
    /// place, any port counts, as in the check of `rmcp`. An invalid origin admits no page.
    pub(super) fn new<'a>(allowed: impl IntoIterator<Item = &'a str>) -> Self {
        let read = |text: &str| {
            let base = text.strip_suffix(":*").unwrap_or(text);
            let (scheme, host, _) = parsed(base)?;
            let authority = base.split_once("://")?.1.trim_end_matches('/');
            let port = authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            Some(Origin { scheme, host, port })
        };
        Self(allowed.into_iter().filter_map(read).collect())
    }

    /// Returns the origin of a request, if its pages may send it.
    pub(super) fn allowed(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let given = headers.get(ORIGIN)?;
        let (scheme, host, port) = parsed(given.to_str().ok()?)?;
        let is_allowed = self.0.iter().any(|origin| {
            origin.scheme == scheme
                && origin.host == host
                && origin.port.is_none_or(|allowed| Some(allowed) == port)
        });
        is_allowed.then(|| given.clone())
    }
}

fn parsed(text: &str) -> Option<(String, String, Option<u16>)> {
    let url = Url::parse(text.trim()).ok()?;
    Some((url.scheme().to_owned(), url.host_str()?.to_owned(), url.port_or_known_default()))
}

/// Adds the headers that answer the preflight of an allowed page.
pub(super) fn permit(asked: &HeaderMap, answer: &mut HeaderMap) {
    let constant = HeaderValue::from_static;
    answer.insert(ACCESS_CONTROL_ALLOW_METHODS, constant("GET, POST, DELETE, OPTIONS"));
    // Some headers of the protocol have names of the tool's parameters. None is worth anything
    // without the token.
    let names = asked.get(ACCESS_CONTROL_REQUEST_HEADERS).cloned();
    let usual =
        constant("authorization, content-type, accept, mcp-session-id, mcp-protocol-version");
    answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.unwrap_or(usual));
    answer.insert(ACCESS_CONTROL_MAX_AGE, constant(MAX_AGE));
    if asked.contains_key(ASKS_PRIVATE) {
        answer.insert(HeaderName::from_static(ALLOWS_PRIVATE), constant("true"));
    }
}

/// Adds what lets an allowed page read the answer.
pub(super) fn expose(origin: Option<HeaderValue>, answer: &mut HeaderMap) {
    answer.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        answer.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        answer.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSED));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_counts_with_its_scheme_its_host_and_its_port() {
        let origins = Origins::new([
            "http://localhost:*",
            "http://[::1]:*",
            "https://app.example.com:443",
            "https://any.example.com",
            "no origin",
        ]);
        for (origin, is_allowed) in [
            ("http://localhost:6274", true),
            ("http://localhost", true),
            ("http://[::1]:80", true),
            ("https://app.example.com", true),
            ("https://APP.example.com:443", true),
            ("https://any.example.com:8443", true),
            ("https://localhost", false),
            ("http://app.example.com", false),
            ("https://app.example.com:444", false),
            ("https://app.example.com.evil.example", false),
            ("http://localhost.evil.example", false),
            ("null", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(origins.allowed(&headers).is_some(), is_allowed, "{origin}");
        }
        assert!(origins.allowed(&HeaderMap::new()).is_none());
    }
}
