//! Egress: the only way from a guest to the network.
//!
//! Every request, and every redirect, goes through [`target::decide`]; connections are opened to
//! the addresses that it vetted and to no others. A [`Network`] is one session's: connections, TLS
//! tickets and budgets are shared with no other session, and there is no cookie jar and no cache at
//! all.

mod admission;
mod body;
mod budget;
mod client;
mod connection;
mod decode;
mod download;
mod error;
mod event;
mod exchange;
mod guest;
mod head;
mod limits;
mod pool;
mod redirect;
mod reply;
mod request;
mod resolve;
mod response;
pub(crate) mod rules;
mod runtime;
mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::admission::{Admission, Place};
use self::body::{Piece, Streamed};
use self::budget::Budget;
use self::client::Client;
pub(crate) use self::download::download;
pub(crate) use self::error::{NetError, NetErrorKind};
pub(crate) use self::event::NetEvent;
use self::exchange::{Ended, Exchange, Read, Sending, Task, Waits};
pub(crate) use self::guest::{decode_request, fetch_request, response_head};
use self::head::ResponseHead;
pub(crate) use self::limits::NetLimits;
use self::pool::Pool;
pub(crate) use self::reply::Answer;
use self::reply::{Owed, Reply};
use self::request::Prepared;
use self::request::Request;
use self::resolve::{Resolve, SystemResolver};
use self::rules::NetPolicy;
use self::tls::Tls;

/// What is told of decisions. It must not block: all sessions wait for it.
pub(crate) type EventSink = Arc<dyn Fn(NetEvent) + Send + Sync>;

/// The exchanges of one session. Dropping it ends everything it has under way.
///
/// Answers are given on a thread of their own or before the call returns, and must not block.
pub(crate) struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    client: Arc<Client>,
    admission: Admission,
    exchanges: Mutex<HashMap<u32, Exchange>>,
}

impl Network {
    pub(crate) fn new(policy: Arc<NetPolicy>, limits: NetLimits, events: EventSink) -> Self {
        Self::with_parts(policy, limits, events, Arc::new(SystemResolver::new()), Tls::new())
    }

    fn with_parts(
        policy: Arc<NetPolicy>,
        limits: NetLimits,
        events: EventSink,
        resolver: Arc<dyn Resolve>,
        tls: Tls,
    ) -> Self {
        let admission = Admission::new(&limits);
        let (pool, budget) = (Pool::default(), Budget::default());
        let client = Client { policy, limits, events, resolver, tls, pool, budget };
        let exchanges = Mutex::default();
        Self { shared: Arc::new(Shared { client: Arc::new(client), admission, exchanges }) }
    }

    /// Says whether requests to a server may be allowed, as far as that is known without looking
    /// its name up. Only a refusal is told as an event: what is allowed is decided with the
    /// request.
    pub(crate) fn check(&self, host: &str, port: u32) -> Result<(), NetError> {
        let client = &self.shared.client;
        target::precheck(&client.policy, host, port).map_err(|denial| {
            let error = denial.to_error();
            (client.events)(NetEvent::new(&Err(denial), "CONNECT", 0));
            error
        })
    }

    /// Starts an exchange. `exchange` is a number of the caller's choice, unique in the session; it
    /// stays taken until [`close`](Self::close) if the answer is a head, and no longer than that
    /// answer if it is an error.
    pub(crate) fn start(&self, exchange: u32, request: Request, answer: Answer<ResponseHead>) {
        let waits = Waits::default();
        let mut head = Reply::new(answer);
        head.owe(waits.head.begin());
        match self.admit(request) {
            Ok(admitted) => {
                if let Err(head) = self.spawn(exchange, admitted, waits, head) {
                    let message = format!("exchange {exchange} is open already");
                    head.give(Err(NetError::invalid(message)));
                }
            }
            Err(error) => head.give(Err(error)),
        }
    }

    /// Gives the next piece of a streamed request body; an empty one ends it. Answered when there
    /// is room for more.
    pub(crate) fn send(&self, exchange: u32, chunk: Vec<u8>, answer: Answer<()>) {
        let mut reply = Reply::new(answer);
        match self.shared.piece(exchange, chunk) {
            Ok(Step { owed, runtime, pieces, piece: Some(piece) }) => {
                reply.owe(Some(owed));
                // It ends with the exchange, which drops the receiver.
                runtime.spawn(async move {
                    let is_end = matches!(piece, Piece::End);
                    let taken = pieces.send(piece).await;
                    // A body of a declared length has ended without being told.
                    reply.give(taken.or_else(|_| if is_end { Ok(()) } else { Err(cut_off()) }));
                });
            }
            Ok(Step { piece: None, .. }) => reply.give(Ok(())),
            Err(error) => reply.give(Err(error)),
        }
    }

    /// Reads at most `max` bytes of the response's body, and at most
    /// [`READ_BYTES`](NetLimits::READ_BYTES); none at its end. One read at a time.
    pub(crate) fn read(&self, exchange: u32, max: usize, answer: Answer<Vec<u8>>) {
        let mut reply = Reply::new(answer);
        match self.shared.reader(exchange, max) {
            Ok((owed, reads)) => {
                reply.owe(Some(owed));
                let max = max.min(NetLimits::READ_BYTES);
                // There is room for the only read; if the task has ended, dropping the reply
                // answers.
                let _ = reads.try_send(Read { max, reply });
            }
            Err(error) => reply.give(Err(error)),
        }
    }

