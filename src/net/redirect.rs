//! Follows redirects, by the rules of the Fetch standard and some stricter ones.

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};

use super::body::Payload;
use super::error::NetError;
use super::target::CheckedTarget;

/// One request of an exchange: the first, or one caused by a redirect.
pub(crate) struct Hop {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
    /// The number of redirects before it.
    pub(crate) count: u32,
    /// Set once https was used, after which http is not allowed.
    pub(crate) secure: bool,
}

/// Returns the target of a redirect; `None` if the response is not one.
pub(crate) fn location(status: StatusCode, headers: &HeaderMap) -> Option<&HeaderValue> {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
        .then(|| headers.get(header::LOCATION))
        .flatten()
}

impl Hop {
    /// Turns this hop into the request that a redirect asks for. It still has to be decided.
    pub(crate) fn follow(
        &mut self,
        from: &CheckedTarget,
        status: StatusCode,
        location: &HeaderValue,
        limit: u32,
    ) -> Result<(), NetError> {
        self.count = self.count.saturating_add(1);
        if self.count > limit {
            return Err(NetError::limit("redirects", limit.into(), self.count.into()));
        }
        let unusable =
            || NetError::connection(format!("{} redirects to what is no URL", from.server()));
        let text = std::str::from_utf8(location.as_bytes()).map_err(|_| unusable())?;
        let mut to = from.url().join(text).map_err(|_| unusable())?;
        if to.fragment().is_none() {
            to.set_fragment(from.url().fragment());
        }
        self.rewrite(status)?;
        if to.origin() != from.url().origin() {
            for name in CREDENTIALS {
                self.headers.remove(name);
            }
        }
        self.secure = from.is_https();
        self.url = to.into();
        Ok(())
    }

    /// Changes the request to a GET if its body must not be sent again.
    fn rewrite(&mut self, status: StatusCode) -> Result<(), NetError> {
        let becomes_get = match status.as_u16() {
            301 | 302 => self.method == Method::POST,
            303 => self.method != Method::GET && self.method != Method::HEAD,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.payload = Payload::Empty;
            for name in ABOUT_THE_BODY {
                self.headers.remove(name);
            }
            return Ok(());
        }
        match self.payload {
            Payload::Spent => Err(NetError::connection(format!(
                "the response {} redirects a request whose streamed body cannot be sent again",
                status.as_u16()
            ))),
            _ => Ok(()),
        }
    }

    /// Returns the headers to send with this hop, without those that the host injects for its
    /// origin.
    pub(crate) fn wire_headers(&self, target: &CheckedTarget) -> Result<HeaderMap, NetError> {
        let mut headers = self.headers.clone();
        let usual = if target.is_https() { 443 } else { 80 };
        let host = if target.port() == usual { target.host().to_string() } else { target.server() };
        let host = HeaderValue::from_maybe_shared(Bytes::from(host))
            .map_err(|_| NetError::invalid("the host cannot be in a header"))?;
        headers.insert(header::HOST, host);
        let takes_body = [Method::POST, Method::PUT, Method::PATCH].contains(&self.method);
        match self.payload.declared() {
            Some(0) if !takes_body => {}
            Some(length) => {
                headers.insert(header::CONTENT_LENGTH, length.into());
            }
            None => {
                let chunked = HeaderValue::from_static("chunked");
                headers.insert(header::TRANSFER_ENCODING, chunked);
            }
        }
        Ok(headers)
    }
}

/// Headers that the guest sets for one origin and that must not reach another.
const CREDENTIALS: [HeaderName; 3] =
    [header::AUTHORIZATION, header::PROXY_AUTHORIZATION, header::COOKIE];

const ABOUT_THE_BODY: [HeaderName; 4] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];
