//! An interpreter that has booted and is nobody's yet.

use std::sync::{Arc, OnceLock};

use tokio::sync::mpsc::error::TryRecvError;

use crate::data::error::{Error, ErrorKind};
use crate::data::isolation::{Confinement, IsolationReport};
use crate::fs::FileError;
use crate::protocol::codec;
use crate::protocol::{Command, Host, HostReply, HostRequest, Link, Message, Reply};

/// Everything that an interpreter is started with. Those of one kind are as good as each other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InterpreterKind {
    pub(crate) confinement: Confinement,
    pub(crate) memory_bytes: u64,
    pub(crate) max_report_bytes: u64,
}

/// A booted interpreter.
pub(crate) struct BootedInterpreter {
    link: Link,
    report: IsolationReport,
    host: Arc<DeferredHost>,
}

impl BootedInterpreter {
    pub(super) fn new(link: Link, report: IsolationReport, host: Arc<DeferredHost>) -> Self {
        Self { link, report, host }
    }

    /// Has it do for nobody what a session begins with, so that the session need not wait for that.
    pub(crate) async fn rehearse(&mut self) -> Result<(), Error> {
        // More often it would take a processor from others for longer; a copy is of one that has.
        (self.link.messages)(Message::Command(codec::encode(Command::Rehearse(1))));
        match self.link.replies.recv().await {
            Some(Reply::Done { .. }) => Ok(()),
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

    /// Whether it is still there: nobody has asked it for anything, so it has nothing to say.
    pub(crate) fn is_well(&mut self) -> bool {
        let is_silent = matches!(self.link.replies.try_recv(), Err(TryRecvError::Empty));
        is_silent && self.link.control.is_alive()
    }

    /// Gives it the host that answers it from now on.
    pub(crate) fn adopt(self, host: Arc<dyn Host>) -> (Link, IsolationReport) {
        // There was none before, as it was nobody's.
        let _ = self.host.0.set(host);
        (self.link, self.report)
    }
}

/// The host of an interpreter that may not have one yet. Until then it has nothing to give.
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

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let host = self.0.get().ok_or(FileError::BadHandle)?;
        host.read_file(file, offset, into)
    }
}
