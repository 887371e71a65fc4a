//! Network egress: the only way from a guest to the network.
//!
//! Every request, and every redirect, goes through [`target::decide`]. Connections are opened only
//! to the addresses that it vetted. Each session has its own [`Network`]: connections, TLS tickets
//! and budgets are not shared between sessions, and there is neither a cookie jar nor a cache.

mod admission;
pub(crate) mod body;
mod budget;
mod client;
mod connection;
pub(crate) mod decode;
mod error;
mod event;
mod exchange;
pub(crate) mod guest;
mod head;
mod limits;
mod pool;
pub(crate) mod redirect;
mod reply;
pub(crate) mod request;
pub(crate) mod resolve;
mod response;
pub(crate) mod rules;
mod runtime;
mod secrets;
pub(crate) mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::mpsc;

use self::admission::{Admission, ExchangePermit};
use self::body::{Piece, Streamed};
use self::budget::Budget;
use self::client::Client;
pub(crate) use self::error::{NetError, NetErrorKind};
pub(crate) use self::event::NetEvent;
use self::exchange::{Ended, Exchange, Read, Sending, Task, Waits};
pub(crate) use self::guest::{decode_request, fetch_request, response_head};
use self::head::ResponseHead;
pub(crate) use self::limits::NetLimits;
use self::pool::Pool;
pub(crate) use self::reply::Answer;
use self::reply::{Reply, WaitGuard};
use self::request::Prepared;
use self::request::Request;
use self::resolve::{Resolve, SystemResolver};
use self::rules::NetPolicy;
use self::tls::Tls;

/// Receives the decisions. It must not block: all sessions wait for it.
pub(crate) type EventSink = Arc<dyn Fn(NetEvent) + Send + Sync>;

/// Says whether the decision to allow a request could be reported, or why it could not.
pub(crate) type EventGate = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The exchanges of one session. Dropping it closes all of them.
///
/// Answers are given on another thread or before the call returns, and must not block.
pub(crate) struct Network {
    shared: Arc<Shared>,
}

struct Shared {
    client: Arc<Client>,
    admission: Admission,
    exchanges: Mutex<HashMap<u32, Exchange>>,
}

impl Network {
    pub(crate) fn new(
        policy: Arc<NetPolicy>,
        limits: NetLimits,
        reports: (EventSink, EventGate),
    ) -> Self {
        let tls = Tls::trusting(policy.authorities());
        Self::with_parts(policy, limits, reports, Arc::new(SystemResolver::new()), tls)
    }

    fn with_parts(
        policy: Arc<NetPolicy>,
        limits: NetLimits,
        (events, gate): (EventSink, EventGate),
        resolver: Arc<dyn Resolve>,
        tls: Tls,
    ) -> Self {
        let admission = Admission::new(&limits);
        let (pool, budget) = (Pool::default(), Budget::default());
        let client = Client { policy, limits, events, gate, resolver, tls, pool, budget };
        let exchanges = Mutex::default();
        Self { shared: Arc::new(Shared { client: Arc::new(client), admission, exchanges }) }
    }

    /// Checks whether requests to a server may be allowed, as far as that can be decided without a
    /// DNS lookup. Only a refusal is reported as an event, because an allowed request is decided
    /// again when it is made.
    pub(crate) fn check(&self, host: &str, port: u32) -> Result<(), NetError> {
        self.shared.client.precheck(host, port)
    }

