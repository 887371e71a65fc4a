//! One HTTP exchange: its task, and the session's handle to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::body::Bytes;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio::time::{Instant, timeout_at};

use super::Shared;
use super::admission::ExchangePermit;
use super::body::Piece;
use super::error::{NetError, NetErrorKind};
use super::head::ResponseHead;
use super::reply::{PendingWait, Reply};
use super::request::Prepared;
use super::response::ResponseBody;

/// The session's handle to an exchange.
pub(super) struct Exchange {
    pub(super) reads: mpsc::Sender<Read>,
    pub(super) sending: Option<Sending>,
    pub(super) waits: Waits,
    pub(super) ended: Ended,
    pub(super) task: AbortHandle,
}

/// Set when an exchange is closed, so that it does not take its turn later.
pub(super) type Ended = Arc<AtomicBool>;

/// Closes exchanges. All are marked as ended first, so that none takes the place that another one
/// frees.
pub(super) fn end(exchanges: impl Iterator<Item = Exchange>) {
    let exchanges: Vec<Exchange> = exchanges.collect();
    for exchange in &exchanges {
        exchange.ended.store(true, Ordering::SeqCst);
    }
    drop(exchanges);
}

/// The callers that wait for an answer of an exchange.
#[derive(Default)]
pub(super) struct Waits {
    pub(super) head: PendingWait,
    pub(super) send: PendingWait,
    pub(super) read: PendingWait,
}

impl Exchange {
    pub(super) fn is_waited_for(&self) -> bool {
        [&self.waits.head, &self.waits.send, &self.waits.read].iter().any(|w| w.is_waited_for())
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The sending half of a streamed body.
pub(super) struct Sending {
    pub(super) pieces: mpsc::Sender<Piece>,
    /// The rest of the declared length, in bytes.
    pub(super) left: Option<u64>,
}

impl Sending {
    /// Converts a chunk, if the declared length has room for it. An empty chunk ends the body;
    /// returns `None` if the length implies the end already.
    pub(super) fn piece(&mut self, chunk: Vec<u8>) -> Result<Option<Piece>, NetError> {
        let length = chunk.len() as u64;
        if let Some(left) = &mut self.left {
            let problem = match left.checked_sub(length) {
                None => Some(format!("{length} bytes of the body are sent, {left} are left")),
                Some(1..) if length == 0 => Some(format!("the body ends with {left} bytes left")),
                Some(rest) => {
                    *left = rest;
                    None
                }
            };
            if let Some(problem) = problem {
                let message = format!("{problem} of the declared Content-Length");
                return Err(NetError::invalid(message));
            }
        }
        Ok(match self.left {
            Some(0) if length == 0 => None,
            _ if length == 0 => Some(Piece::End),
            _ => Some(Piece::Data(Bytes::from(chunk))),
        })
    }
}

/// A read that must be answered.
pub(super) struct Read {
    pub(super) max: usize,
    pub(super) reply: Reply<Vec<u8>>,
}

/// A year. Longer durations could overflow the clock.
const LONGEST: Duration = Duration::from_hours(24 * 365);

/// The task of an exchange.
pub(super) struct Task {
    pub(super) shared: Arc<Shared>,
    pub(super) number: u32,
    pub(super) request: Prepared,
    pub(super) permit: ExchangePermit,
    pub(super) head: Reply<ResponseHead>,
    pub(super) reads: mpsc::Receiver<Read>,
    pub(super) time: Duration,
    pub(super) ended: Ended,
}

impl Task {
    pub(super) async fn run(self) {
        let Self { shared, number, request, permit, head, reads, time, ended } = self;
        let clock = Clock { deadline: Instant::now() + time.min(LONGEST), time };
        let client = Arc::clone(&shared.client);
        let fetch = async move {
            let (_under_way, open) = permit.turn().await?;
            if ended.load(Ordering::SeqCst) {
                return Err(NetError::closed());
            }
            Ok((client.fetch(request).await?, open))
        };
        match clock.limit(fetch).await {
            Ok(((response, body), _open)) => {
                head.give(Ok(response));
                serve_reads(body, reads, &clock).await;
            }
            Err(error) => {
                // Done first, so that the number can be reused as soon as the answer arrives.
                shared.forget(number);
                head.give(Err(error));
            }
        }
    }
}

/// Connects to a server once it is the attempt's turn.
pub(super) async fn connect(
    shared: Arc<Shared>,
    number: u32,
    (host, port): (String, u32),
    permit: ExchangePermit,
    reply: Reply<()>,
    ended: Ended,
) {
    let connect = async {
        let _permits = permit.turn().await?;
        if ended.load(Ordering::SeqCst) {
            return Err(NetError::closed());
        }
        shared.client.connect(&host, port).await
    };
    let connected = connect.await;
    // Done first, so that the number can be reused as soon as the answer arrives.
    shared.forget(number);
    reply.give(connected);
}

/// Answers reads until the exchange is closed. A body that fails or takes too long is dropped at
/// once.
async fn serve_reads(body: ResponseBody, mut reads: mpsc::Receiver<Read>, clock: &Clock) {
    let mut body = Ok(body);
    loop {
        let read = match &body {
            Ok(open) if !open.is_over() => timeout_at(clock.deadline, reads.recv()).await,
            _ => Ok(reads.recv().await),
        };
        let Read { max, reply } = match read {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(_) => {
                body = Err(clock.expired());
                continue;
            }
        };
        let result = match &mut body {
            Ok(open) => clock.limit(open.read(max)).await,
            Err(error) => Err(error.clone()),
        };
        if let Err(error) = &result {
            body = Err(error.clone());
        }
        reply.give(result);
    }
}

/// The time limit of an exchange.
struct Clock {
    deadline: Instant,
    time: Duration,
}

impl Clock {
    async fn limit<T>(
        &self,
        work: impl Future<Output = Result<T, NetError>>,
    ) -> Result<T, NetError> {
        timeout_at(self.deadline, work).await.unwrap_or_else(|_| Err(self.expired()))
    }

    fn expired(&self) -> NetError {
        NetError::new(
            NetErrorKind::Timeout,
            format!("the request took longer than {} s", self.time.as_secs_f64()),
        )
    }
}
