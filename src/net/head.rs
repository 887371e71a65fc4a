//! The head of a response.

use hyper::Version;
use hyper::ext::ReasonPhrase;
use hyper::header::HeaderMap;
use hyper::http::response::Parts;

use super::error::NetError;
use super::limits::NetLimits;
use super::target::CheckedTarget;

/// The head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResponseHead {
    pub(crate) status: u16,
    pub(crate) reason: String,
    /// 10 for HTTP/1.0, 11 for HTTP/1.1.
    pub(crate) version: u8,
    /// The URL that sent the response, after redirects.
    pub(crate) url: String,
    pub(crate) redirected: bool,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

impl ResponseHead {
    pub(super) fn new(parts: &Parts, target: &CheckedTarget, redirected: bool) -> Self {
        let reason = match parts.extensions.get::<ReasonPhrase>() {
            Some(reason) => String::from_utf8_lossy(reason.as_bytes()).into_owned(),
            None => parts.status.canonical_reason().unwrap_or_default().to_owned(),
        };
        let headers = parts.headers.iter();
        Self {
            status: parts.status.as_u16(),
            reason,
            version: if parts.version == Version::HTTP_10 { 10 } else { 11 },
            url: target.url().to_string(),
            redirected,
            headers: headers
                .map(|(name, value)| (name.as_str().to_owned(), value.as_bytes().to_vec()))
                .collect(),
        }
    }
}

/// Rejects headers that exceed their limits.
pub(super) fn check_headers(headers: &HeaderMap, limits: &NetLimits) -> Result<(), NetError> {
    if headers.len() > limits.headers {
        let (limit, needed) = (limits.headers as u64, headers.len() as u64);
        return Err(NetError::limit("headers of a response", limit, needed));
    }
    let bytes: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
    if bytes > limits.header_bytes {
        let (limit, needed) = (limits.header_bytes as u64, bytes as u64);
        return Err(NetError::limit("bytes of a response's headers", limit, needed));
    }
    Ok(())
}
