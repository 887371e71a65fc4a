//! Requests as the guest describes them, and their checked form.

use std::time::Duration;

use hyper::Method;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::body::{Payload, Streamed};
use super::error::NetError;
use super::limits::NetLimits;
use super::rules::{Host, is_framing};
use crate::data::shown::shown;

/// A request, as the guest describes it.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Body,
    pub(crate) redirect: Redirect,
    /// Asks for a compressed body and decompresses it.
    pub(crate) decode: bool,
    /// The request's own time limit. It can only shorten the limit of the exchange.
    pub(crate) timeout: Option<Duration>,
}

/// A request's body.
#[derive(Debug)]
pub(crate) enum Body {
    None,
    Bytes(Vec<u8>),
    /// The body is sent with [`Network::send`](super::Network::send). It cannot be sent twice, so
    /// it cannot follow a redirect that keeps the body.
    Streamed,
}

/// How to handle a redirect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Redirect {
    Follow,
    /// Return it as the response.
    Manual,
    /// Fail.
    Error,
}

/// A request with checked headers and body. Its URL has not been decided yet.
pub(crate) struct Prepared {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) payload: Payload,
    pub(crate) redirect: Redirect,
    pub(crate) decode: bool,
}

impl Prepared {
    /// Checks a request. A streamed body is read from `streamed`, which was made for its declared
    /// length.
    pub(crate) fn new(
        request: Request,
        limits: &NetLimits,
        streamed: impl FnOnce(Option<u64>) -> Streamed,
    ) -> Result<Self, NetError> {
        let Request { method, url, headers, body, redirect, decode, timeout: _ } = request;
        if url.len() > NetLimits::URL_BYTES {
            let (limit, needed) = (NetLimits::URL_BYTES as u64, url.len() as u64);
            return Err(NetError::limit("bytes of a URL", limit, needed));
        }
        let method = check_method(&method)?;
        let (mut headers, declared) = check_headers(headers, &url, &body, limits)?;
        let payload = match body {
            Body::None => Payload::Empty,
            Body::Bytes(bytes) => Payload::Whole(Bytes::from(bytes)),
            Body::Streamed => Payload::Streamed(streamed(declared)),
        };
        let asks = headers.contains_key(header::ACCEPT_ENCODING);
        // A range refers to the stored bytes, so such a request must not be compressed.
        if decode && !asks && !headers.contains_key(header::RANGE) {
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("gzip, deflate"));
        }
        Ok(Self { method, url, headers, payload, redirect, decode })
    }

    /// Returns the approximate size of the request's head, in bytes.
    pub(crate) fn head_bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        self.method.as_str().len() + self.url.len() + headers.sum::<usize>()
    }
}

fn check_method(method: &str) -> Result<Method, NetError> {
    const LONGEST: usize = 32;
    let refuse = |why: &str| {
        let shown: String = method.chars().take(LONGEST).collect();
        Err(NetError::invalid(format!("the method `{}` {why}", shown.escape_debug())))
    };
    match Method::from_bytes(method.as_bytes()) {
        _ if method.len() > LONGEST => refuse("is longer than 32 bytes"),
        Err(_) => refuse("is not valid in HTTP"),
        Ok(_) if ["CONNECT", "TRACE", "TRACK"].iter().any(|m| method.eq_ignore_ascii_case(m)) => {
            refuse("is not allowed")
        }
        Ok(method) => Ok(method),
    }
}

/// Checks the guest's headers. Returns those that are sent unchanged, and the declared length of a
/// streamed body.
fn check_headers(
    headers: Vec<(String, Vec<u8>)>,
    url: &str,
    body: &Body,
    limits: &NetLimits,
) -> Result<(HeaderMap, Option<u64>), NetError> {
    if headers.len() > limits.headers {
        let (limit, needed) = (limits.headers as u64, headers.len() as u64);
        return Err(NetError::limit("headers of a request", limit, needed));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    if bytes > limits.header_bytes {
        let (limit, needed) = (limits.header_bytes as u64, bytes as u64);
        return Err(NetError::limit("bytes of a request's headers", limit, needed));
    }
    let mut checked = HeaderMap::new();
    let (mut declared, mut chunked) = (None, false);
    for (name, value) in headers {
        let shown = shown(&name);
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| {
            NetError::invalid(format!("the header name `{shown}` is not valid in HTTP"))
        })?;
        let value = HeaderValue::from_bytes(&value).map_err(|_| {
            NetError::invalid(format!("the value of the header `{shown}` is not valid in HTTP"))
        })?;
        let text = value.to_str().unwrap_or_default().trim().to_owned();
        let refused = || {
            let text = self::shown(&text);
            NetError::invalid(format!("the header `{shown}: {text}` cannot be set"))
        };
        if header == header::CONTENT_LENGTH && declared.is_none() {
            declared = Some(declared_length(&text, body).ok_or_else(refused)?);
        } else if header == header::TRANSFER_ENCODING && matches!(body, Body::Streamed) {
            // Python's clients send this header with a body of unknown length, which is sent in
            // chunks anyway.
            if chunked || !text.eq_ignore_ascii_case("chunked") {
                return Err(refused());
            }
            chunked = true;
        } else if is_framing(&header) {
            let repeats_what_is_sent = (header == header::HOST && is_authority(&text, url))
                || (header == header::CONNECTION
                    && ["close", "keep-alive"].iter().any(|v| text.eq_ignore_ascii_case(v)));
            if !repeats_what_is_sent {
                return Err(refused());
            }
        } else {
            checked.try_append(header, value).map_err(|_| refused())?;
        }
    }
    if chunked && declared.is_some() {
        return Err(NetError::invalid(
            "the headers `Content-Length` and `Transfer-Encoding` cannot be set both",
        ));
    }
    Ok((checked, declared.filter(|_| matches!(body, Body::Streamed))))
}

/// Parses a declared length, which must match the body.
fn declared_length(text: &str, body: &Body) -> Option<u64> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let length = text.parse::<u64>().ok().filter(|_| digits)?;
    let fits = match body {
        Body::None => length == 0,
        Body::Bytes(bytes) => length == bytes.len() as u64,
        Body::Streamed => true,
    };
    fits.then_some(length)
}

/// Returns `true` if a `Host` header matches the URL. If the URL is invalid the result does not
/// matter: the decision will deny it.
fn is_authority(text: &str, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return true };
    let Some(host) = url.host() else { return true };
    let canonical = Host::from_url(&host).map(|host| host.to_string()).unwrap_or_default();
    [canonical, host.to_string()].iter().any(|host| {
        let port = url.port_or_known_default().unwrap_or_default();
        text.eq_ignore_ascii_case(&format!("{host}:{port}"))
            || (url.port().is_none() && text.eq_ignore_ascii_case(host))
    })
}
