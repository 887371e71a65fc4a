//! Frames of the guest's glue: reports, requests, answers.

use super::memory::measured;
use super::value::{encoded, same};
use crate::data::execution::PyException;
use crate::data::value::marshal::MAX_DEPTH;
use crate::data::value::{Value, check_bounds};
use crate::net::NetLimits;
use crate::net::body::Streamed;
use crate::net::guest::decode_request;
use crate::net::request::{Body, Prepared, Redirect, Request};
use crate::net::rules::is_framing;
use crate::protocol::codec::{decode, decode_answer, encode_answer};
use crate::protocol::{Report, Status};

/// How many times the length of a frame decoding it may take: its value, and a copy of its texts.
const PEAK_FACTOR: usize = 100;
/// How many times its length a name may have, whose control characters are written out.
const ESCAPED: usize = 6;
/// What lists of a false length may have reserved when that is noticed.
const RESERVED: usize = (MAX_DEPTH + 1) * 1024 * 32;

/// Takes bytes for each kind of frame. A report has no more text than the frame and is whole, a
/// request is what it says and is refused or prepared within the limits, an answer survives being
/// encoded.
pub fn frame(data: &[u8]) {
    let (report, used) = measured(|| decode(data, data.len() as u64));
    let peak = PEAK_FACTOR * data.len() + RESERVED;
    assert!(used.peak <= peak, "{} bytes took {used:?}", data.len());
    if let Ok(report) = report {
        let text = text_bytes(&report);
        assert!(text <= ESCAPED * data.len(), "{} bytes became {text} bytes of text", data.len());
    }
    if let Ok(request) = decode_request(data) {
        is_stable(&request);
        check_prepared(request);
    }
    answer(data);
}

/// The bytes of all texts of a report. Exceptions do not cause each other without an end.
fn text_bytes(report: &Report) -> usize {
    let exception = match &report.status {
        Status::Completed => None,
        Status::Raised(exception) => Some(exception),
        Status::Exited(_, exception) => exception.as_ref(),
    };
    let causes: Vec<&PyException> =
        std::iter::successors(exception, |exception| exception.cause.as_deref()).collect();
    assert!(causes.len() <= MAX_DEPTH, "{} exceptions", causes.len());
    let of_exceptions = causes.iter().flat_map(|exception| {
        let args = exception.args_json.as_deref().unwrap_or_default();
        [&exception.type_name, &exception.message, &exception.traceback]
            .map(String::len)
            .into_iter()
            .chain([args.len()])
    });
    let of_variables = report.locals.iter().flat_map(|variable| {
        [&variable.name, &variable.type_name, &variable.repr].map(String::len)
    });
    let others =
        [&report.repr, &report.value_error].map(|text| text.as_deref().map_or(0, str::len));
    of_exceptions.chain(of_variables).chain(others).sum()
}

/// A request that is written down as a frame is read as the same.
fn is_stable(request: &Request) {
    assert_eq!(request.redirect, Redirect::Manual);
    assert!(!request.decode && request.timeout.is_none());
    let header = |(name, value): &(String, Vec<u8>)| {
        Value::List(vec![name.as_str().into(), Value::Bytes(value.clone())])
    };
    let body = match &request.body {
        Body::None => Value::None,
        Body::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Body::Streamed => Value::Bool(true),
    };
    let fields = [
        ("method", request.method.as_str().into()),
        ("url", request.url.as_str().into()),
        ("headers", Value::List(request.headers.iter().map(header).collect())),
        ("body", body),
    ];
    let again = decode_request(&encoded(&Value::dict(fields)));
    let wanted = format!("{request:?}");
    assert!(again.as_ref().is_ok_and(|again| format!("{again:?}") == wanted), "{again:?}");
}

/// An answer that is encoded again is the same answer, or a refusal if it cannot cross.
fn answer(data: &[u8]) {
    let max = data.len() as u64;
    match decode_answer(data) {
        Ok(value) => {
            let again = decode_answer(&encode_answer(Ok(value.clone()), max));
            let is_expected = match (check_bounds(&value, max), &again) {
                (Ok(()), Ok(again)) => same(again, &value),
                (Err(_), Err(error)) => error.type_name() == "ValueError",
                _ => false,
            };
            assert!(is_expected, "{value} became {again:?}");
        }
        Err(error) => {
            let again = decode_answer(&encode_answer(Err(error.clone()), max));
            assert_eq!(again.err(), Some(error));
        }
    }
}

/// Checks that a request is refused, or is prepared within the limits, with nothing in its headers
/// that says where it goes or where it ends, and with the body that was given.
fn check_prepared(request: Request) {
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
