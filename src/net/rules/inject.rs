//! Headers that the host adds to requests to an origin, such as credentials.

use std::fmt;

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::host::Host;
use super::rule::RuleError;

/// An origin: scheme, host and port.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    scheme: String,
    host: Host,
    port: u16,
}

impl Origin {
    /// Returns the origin of a URL; `None` if it has none.
    pub(crate) fn of(url: &Url) -> Option<Self> {
        let host = Host::from_url(&url.host()?)?;
        Some(Self { scheme: url.scheme().to_owned(), host, port: url.port_or_known_default()? })
    }

    pub(super) fn is_https(&self) -> bool {
        self.scheme == "https"
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    /// Returns `true` if the port is the usual one of the scheme.
    pub(super) fn has_usual_port(&self) -> bool {
        self.port == if self.is_https() { 443 } else { 80 }
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

#[derive(Clone)]
pub(super) struct InjectedHeader {
    origin: Origin,
    name: HeaderName,
    value: HeaderValue,
}

impl InjectedHeader {
    pub(super) fn new(origin: &str, name: &str, value: &str) -> Result<Self, RuleError> {
        let fail = |problem: &str| RuleError::new(origin, problem);
        let url = Url::parse(origin).map_err(|_| fail(AN_ORIGIN))?;
        let odd = |c: char| c.is_whitespace() || c.is_control() || r"/\@%?#".contains(c);
        let plain = origin.split_once("://").is_some_and(|(scheme, authority)| {
            ["http", "https"].contains(&scheme) && !authority.contains(odd)
        });
        if !plain {
            return Err(fail(AN_ORIGIN));
        }
        let origin_of = Origin::of(&url).ok_or_else(|| fail(AN_ORIGIN))?;
        let header = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_| fail("is to get a header whose name is not valid in HTTP"))?;
        if is_framing(&header) {
            let problem = format!("is to get the header `{header}`, which the client itself sets");
            return Err(RuleError::new(origin, problem));
        }
        let mut value = HeaderValue::from_str(value).map_err(|_| {
            // The value is a secret and must not be part of the message.
            fail(&format!(
                "is to get a value of `{header}` with characters other than visible ASCII"
            ))
        })?;
        value.set_sensitive(true);
        Ok(Self { origin: origin_of, name: header, value })
    }

    /// Removes the guest's header of this name if the request goes to the origin.
    pub(super) fn displace(&self, origin: &Origin, headers: &mut HeaderMap) {
        if self.origin == *origin {
            headers.remove(&self.name);
        }
    }

    /// Adds the header if the request goes to the origin.
    pub(super) fn add(&self, origin: &Origin, headers: &mut HeaderMap) {
        if self.origin == *origin {
            // Appending fails only for a map of 32768 names, and the guest's headers are limited to
            // far fewer.
            let _ = headers.try_append(self.name.clone(), self.value.clone());
        }
    }
}

impl fmt::Debug for InjectedHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {}: (redacted)", self.origin, self.name)
    }
}

const AN_ORIGIN: &str = "is no origin; write scheme, host and perhaps a port, as in \
                         `https://api.example.com:8443`";

/// Returns `true` for headers about the destination, the length or the connection of a request.
pub(crate) fn is_framing(name: &HeaderName) -> bool {
    const FRAMING: [&str; 10] = [
        "connection",
        "content-length",
        "expect",
        "host",
        "http2-settings",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    FRAMING.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}
