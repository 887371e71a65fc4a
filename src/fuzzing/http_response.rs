//! What a server answers to a guest's request: compressed bodies, and redirects.

use std::net::{IpAddr, Ipv4Addr};

use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};

use super::memory::measured;
use super::net_rules::target;
use crate::net::body::Payload;
use crate::net::decode::Decoder;
use crate::net::redirect::{Hop, location};

/// The most bytes that one step of decoding makes of a compressed piece: it has 1024 bytes, of
/// which one becomes 1032, and the decompressor may keep a window of 32 KiB back.
const MAX_STEP: usize = 1024 * 1032 + (32 << 10);
/// What a step may take: its output, which doubles, and the decompressor.
const STEP_MEMORY: usize = 4 * MAX_STEP;
/// Decoded bytes that one input is worth.
const WORTH_READING: usize = 8 << 20;
/// The most redirects that are followed.
const MAX_REDIRECTS: u32 = 10;

/// Decodes the bytes, by their first one, as a body, or follows a redirect to them. A body is the
/// same however it arrives, and no step makes more than a bomb's; a redirect leads to an absolute
/// URL, and elsewhere without credentials.
pub fn http_response(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 3 {
        0 => body(data, "gzip"),
        1 => body(data, "deflate"),
        _ => redirect(data),
    }
}

fn body(data: &[u8], coding: &'static str) {
    let Some(whole) = decoded(data, coding, usize::MAX) else { return };
    for piece in [1, 7] {
        let again = decoded(data, coding, piece);
        assert!(again.as_ref() == Some(&whole), "pieces of {piece} bytes make another body");
    }
}

/// Decodes a body that arrives in pieces of this length. Returns it, or that it ends with an error,
/// or `None` if it is longer than it is worth.
fn decoded(data: &[u8], coding: &'static str, piece: usize) -> Option<Result<Vec<u8>, ()>> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(coding));
    let mut decoder = Decoder::new(&headers);
    assert!(decoder.is_some(), "{coding} is unknown");
    let decoder = decoder.as_mut()?;
    let (mut body, mut steps) = (Vec::new(), 0);
    for arrived in data.chunks(piece.min(data.len()).max(1)) {
        let mut raw = Bytes::copy_from_slice(arrived);
        while !raw.is_empty() {
            let (step, used) = measured(|| decoder.step(&mut raw));
            assert!(used.peak <= STEP_MEMORY, "{used:?}");
            let Ok(step) = step else { return Some(Err(())) };
            assert!(step.len() <= MAX_STEP, "{} bytes at once", step.len());
            // Only the second step may take nothing: it looks at the first byte again.
            steps += 1;
            assert!(steps <= data.len() + 1, "{steps} steps for {} bytes", data.len());
            body.extend_from_slice(&step);
        }
        if body.len() > WORTH_READING {
            return None;
        }
    }
    let Ok(end) = decoder.finish() else { return Some(Err(())) };
    body.extend_from_slice(&end);
    Some(Ok(body))
}

/// Follows one redirect after another, of which each is a line of the bytes.
fn redirect(data: &[u8]) {
    const START: &str = "https://api.example.com/a/b?c#d";
    let mut hop = Hop {
        method: Method::POST,
        url: START.to_owned(),
        headers: HeaderMap::new(),
        payload: Payload::Whole(Bytes::from_static(b"body")),
        count: 0,
        secure: false,
    };
    for line in data.split(|byte| *byte == b'\n') {
        let Some((status, to)) = line.split_first() else { return };
        let Ok(status) = StatusCode::from_u16(300 + u16::from(*status) % 10) else { return };
        let Ok(value) = HeaderValue::from_bytes(to) else { return };
        let Some(from) = target(&hop.url, IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34))) else {
            return;
        };
        let answer = HeaderMap::from_iter([(header::LOCATION, value)]);
        let Some(to) = location(status, &answer) else { return };
        for name in [header::AUTHORIZATION, header::COOKIE, header::CONTENT_TYPE] {
            hop.headers.insert(name, HeaderValue::from_static("x"));
        }
        let (before, method) = (hop.count, hop.method.clone());
        if let Err(error) = hop.follow(&from, status, to, MAX_REDIRECTS) {
            let message = error.message;
            assert!(!message.contains(['\n', '\r']), "{message:?}");
            return;
        }
        assert!(hop.count == before + 1 && hop.count <= MAX_REDIRECTS);
        assert_eq!(hop.secure, from.is_https());
        let Ok(url) = url::Url::parse(&hop.url) else { unreachable!("{:?} is no URL", hop.url) };
        if url.origin() != from.url().origin() {
            assert!(!hop.headers.contains_key(header::AUTHORIZATION), "{url}");
            assert!(!hop.headers.contains_key(header::COOKIE), "{url}");
        }
        if hop.method != method {
            assert_eq!(hop.method, Method::GET);
            assert!(!hop.headers.contains_key(header::CONTENT_TYPE), "{url}");
            assert_eq!(hop.payload.declared(), Some(0));
        }
    }
}
