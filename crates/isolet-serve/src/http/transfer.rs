//! Charges the bytes of requests and answers to their tenant while they are transferred.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::MAX_BODY_BYTES;
use super::problem::Problem;
use isolet_service::node::{Charge, RequestPermit};

/// How long, and how much, a refused client may continue to send. A client that is sending does not
/// read the answer; closing the connection would reset it.
const LINGER: Duration = Duration::from_secs(2);
const LINGER_BYTES: usize = MAX_BODY_BYTES;

/// The longest pause of a client in the middle of a body.
const SILENCE: Duration = Duration::from_secs(30);

/// The size of the pieces in which an answer is sent. Unsent pieces stay charged.
const PIECE_BYTES: usize = 64 << 10;

/// The charge of a request. It is among the request's extensions.
#[derive(Clone)]
pub(super) struct Transfer {
    charge: Arc<Mutex<Charge>>,
    _permit: Arc<RequestPermit>,
}

impl Transfer {
    pub(super) fn new(charge: Charge, permit: Arc<RequestPermit>) -> Self {
        Self { charge: Arc::new(Mutex::new(charge)), _permit: permit }
    }

    pub(super) fn charge(&self) -> MutexGuard<'_, Charge> {
        self.charge.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Charges more bytes.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Problem> {
        self.charge().take(bytes as u64).map_err(Problem::from)
    }
}

/// A body was refused.
#[derive(Debug)]
struct Refused(Problem);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.detail())
    }
}

impl Error for Refused {}

/// Returns the problem that caused an error of reading a body.
pub(super) fn problem(error: &(dyn Error + 'static)) -> Problem {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(Refused(problem)) = error.downcast_ref() {
            return problem.clone();
        }
        cause = error.source();
    }
    Problem::unreadable(error.to_string())
}

/// Reads a whole body.
pub(super) async fn read(mut body: Body) -> Result<Bytes, Problem> {
    let too_large = || Problem::too_large(MAX_BODY_BYTES);
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let mut first = Bytes::new();
    let mut all = Vec::new();
    loop {
        let frame = in_time(body.frame()).await?;
        let Some(frame) = frame else { break };
        let frame = frame.map_err(|error| problem(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + all.len() + data.len() > MAX_BODY_BYTES {
            return Err(too_large());
        }
        if first.is_empty() && all.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            let more = usize::try_from(body.size_hint().lower()).unwrap_or_default();
            all.reserve((first.len() + data.len() + more).min(MAX_BODY_BYTES));
            all.extend_from_slice(&std::mem::take(&mut first));
        }
        all.extend_from_slice(&data);
    }
    Ok(if all.is_empty() { first } else { all.into() })
}

/// Waits for a part of a body, up to the longest pause.
pub(super) async fn in_time<T>(part: impl Future<Output = T>) -> Result<T, Problem> {
    timeout(SILENCE, part).await.map_err(|_| Problem::too_slow(SILENCE.as_secs()))
}

/// The body of a request. When dropped, it reads and discards the rest, so that the client gets to
/// read the answer.
pub(super) struct Upload {
    body: Body,
    lingers: bool,
    transfer: Option<Transfer>,
}

impl Upload {
    pub(super) fn new(body: Body, lingers: bool) -> Self {
        Self { body, lingers, transfer: None }
    }

    pub(super) fn count(&mut self, transfer: Transfer) {
        self.transfer = Some(transfer);
    }
}

impl HttpBody for Upload {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        let length = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        let taken = self.transfer.as_ref().map_or(Ok(()), |transfer| transfer.take(length));
        Poll::Ready(match taken {
            Ok(()) => frame,
            Err(problem) => Some(Err(axum::Error::new(Refused(problem)))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if self.body.is_end_stream() || !self.lingers {
            return;
        }
        let mut body = std::mem::take(&mut self.body);
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(timeout(LINGER, async move {
            let mut left = LINGER_BYTES;
            while let Some(Ok(frame)) = body.frame().await {
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(length) else { return };
                left = rest;
            }
        }));
    }
}

/// The body of an answer, in pieces. Unsent bytes are charged to the tenant.
pub(super) struct Download {
    body: Body,
    /// The unsent rest of the current part.
    rest: Bytes,
    charge: Charge,
    _permit: Arc<RequestPermit>,
}

impl Download {
    pub(super) fn new(body: Body, mut charge: Charge, permit: Arc<RequestPermit>) -> Self {
        // From here on, not from the start of sending.
        charge.note(body.size_hint().lower());
        Self { body, rest: Bytes::new(), charge, _permit: permit }
    }
}

impl HttpBody for Download {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            self.charge.clear();
            let frame = match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                end => return Poll::Ready(end),
            };
            match frame.into_data() {
                Ok(data) => self.rest = data,
                Err(frame) => return Poll::Ready(Some(Ok(frame))),
            }
            let length = self.rest.len() as u64;
            self.charge.note(length);
        }
        let length = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (left, inner) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower() + left);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + left);
        }
        hint
    }
}
