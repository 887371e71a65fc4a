//! A client's sandboxes and sessions by the numbers that it has chosen for them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use isolet::blocking::block_on;
use serde::Serialize;

use super::client::{ClientOwner, Stdout};
use super::messages::Request;
use isolet_service::core::{
    Answer, Beginning, Command, Failure, Owner, Reply, SandboxEntry, Service, SessionEntry, Terms,
    Work,
};

/// The client's sandboxes and sessions.
pub(super) struct Numbers {
    client: Arc<Stdout>,
    service: Arc<Service>,
    sandboxes: Mutex<HashMap<i64, Arc<SandboxEntry>>>,
    sessions: Mutex<HashMap<i64, Session>>,
}

/// A session and the number of its sandbox.
#[derive(Clone)]
struct Session {
    entry: Arc<SessionEntry>,
    sandbox: i64,
}

/// The answer to building a sandbox: an empty dict, to which keys may be added.
#[derive(Serialize)]
struct Made {}

impl Numbers {
    pub(super) fn new(client: Arc<Stdout>, service: Arc<Service>) -> Arc<Self> {
        let (sandboxes, sessions) = (Mutex::default(), Mutex::default());
        Arc::new(Self { client, service, sandboxes, sessions })
    }

    /// Answers a tool call. Ignored if the call is over.
    pub(super) fn answer(&self, call: u64, answer: Answer) {
        self.service.answer(call, None, answer);
    }

    /// Accepts a request. Returns its work, or `None` if another thread does it.
    ///
    /// Does not block, and sends nothing to the client.
    pub(super) fn accept(self: &Arc<Self>, number: i64, request: Request) -> Option<Work> {
        let done = || self.replied(number, Ok(()));
        let accepted = match request {
            Request::Sandbox { sandbox, policy } => {
                let (numbers, owner) = (Arc::clone(self), self.owner(sandbox, 0));
                let reply = Reply::new(move |made: Result<(), Failure>| {
                    if made.is_err() {
                        lock(&numbers.sandboxes).remove(&sandbox);
                    }
                    numbers.client.reply(number, made.map(|()| Made {}));
                });
                match lock(&self.sandboxes).entry(sandbox) {
                    Entry::Occupied(_) => {
                        Err(Failure::protocol(format!("there is a sandbox {sandbox} already")))
                    }
                    Entry::Vacant(place) => {
                        let (name, terms) = (sandbox.to_string(), Terms::default());
                        let (entry, work) =
                            self.service.make_sandbox(name, policy, terms, owner, reply);
                        place.insert(entry);
                        Ok(Some(work))
                    }
                }
            }
            Request::Drop { sandbox } => {
                let dropped = lock(&self.sandboxes).remove(&sandbox);
                dropped.map(|_| Some(done())).ok_or_else(|| no_sandbox(sandbox))
            }
            Request::Prewarm { sandbox, count } => self
                .sandbox(sandbox)
                .map(|entry| Some(Service::prewarm(entry, count, self.client.answers(number)))),
            Request::Open { session, sandbox, beginning } => {
                self.open(number, session, sandbox, beginning)
            }
            Request::InSession { session, command } => {
                self.session(session).map(|its| self.service.carry_out(&its.entry, command))
            }
            Request::Fork { session, copy } => self.fork(number, session, copy),
            Request::Close { session } => self.session(session).map(|its| {
                lock(&self.sessions).remove(&session);
                let close = Command::Close { reply: self.client.answers(number) };
                self.service.carry_out(&its.entry, close)
            }),
            Request::Interrupt { session } => self.session(session).map(|its| {
                its.entry.interrupt_run();
                Some(done())
            }),
            Request::Cancel { session } => self
                .session(session)
                .map(|its| Some(Service::cancel(&its.entry, self.client.answers(number)))),
            Request::Kill { session } => self.session(session).map(|its| {
                its.entry.kill();
                Some(done())
            }),
        };
        accepted.unwrap_or_else(|failure| Some(self.replied(number, Err(failure))))
    }

    /// Ends all sessions: idle ones are closed, busy ones are killed.
    pub(super) fn end_in_order(&self) {
        let all: Vec<_> = lock(&self.sessions).drain().map(|(_, its)| its.entry).collect();
        block_on(join_all(all.iter().map(|entry| entry.end())));
    }

    /// Kills all sessions.
    pub(super) fn end(&self) {
        for (_, its) in lock(&self.sessions).drain() {
            its.entry.kill();
        }
    }

    fn open(
        &self,
        number: i64,
        session: i64,
        sandbox: i64,
        beginning: Beginning,
    ) -> Result<Option<Work>, Failure> {
        let of = self.sandbox(sandbox)?;
        let mut sessions = lock(&self.sessions);
        check_free(&sessions, session)?;
        let (owner, reply) = (self.owner(sandbox, session), self.client.answers(number));
        let (entry, work) = self.service.open(&of, owner, beginning, reply);
        sessions.insert(session, Session { entry, sandbox });
        Ok(Some(work))
    }

    fn fork(&self, number: i64, session: i64, copy: i64) -> Result<Option<Work>, Failure> {
        let of = self.session(session)?;
        let mut sessions = lock(&self.sessions);
        check_free(&sessions, copy)?;
        let owner = self.owner(of.sandbox, copy);
        Ok(match self.service.fork(&of.entry, owner, self.client.answers(number)) {
            Ok((entry, work)) => {
                sessions.insert(copy, Session { entry, sandbox: of.sandbox });
                work
            }
            Err(refusing) => Some(refusing),
        })
    }

    /// Returns the work of answering a request.
    fn replied(&self, number: i64, result: Result<(), Failure>) -> Work {
        let reply = self.client.answers(number);
        Work::Async(Box::pin(async move { reply.send(result) }))
    }

    fn owner(&self, sandbox: i64, session: i64) -> Arc<dyn Owner> {
        Arc::new(ClientOwner { client: Arc::clone(&self.client), sandbox, session })
    }

    fn sandbox(&self, sandbox: i64) -> Result<Arc<SandboxEntry>, Failure> {
        lock(&self.sandboxes).get(&sandbox).map(Arc::clone).ok_or_else(|| no_sandbox(sandbox))
    }

    fn session(&self, session: i64) -> Result<Session, Failure> {
        let its = lock(&self.sessions).get(&session).cloned();
        its.ok_or_else(|| Failure::protocol(format!("there is no session {session}")))
    }
}

fn check_free(sessions: &HashMap<i64, Session>, session: i64) -> Result<(), Failure> {
    if sessions.contains_key(&session) {
        return Err(Failure::protocol(format!("there is a session {session} already")));
    }
    Ok(())
}

fn no_sandbox(sandbox: i64) -> Failure {
    Failure::protocol(format!("there is no sandbox {sandbox}"))
}

/// Locks a mutex whose data stays valid if a thread panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
