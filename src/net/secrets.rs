//! Secrets in an exchange: into its request for the hosts that may have them, and out of its
//! response.

use std::sync::Arc;

use hyper::body::Bytes;
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::response::Parts;

use super::body::Payload;
use super::error::NetError;
use super::limits::NetLimits;
use super::redirect::Hop;
use super::rules::{OriginSecrets, Secrets, TooLong};
use super::target::CheckedTarget;
use crate::data::redact::Redactor;
use crate::data::shown::shown;

/// The largest body that gets secrets, without and with them, in bytes.
const BODY_BYTES: usize = 1 << 20;
const FILLED_BODY_BYTES: usize = 2 << 20;

/// What a request is sent with in place of what the guest has written.
pub(super) struct Filled {
    pub(super) headers: HeaderMap,
    /// The path and the query.
    pub(super) path: Option<String>,
    pub(super) body: Option<Bytes>,
}

/// Returns the headers of a hop, and what has secrets in it.
pub(super) async fn fill(
    secrets: &Secrets,
    hop: &mut Hop,
    (target, path): (&CheckedTarget, &str),
    limits: &NetLimits,
) -> Result<Filled, NetError> {
    if secrets.is_empty() {
        return Ok(Filled { headers: hop.wire_headers(target)?, path: None, body: None });
    }
    let own = secrets.of(target.origin());
    if own.has_bodies() {
        hop.payload.collect(BODY_BYTES).await?;
    }
    let mut headers = hop.wire_headers(target)?;
    ask_for_what_can_be_read(&mut headers, &own);
    let too_long = |what: &str, TooLong { limit, needed }| {
        NetError::limit(&format!("bytes of {what} with its secrets"), limit as u64, needed as u64)
    };
    let body = match &hop.payload {
        Payload::Whole(body) if body.len() <= BODY_BYTES => own
            .filled_body(&headers, body, FILLED_BODY_BYTES)
            .map_err(|error| too_long("a body", error))?,
        _ => None,
    };
    if let Some(body) = &body {
        headers.insert(header::CONTENT_LENGTH, body.len().into());
    }
    own.fill_headers(&mut headers, limits.header_bytes)
        .map_err(|error| too_long("a request's headers", error))?;
    let path = own.filled_path(path, NetLimits::URL_BYTES);
    let path = path.map_err(|error| too_long("a URL", error))?;
    Ok(Filled { headers, path, body })
}

/// Asks for a body whose secrets can be found: none that is in an encoding unknown to the host, and
/// from a host that has secrets no part of a body, which could have a part of one.
fn ask_for_what_can_be_read(headers: &mut HeaderMap, own: &OriginSecrets<'_>) {
    if !own.is_empty() {
        headers.remove(header::RANGE);
        headers.remove(header::IF_RANGE);
    }
    let asked = headers.get(header::ACCEPT_ENCODING);
    if asked.is_some_and(|asked| asked != "identity") {
        let known = if headers.contains_key(header::RANGE) { "identity" } else { "gzip, deflate" };
        headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(known));
    }
}

/// Removes secrets from the head of a response.
pub(super) fn redact_head(parts: &mut Parts, redactor: &Redactor) {
    if redactor.is_empty() {
        return;
    }
    let reason = parts.extensions.get::<ReasonPhrase>();
    if let Some(clean) = reason.and_then(|reason| redactor.redact(reason.as_bytes())) {
        parts.extensions.remove::<ReasonPhrase>();
        if let Ok(reason) = ReasonPhrase::try_from(clean) {
            parts.extensions.insert(reason);
        }
    }
    // Names are in lower case.
    let has_secret = |name: &HeaderName| redactor.is_in_any_case(name.as_str());
    let names: Vec<HeaderName> =
        parts.headers.keys().filter(|name| has_secret(name)).cloned().collect();
    for name in names {
        parts.headers.remove(name);
    }
    for value in parts.headers.values_mut() {
        if let Some(clean) = redactor.redact(value.as_bytes()) {
            // A placeholder is valid in a header.
            *value = HeaderValue::from_bytes(&clean).unwrap_or(HeaderValue::from_static(""));
        }
    }
}

/// Fails if secrets could not be found in a body, because of an encoding that was not decoded.
pub(super) fn check_encoding(headers: &HeaderMap, server: &str) -> Result<(), NetError> {
    let expected = |name: &HeaderName| {
        if *name == header::TRANSFER_ENCODING { "chunked" } else { "identity" }
    };
    for name in [header::CONTENT_ENCODING, header::TRANSFER_ENCODING] {
        for value in headers.get_all(&name) {
            let value = String::from_utf8_lossy(value.as_bytes());
            if !value.trim().eq_ignore_ascii_case(expected(&name)) {
                return Err(NetError::connection(format!(
                    "{server} sent a body with `{name}: {}`, in which isolet cannot look for the \
                     secrets that it keeps from this code; it accepts gzip and deflate",
                    shown(&value)
                )));
            }
        }
    }
    Ok(())
}

/// Returns what removes secrets from bodies, if there are any.
pub(super) fn redactor(secrets: &Secrets) -> Option<Arc<Redactor>> {
    (!secrets.is_empty()).then(|| Arc::clone(secrets.redactor()))
}