    /// Forgets an exchange. Its connection is closed, unless the body was read to its end.
    pub(crate) fn close(&self, exchange: u32) {
        self.shared.forget(exchange);
    }

    /// Begins a run: budgets start anew.
    pub(crate) fn begin_run(&self) {
        self.shared.client.budget.begin_run();
    }

    /// Ends a run: exchanges that somebody waits for are ended, and those who wait get an error.
    /// Bodies that nobody reads stay open, for what is left of their time.
    pub(crate) fn end_run(&self) {
        let waited_for = |_: &u32, exchange: &mut Exchange| exchange.is_waited_for();
        let waited_for: Vec<_> = self.shared.exchanges().extract_if(waited_for).collect();
        exchange::end(waited_for.into_iter().map(|(_, exchange)| exchange));
    }

    /// Checks all that can be checked of a request before it is decided about.
    fn admit(&self, request: Request) -> Result<Admitted, NetError> {
        let client = &self.shared.client;
        client.budget.charge_request(&client.limits)?;
        let time = request.timeout.unwrap_or(Duration::MAX).min(client.limits.request_time);
        let mut sending = None;
        let request = Prepared::new(request, &client.limits, |left| {
            let (pieces, streamed) = Streamed::new(left);
            sending = Some(Sending { pieces, left });
            streamed
        })?;
        let bytes = request.head_bytes() + request.payload.known_bytes();
        client.budget.charge_sent(bytes, &client.limits)?;
        let (runtime, place) = (runtime::handle()?, self.shared.admission.place(&client.limits)?);
        Ok(Admitted { request, sending, place, time, runtime })
    }

    /// Starts the task of an exchange; gives the reply back if the number is taken.
    fn spawn(
        &self,
        number: u32,
        admitted: Admitted,
        waits: Waits,
        head: Reply<ResponseHead>,
    ) -> Result<(), Reply<ResponseHead>> {
        let Admitted { request, sending, place, time, runtime } = admitted;
        let mut exchanges = self.shared.exchanges();
        let Entry::Vacant(vacant) = exchanges.entry(number) else { return Err(head) };
        let (sender, reads) = mpsc::channel(1);
        let shared = Arc::clone(&self.shared);
        let ended = Ended::default();
        let task =
            Task { shared, number, request, place, head, reads, time, ended: Arc::clone(&ended) };
        // The task cannot forget its entry before it is there: the lock is held.
        let task = runtime.spawn(task.run()).abort_handle();
        vacant.insert(Exchange { reads: sender, sending, waits, ended, task });
        Ok(())
    }
}

/// A request that may be started.
struct Admitted {
    request: Prepared,
    sending: Option<Sending>,
    place: Place,
    time: Duration,
    runtime: Handle,
}

fn cut_off() -> NetError {
    let message = "the connection ended before the request's body was sent";
    NetError::new(NetErrorKind::Reset, message)
}

impl Drop for Network {
    fn drop(&mut self) {
        let exchanges = std::mem::take(&mut *self.shared.exchanges());
        exchange::end(exchanges.into_values());
        self.shared.client.pool.close();
    }
}

impl Shared {
    fn exchanges(&self) -> MutexGuard<'_, HashMap<u32, Exchange>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&self, exchange: u32) {
        // What is dropped may call back, so not under the lock.
        let forgotten = self.exchanges().remove(&exchange);
        drop(forgotten);
    }

    /// Makes a piece of a streamed body, if one is needed, and begins the wait for room for it.
    fn piece(&self, exchange: u32, chunk: Vec<u8>) -> Result<Step, NetError> {
        let mut exchanges = self.exchanges();
        let entry = exchanges.get_mut(&exchange).ok_or_else(|| NetError::not_open(exchange))?;
        let owed = entry.waits.send.begin().ok_or_else(|| busy(exchange, "send"))?;
        let sending = entry.sending.as_mut().ok_or_else(|| {
            NetError::invalid(format!("exchange {exchange} takes no more of a body"))
        })?;
        self.client.budget.charge_sent(chunk.len(), &self.client.limits)?;
        let ends = chunk.is_empty();
        let (piece, pieces) = (sending.piece(chunk), sending.pieces.clone());
        // An end that comes too early ends the body as well, in a way that fails the request.
        entry.sending.take_if(|_| ends);
        Ok(Step { owed, runtime: runtime::handle()?, pieces, piece: piece? })
    }

    /// Begins a read.
    fn reader(&self, exchange: u32, max: usize) -> Result<(Owed, mpsc::Sender<Read>), NetError> {
        if max == 0 {
            return Err(NetError::invalid("a read is of 0 bytes, it must be of at least 1"));
        }
        let exchanges = self.exchanges();
        let entry = exchanges.get(&exchange).ok_or_else(|| NetError::not_open(exchange))?;
        let owed = entry.waits.read.begin().ok_or_else(|| busy(exchange, "read"))?;
        Ok((owed, entry.reads.clone()))
    }
}

/// A step of a streamed body: a piece, or none if the server knows the end already.
struct Step {
    owed: Owed,
    runtime: Handle,
    pieces: mpsc::Sender<Piece>,
    piece: Option<Piece>,
}

fn busy(exchange: u32, what: &str) -> NetError {
    NetError::invalid(format!("exchange {exchange} has a {what} under way already"))
}