    /// Connects to a server. The next request to it uses the connection. The caller chooses the
    /// number `call`, which must be unique in the session and is free again with the answer;
    /// [`close`](Self::close) gives the attempt up.
    pub(crate) fn connect(&self, call: u32, host: &str, port: u32, answer: Answer<()>) {
        let waits = Waits::default();
        let mut reply = Reply::new(answer);
        reply.hold_guard(waits.head.begin());
        let (runtime, permit) = match self.admit_connection() {
            Ok(admitted) => admitted,
            Err(error) => return reply.give(Err(error)),
        };
        let mut exchanges = self.shared.exchanges();
        let Entry::Vacant(vacant) = exchanges.entry(call) else {
            drop(exchanges);
            return reply.give(Err(in_use(call)));
        };
        let (shared, ended) = (Arc::clone(&self.shared), Ended::default());
        let server = (host.to_owned(), port);
        // The lock is held, so the task cannot remove its entry before it is inserted.
        let task = exchange::connect(shared, call, server, permit, reply, Arc::clone(&ended));
        let task = runtime.spawn(task).abort_handle();
        // There is nothing to read.
        let (reads, _) = mpsc::channel(1);
        vacant.insert(Exchange { reads, sending: None, waits, ended, task });
    }

    /// Starts an exchange. The caller chooses the number `exchange`, which must be unique in the
    /// session. If the answer is a head, the number stays in use until [`close`](Self::close). If
    /// the answer is an error, the number is free again.
    pub(crate) fn start(&self, exchange: u32, request: Request, answer: Answer<ResponseHead>) {
        let waits = Waits::default();
        let mut head = Reply::new(answer);
        head.hold_guard(waits.head.begin());
        match self.admit(request) {
            Ok(admitted) => {
                if let Err(head) = self.spawn(exchange, admitted, waits, head) {
                    head.give(Err(in_use(exchange)));
                }
            }
            Err(error) => head.give(Err(error)),
        }
    }

    /// Sends the next chunk of a streamed request body; an empty chunk ends it. The answer comes
    /// when there is room for more.
    pub(crate) fn send(&self, exchange: u32, chunk: Vec<u8>, answer: Answer<()>) {
        let mut reply = Reply::new(answer);
        match self.shared.piece(exchange, chunk) {
            Ok(Step { guard, runtime, pieces, piece: Some(piece) }) => {
                reply.hold_guard(Some(guard));
                // This task ends with the exchange, which drops the receiver.
                runtime.spawn(async move {
                    let is_end = matches!(piece, Piece::End);
                    let taken = pieces.send(piece).await;
                    // A body of a declared length has already ended by itself.
                    reply.give(taken.or_else(|_| if is_end { Ok(()) } else { Err(cut_off()) }));
                });
            }
            Ok(Step { piece: None, .. }) => reply.give(Ok(())),
            Err(error) => reply.give(Err(error)),
        }
    }

    /// Reads at most `max` bytes of the response's body, and at most
    /// [`READ_BYTES`](NetLimits::READ_BYTES). Returns none at its end. Only one read at a time is
    /// allowed.
    pub(crate) fn read(&self, exchange: u32, max: usize, answer: Answer<Vec<u8>>) {
        let mut reply = Reply::new(answer);
        match self.shared.reader(exchange, max) {
            Ok((guard, reads)) => {
                reply.hold_guard(Some(guard));
                let max = max.min(NetLimits::READ_BYTES);
                // The channel has room for the only read. If the task has ended, dropping the reply
                // answers the read.
                let _ = reads.try_send(Read { max, reply });
            }
            Err(error) => reply.give(Err(error)),
        }
    }

    /// Closes an exchange and frees its number. Its connection is closed, unless the body was read
    /// to its end.
    pub(crate) fn close(&self, exchange: u32) {
        self.shared.forget(exchange);
    }

    /// Begins a run with fresh budgets.
    pub(crate) fn begin_run(&self) {
        self.shared.client.budget.begin_run();
    }

    /// Ends a run: closes the exchanges that a caller waits for, with an error for the caller. Open
    /// bodies that nobody is reading stay open for the rest of their time.
    pub(crate) fn end_run(&self) {
        let waited_for = |_: &u32, exchange: &mut Exchange| exchange.is_waited_for();
        let waited_for: Vec<_> = self.shared.exchanges().extract_if(waited_for).collect();
        exchange::end(waited_for.into_iter().map(|(_, exchange)| exchange));
    }

