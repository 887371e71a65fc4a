//! The two pipes of the protocol: a thread that reads requests, and a function that writes events.

use std::io;
use std::process::exit;

use prost::Message;
use tokio::sync::mpsc;

use super::messages::events::ChildEvent;
use super::messages::requests::{ParentRequest, Request};
use isolet_support::frames::{self, Frame, Input};

/// The longest event that clients read, in bytes.
pub(super) const MAX_EVENT_BYTES: usize = 256 << 20;

/// The most requests that wait for their turn. A client that sends more waits until they are read.
const MAX_WAITING: usize = 64;

/// A request, or why there is none.
pub(super) type Incoming = Result<Request, String>;

/// Reads requests on a separate thread, which ends the process with its input: a client that has
/// gone needs nothing more, and the guest may be busy.
pub(super) fn open() -> io::Result<mpsc::Receiver<Incoming>> {
    let input = rustix::stdio::stdin().try_clone_to_owned()?;
    let (sender, requests) = mpsc::channel(MAX_WAITING);
    let read = move || {
        let mut input = Input::new(std::fs::File::from(input));
        loop {
            let incoming = match input.next(|frame| ParentRequest::decode(frame)) {
                Ok(None) => end(),
                Ok(Some(request)) => request
                    .map_err(|error| format!("a request cannot be read: {error}"))
                    .and_then(|request| request.kind.ok_or("a request has no kind".to_owned())),
                Err(error) => Err(error.to_string()),
            };
            let is_over = incoming.is_err();
            if sender.blocking_send(incoming).is_err() || is_over {
                return;
            }
        }
    };
    std::thread::Builder::new().name("isolet-monty-stdin".to_owned()).spawn(read)?;
    Ok(requests)
}

#[expect(clippy::exit, reason = "the workers notice it, and nothing else has to be put in order")]
fn end() -> ! {
    exit(0)
}

/// Writes an event. Returns its length instead if the client would refuse it.
pub(super) fn write(event: &ChildEvent) -> io::Result<Result<(), usize>> {
    let length = event.encoded_len();
    if length > MAX_EVENT_BYTES {
        return Ok(Err(length));
    }
    let mut frame = Frame::default();
    event.encode(frame.body()).map_err(io::Error::other)?;
    match frame.finish() {
        Ok(frame) => frames::write(&frame).map(Ok),
        Err(length) => Ok(Err(length)),
    }
}
