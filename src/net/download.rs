//! Downloads a file from a server that the owner named, over the same code that serves guests.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::request::{Body, Redirect, Request};
use super::rules::NetPolicy;
use super::{Answer, NetError, NetErrorKind, NetLimits, Network};

/// The time limit of a download.
const TIME: Duration = Duration::from_mins(5);

/// Downloads a file of at most `limit` bytes. Blocks.
pub(crate) fn download(url: &str, limit: u64) -> Result<Vec<u8>, NetError> {
    let mut policy = NetPolicy::default();
    // The owner makes this request, not a guest, and the result is compared with a digest.
    policy.dangerous_allow_all();
    let limits = NetLimits { request_time: TIME, response_bytes: limit, ..NetLimits::default() };
    let network = Network::new(Arc::new(policy), limits, Arc::new(|_| {}));
    network.begin_run();
    let request = Request {
        method: "GET".to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: Body::None,
        redirect: Redirect::Follow,
        decode: false,
        timeout: None,
    };
    let head = wait(|answer| network.start(0, request, answer))?;
    if head.status != 200 {
        let message = format!("the server answered {} {}", head.status, head.reason);
        return Err(NetError::new(NetErrorKind::Connection, message));
    }
    let mut bytes = Vec::new();
    loop {
        let piece = wait(|answer| network.read(0, NetLimits::READ_BYTES, answer))?;
        if piece.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece);
    }
}

fn wait<T: Send + 'static>(ask: impl FnOnce(Answer<T>)) -> Result<T, NetError> {
    let (sender, receiver) = mpsc::channel();
    ask(Box::new(move |result| {
        // The receiver waits below.
        let _ = sender.send(result);
    }));
    receiver.recv().unwrap_or_else(|_| Err(NetError::closed()))
}
