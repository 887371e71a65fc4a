//! An interpreter that has booted and belongs to no session yet.

use std::sync::{Arc, OnceLock};

use tokio::sync::mpsc::error::TryRecvError;

use super::startup::Startup;
use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{Confinement, IsolationReport};
use crate::fs::FileError;
use crate::protocol::codec;
use crate::protocol::{
    Command, Host, HostReply, HostRequest, Link, Message, Reply, Report, Status,
};

/// Everything that distinguishes how an interpreter is started. Interpreters of one kind are
/// interchangeable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InterpreterKind {
    pub(crate) confinement: Confinement,
    pub(crate) memory_bytes: u64,
    pub(crate) max_report_bytes: u64,
    /// How many copies of a session there may be at once, if it can be forked.
    pub(crate) max_copies: Option<usize>,
}

/// A booted interpreter.
pub(crate) struct BootedInterpreter {
    link: Link,
    report: IsolationReport,
    host: Arc<DeferredHost>,
    /// Set if it is a copy of a process that has rehearsed.
    is_copy: bool,
    has_rehearsed: bool,
    /// What it has started up with, though it belongs to no session.
    begun: Option<Startup>,
}

impl BootedInterpreter {
    pub(super) fn new(
        link: Link,
        report: IsolationReport,
        host: Arc<DeferredHost>,
        is_copy: bool,
    ) -> Self {
        Self { link, report, host, is_copy, has_rehearsed: false, begun: None }
    }

    /// Returns `true` if more of its kind can be had soon.
    pub(crate) fn is_copy(&self) -> bool {
        self.is_copy
    }

    /// Returns `true` if it has rehearsed itself.
    pub(crate) fn has_rehearsed(&self) -> bool {
        self.has_rehearsed
    }

    /// Returns `true` if its start-up sequence is known to work, so that a session need not wait
    /// for it.
    pub(crate) fn starts_up_surely(&self) -> bool {
        self.is_copy || self.has_rehearsed
    }

    /// Runs a session's start-up sequence once in advance, so that the session need not wait for
    /// it. Undoes what [`begin`](Self::begin) has done.
    pub(crate) async fn rehearse(&mut self) -> Result<(), Error> {
        // Once only: more rounds would take processor time from others, and a copied worker comes
        // from a process that has rehearsed already.
        self.begun = None;
        (self.link.messages)(Message::Command(codec::encode(Command::Rehearse(1))));
        match self.link.replies.recv().await {
            Some(Reply::Done { .. }) => {
                self.has_rehearsed = true;
                Ok(())
            }
            reply => {
                let reason = match reply {
                    Some(Reply::Failed(reason)) => reason,
                    _ => "it ended".to_owned(),
                };
                let message = format!("the interpreter cannot be made ready: {reason}");
                Err(Error::new(ErrorKind::Start, message))
            }
        }
    }

    /// Starts it up for a session that is yet to come.
    pub(super) async fn begin(&mut self, startup: Startup) -> Result<(), Error> {
        (self.link.messages)(startup.message());
        let reason = match self.link.replies.recv().await {
            Some(Reply::Done { report, .. }) => match codec::decode(&report, 0) {
                Ok(Report { status: Status::Raised(exception), .. }) => exception.to_string(),
                Ok(_) => {
                    self.begun = Some(startup);
                    return Ok(());
                }
                Err(reason) => reason,
            },
            Some(Reply::Failed(reason)) => reason,
            _ => "it ended".to_owned(),
        };
        let message = format!("the interpreter cannot be made ready for a session: {reason}");
        Err(Error::new(ErrorKind::Start, message))
    }

    /// Returns what it has started up with.
    pub(crate) fn begun(&self) -> Option<&Startup> {
        self.begun.as_ref()
    }

    /// Returns `true` if the interpreter is alive and silent. Its replies so far were read, so
    /// another one means that it failed.
    pub(crate) fn is_well(&mut self) -> bool {
        let is_silent = matches!(self.link.replies.try_recv(), Err(TryRecvError::Empty));
        is_silent && self.link.control.is_alive()
    }

    /// Sets the host that answers the interpreter's requests from now on.
    pub(crate) fn adopt(self, host: Arc<dyn Host>) -> (Link, IsolationReport) {
        // This cannot fail: the interpreter belonged to no session, so it had no host.
        let _ = self.host.0.set(host);
        (self.link, self.report)
    }
}

/// The host of an interpreter that may not have one yet. Until it has one, requests fail or return
/// empty answers.
#[derive(Default)]
pub(super) struct DeferredHost(OnceLock<Arc<dyn Host>>);

impl Host for DeferredHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match (self.0.get(), request) {
            (Some(host), request) => host.call(request),
            (None, HostRequest::Now | HostRequest::WallClock) => HostReply::Time(0.0),
            (None, HostRequest::MountPoints) => HostReply::MountPoints(Vec::new()),
            (None, _) => HostReply::Failed("the interpreter is in no session yet".to_owned()),
        }
    }

    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        self.0.get().is_some_and(|host| host.may_wait(request))
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let host = self.0.get().ok_or(FileError::BadHandle)?;
        host.read_file(file, offset, into)
    }
}
