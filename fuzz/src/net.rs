//! The files of `src/net` that decide about a request before anything is connected.

#[path = "../../src/net/body.rs"]
mod body;
#[path = "../../src/net/error.rs"]
mod error;
#[path = "../../src/net/guest.rs"]
pub(crate) mod guest;
#[path = "../../src/net/head.rs"]
mod head;
#[path = "../../src/net/limits.rs"]
mod limits;
#[path = "../../src/net/request.rs"]
mod request;
#[path = "../../src/net/resolve.rs"]
pub(crate) mod resolve;
#[path = "../../src/net/rules/mod.rs"]
pub(crate) mod rules;
#[path = "../../src/net/target.rs"]
pub(crate) mod target;

use body::Streamed;
pub(crate) use limits::NetLimits;
use request::Prepared;
pub(crate) use request::{Body, Redirect, Request};

use crate::net::rules::is_framing;

/// Checks that a request is refused, or is prepared within the limits, with nothing in its headers
/// that says where it goes or where it ends, and with the body that was given.
pub(crate) fn check_prepared(request: Request) {
    const FORBIDDEN: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];
    let limits = NetLimits::default();
    let wanted = (request.method.clone(), request.url.clone());
    let whole = match &request.body {
        Body::None => Some(0),
        Body::Bytes(bytes) => Some(bytes.len() as u64),
        Body::Streamed => None,
    };
    let mut declared = None;
    let prepared = Prepared::new(request, &limits, |length| {
        declared = Some(length);
        Streamed::new(length).1
    });
    let Ok(prepared) = prepared else { return };
    assert_eq!((prepared.method.as_str(), &prepared.url), (wanted.0.as_str(), &wanted.1));
    assert!(!FORBIDDEN.iter().any(|name| wanted.0.eq_ignore_ascii_case(name)), "{}", wanted.0);
    assert!(wanted.1.len() <= NetLimits::URL_BYTES);
    assert!(prepared.headers.len() <= limits.headers);
    for (name, value) in &prepared.headers {
        assert!(!is_framing(name), "{name}");
        assert!(!value.as_bytes().iter().any(|byte| b"\r\n\0".contains(byte)), "{name}: {value:?}");
    }
    assert!(prepared.head_bytes() <= wanted.0.len() + wanted.1.len() + limits.header_bytes);
    // The length of a streamed body is that of its header, if there was one.
    assert_eq!(whole.is_none(), declared.is_some());
    assert_eq!(prepared.payload.declared(), whole.or(declared.flatten()));
}
