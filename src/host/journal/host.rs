//! The host that the isolate of a recorded session sees.

use super::JournalHost;
use super::file::Appender;
use super::record::{Digest, Record, Reply};
use super::replay::Request;
use crate::fs::{FileError, Place};
use crate::protocol::{Host, HostReply, HostRequest};
use crate::support::lock::lock;

impl Host for JournalHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Happened(_) if self.looks_back() => {
                self.end_look_back();
                HostReply::Done
            }
            HostRequest::Happened(events) => {
                let record = Record::Happened(events.to_vec());
                let appended = lock(&self.state).append(&record);
                appended.map_or_else(|reason| self.failed(reason), |_| HostReply::Done)
            }
            HostRequest::Order => self.order(),
            HostRequest::IsLookedBack if lock(&self.state).is_over => HostReply::Done,
            HostRequest::StopLine => HostReply::Bytes(self.stop_line().into_bytes()),
            HostRequest::EndLookBack => {
                self.end_at_line();
                HostReply::Done
            }
            HostRequest::Diverged(what) => {
                let reason = Self::diverge(&lock(&self.state), what);
                self.failed(reason)
            }
            HostRequest::Write(..) | HostRequest::Display(_) if lock(&self.state).is_silent => {
                HostReply::Done
            }
            HostRequest::Write(..)
            | HostRequest::Display(_)
            | HostRequest::Submit { .. }
            | HostRequest::FileWritten { .. }
                if self.is_stopped() =>
            {
                HostReply::Done
            }
            HostRequest::Submit { .. } | HostRequest::FileWritten { .. } => {
                let reply = self.host.call(request);
                lock(&self.state).given += 1;
                self.stop_if_stopped();
                reply
            }
            HostRequest::Write(..) | HostRequest::Display(_) => {
                let given = u64::from(matches!(request, HostRequest::Display(_)));
                // What comes before it is certain once somebody sees it.
                let flushed = lock(&self.state).flush();
                let reply = match flushed {
                    Ok(()) => self.host.call(request),
                    Err(reason) => self.failed(reason),
                };
                lock(&self.state).given += given;
                self.stop_if_stopped();
                reply
            }
            request if !request.is_recorded() => self.host.call(request),
            request => match self.next_request() {
                Some(Ok(recorded)) => self.replay(request, recorded),
                Some(Err(reason)) => self.failed(reason),
                None if self.looks_back() => self.beyond(&request),
                None => self.record(request),
            },
        }
    }

    fn may_wait(&self, request: &HostRequest<'_>) -> bool {
        // The disk may take its time.
        let may_sync = || lock(&self.state).appender.as_ref().is_some_and(Appender::syncs);
        self.host.may_wait(request) || request.is_recorded() && may_sync()
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let recorded = self.next_request();
        let is_passed = self.host.files().place_of(file) == Place::Tree;
        let digest = Digest::of_read(file, offset, into.len());
        match recorded {
            None if is_passed => {
                lock(&self.state).passed += 1;
                self.host.read_file(file, offset, into)
            }
            Some(Ok(Request::Passed)) if is_passed => self.host.read_file(file, offset, into),
            None if self.looks_back() => {
                self.end_look_back();
                Err(FileError::Io)
            }
            None => self.record_read(digest, (file, offset), into),
            Some(Ok(Request::Replied { digest: recorded, reply: Reply::Read(read), .. }))
                if recorded == digest =>
            {
                let bytes = read?;
                let target = into.get_mut(..bytes.len()).ok_or(FileError::Io)?;
                target.copy_from_slice(&bytes);
                Ok(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
            }
            Some(Ok(_)) => {
                let what = "it reads a file, and did something else when it was recorded";
                let reason = Self::diverge(&lock(&self.state), what);
                self.fail(reason);
                Err(FileError::Io)
            }
            Some(Err(reason)) => {
                self.fail(reason);
                Err(FileError::Io)
            }
        }
    }

    fn fill_entropy(&self, into: &mut [u8]) -> Result<(), String> {
        self.host.fill_entropy(into)
    }
}
