//! The host as an isolate's ops see it. Once the isolate is stopped every request fails at once, so
//! that no op acts for a guest that outlives its termination.

use std::sync::Arc;

use super::control::IsolateControl;
use super::extension::HostHandle;
use super::order::event_log::EventLog;
use crate::fs::FileError;
use crate::protocol::{Host, HostReply, HostRequest};

const STOPPED: &str = "the session was stopped";

/// Forwards requests unless the isolate is stopped.
pub(super) struct StoppableHost {
    pub(super) host: HostHandle,
    pub(super) control: Arc<IsolateControl>,
    pub(super) log: Arc<EventLog>,
}

impl Host for StoppableHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        if self.control.is_stopped() {
            return HostReply::Failed(STOPPED.to_owned());
        }
        self.log.before(&request, &*self.host);
        self.host.call(request)
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        if self.control.is_stopped() {
            return Err(FileError::Io);
        }
        if self.log.is_on() {
            self.log.before_read(&*self.host);
            return self.host.read_file_exactly(file, offset, into);
        }
        self.host.read_file(file, offset, into)
    }

    fn takes_report(&self, report: &[u8], text: &[u8], is_peek: bool) -> bool {
        self.log.tell(&*self.host);
        !self.control.is_stopped() && self.host.takes_report(report, text, is_peek)
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        if self.control.is_stopped() {
            return Err(STOPPED.to_owned());
        }
        self.host.fill_entropy(into)
    }
}