    /// Performs all checks of a request that come before the decision.
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
        let (runtime, permit) = (runtime::handle()?, self.shared.admission.permit(&client.limits)?);
        Ok(Admitted { request, sending, permit, time, runtime })
    }

    /// Performs all checks of a connection that come before the decision.
    fn admit_connection(&self) -> Result<(Handle, ExchangePermit), NetError> {
        let client = &self.shared.client;
        client.budget.charge_connection(&client.limits)?;
        Ok((runtime::handle()?, self.shared.admission.permit(&client.limits)?))
    }

    /// Starts the task of an exchange. Returns the reply if the number is in use.
    fn spawn(
        &self,
        number: u32,
        admitted: Admitted,
        waits: Waits,
        head: Reply<ResponseHead>,
    ) -> Result<(), Reply<ResponseHead>> {
        let Admitted { request, sending, permit, time, runtime } = admitted;
        let mut exchanges = self.shared.exchanges();
        let Entry::Vacant(vacant) = exchanges.entry(number) else { return Err(head) };
        let (sender, reads) = mpsc::channel(1);
        let shared = Arc::clone(&self.shared);
        let ended = Ended::default();
        let task =
            Task { shared, number, request, permit, head, reads, time, ended: Arc::clone(&ended) };
        // The lock is held, so the task cannot remove its entry before it is inserted.
        let task = runtime.spawn(task.run()).abort_handle();
        vacant.insert(Exchange { reads: sender, sending, waits, ended, task });
        Ok(())
    }
}

/// A request that may start.
struct Admitted {
    request: Prepared,
    sending: Option<Sending>,
    permit: ExchangePermit,
    time: Duration,
    runtime: Handle,
}

fn in_use(exchange: u32) -> NetError {
    NetError::invalid(format!("exchange {exchange} is open already"))
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
        // Dropped after the lock is released, because dropping may call back.
        let forgotten = self.exchanges().remove(&exchange);
        drop(forgotten);
    }

    /// Converts a chunk of a streamed body, if one must be sent, and begins the wait for room.
    fn piece(&self, exchange: u32, chunk: Vec<u8>) -> Result<Step, NetError> {
        let mut exchanges = self.exchanges();
        let entry = exchanges.get_mut(&exchange).ok_or_else(|| NetError::not_open(exchange))?;
        let guard = entry.waits.send.begin().ok_or_else(|| busy(exchange, "send"))?;
        let sending = entry.sending.as_mut().ok_or_else(|| {
            NetError::invalid(format!("exchange {exchange} takes no more of a body"))
        })?;
        self.client.budget.charge_sent(chunk.len(), &self.client.limits)?;
        let ends = chunk.is_empty();
        let (piece, pieces) = (sending.piece(chunk), sending.pieces.clone());
        // An end before the declared length also ends the body, and makes the request fail.
        entry.sending.take_if(|_| ends);
        Ok(Step { guard, runtime: runtime::handle()?, pieces, piece: piece? })
    }

    /// Begins a read.
    fn reader(
        &self,
        exchange: u32,
        max: usize,
    ) -> Result<(WaitGuard, mpsc::Sender<Read>), NetError> {
        if max == 0 {
            return Err(NetError::invalid("a read is of 0 bytes, it must be of at least 1"));
        }
        let exchanges = self.exchanges();
        let entry = exchanges.get(&exchange).ok_or_else(|| NetError::not_open(exchange))?;
        let guard = entry.waits.read.begin().ok_or_else(|| busy(exchange, "read"))?;
        Ok((guard, entry.reads.clone()))
    }
}

/// A step of a streamed body: a chunk, or none if the server already knows the end.
struct Step {
    guard: WaitGuard,
    runtime: Handle,
    pieces: mpsc::Sender<Piece>,
    piece: Option<Piece>,
}

fn busy(exchange: u32, what: &str) -> NetError {
    NetError::invalid(format!("exchange {exchange} has a {what} under way already"))
}
