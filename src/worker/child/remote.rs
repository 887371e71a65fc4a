//! The host as seen by an isolate in a worker: requests go to the parent as frames, and the thread
//! waits for the answer.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::mailbox::{Answer, Connection, Mailbox};
use super::read_ahead::ReadAhead;
use crate::fs::{FileError, FileReply, FileRequest};
use crate::protocol::{Host, HostReply, HostRequest, Reply};
use crate::support::{clock, free_memory};
use crate::worker::wire::{self, BULK_BYTES, FileBytes, FromWorker};

pub(super) struct RemoteHost {
    connection: Connection,
    max_frame_bytes: u64,
    ahead: Mutex<ReadAhead>,
    /// The number of messages that the isolate had taken when it last read a file.
    messages_seen: AtomicU64,
    /// The session was saved, and the command for that has not ended.
    has_saved: AtomicBool,
}

impl RemoteHost {
    pub(super) fn new(connection: Connection, max_frame_bytes: u64) -> Self {
        Self {
            connection,
            max_frame_bytes,
            ahead: Mutex::default(),
            messages_seen: AtomicU64::new(0),
            has_saved: AtomicBool::new(false),
        }
    }

    /// Forgets what only the worker knows that this one was copied from.
    pub(super) fn forget(&self) {
        self.ahead().forget();
    }

    fn mailbox(&self) -> io::Result<&Mailbox> {
        self.connection.get().ok_or_else(|| io::Error::other("there is no session yet"))
    }

    /// Writes a frame without waiting for an answer.
    pub(super) fn tell(&self, content: &FromWorker<'_>) -> io::Result<()> {
        self.tell_with(content, &[])
    }

    /// Writes the reply to a command.
    pub(super) fn reply(&self, mut reply: Reply) -> io::Result<()> {
        let report = reply.report().map(std::mem::take).unwrap_or_default();
        let told = self.tell_with(&FromWorker::Reply(reply), &report);
        // Saving needs large blocks, and an idle session should be small.
        if self.has_saved.swap(false, Ordering::Relaxed) {
            free_memory::give_back();
        }
        told
    }

    /// Writes a frame with a body.
    fn tell_with(&self, head: &FromWorker<'_>, body: &[u8]) -> io::Result<()> {
        self.tell_in_parts(head, &[], body)
    }

    /// Writes a frame whose body is in two parts, of which the first one is short or the last one
    /// empty.
    fn tell_in_parts(&self, head: &FromWorker<'_>, first: &[u8], last: &[u8]) -> io::Result<()> {
        let (first, body) = if last.is_empty() { (last, first) } else { (first, last) };
        let mut head = wire::encode_after(Vec::new(), head, first.len() + body.len())?;
        head.extend_from_slice(first);
        let (limit, needed) = (self.max_frame_bytes, (head.len() + body.len()) as u64);
        if needed > limit {
            let message = format!("too much for one message: limit {limit} bytes, needed {needed}");
            return Err(io::Error::other(message));
        }
        self.mailbox()?.send(head, body)
    }

    /// Writes a frame and waits for the answer. Only the isolate's thread sends requests, so the
    /// next answer is the one to this request.
    fn ask(&self, content: &FromWorker<'_>) -> io::Result<Answer> {
        self.tell(content)?;
        self.mailbox()?.answer()
    }

    fn request(&self, request: HostRequest<'_>) -> io::Result<HostReply> {
        if request.is_one_way() {
            return self.tell(&FromWorker::Request(request)).map(|()| HostReply::Done);
        }
        match self.ask(&FromWorker::Request(request))? {
            Answer::Reply(reply) => {
                // Python checks for the interrupt as soon as it has the answer, and otherwise waits
                // again.
                if let HostReply::Interrupted(nth) = reply {
                    self.mailbox()?.wait_for_interrupts(nth);
                }
                Ok(reply)
            }
            Answer::FileBytes(_) => {
                Err(io::Error::other("the host's answer is to another request"))
            }
        }
    }

    /// Writes to a file, in several requests if necessary.
    fn write_file(&self, file: u32, offset: u64, bytes: &[u8]) -> io::Result<HostReply> {
        let mut written = 0;
        for piece in bytes.chunks(BULK_BYTES) {
            let request = FileRequest::Write { file, offset: offset + written, bytes: piece };
            match self.request(HostRequest::File(request))? {
                HostReply::File(Ok(FileReply::Count(count))) => {
                    written += u64::from(count);
                    if u64::from(count) < piece.len() as u64 {
                        break;
                    }
                }
                // The part written before counts, as on a device that fills up.
                HostReply::File(Err(_)) if written > 0 => break,
                other => return Ok(other),
            }
        }
        let written = u32::try_from(written).unwrap_or(u32::MAX);
        Ok(HostReply::File(Ok(FileReply::Count(written))))
    }

    /// Requests a number of bytes of a file.
    fn fetch(&self, file: u32, offset: u64, length: usize) -> Result<Vec<u8>, FileError> {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        match self.ask(&FromWorker::ReadFile { file, offset, length }) {
            Ok(Answer::FileBytes(bytes)) => bytes.map(|FileBytes(bytes)| bytes),
            Ok(Answer::Reply(_)) | Err(_) => Err(FileError::Io),
        }
    }

    /// Returns the data read ahead, without any from before the host's last message.
    fn ahead(&self) -> MutexGuard<'_, ReadAhead> {
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = self.connection.get().map_or(0, Mailbox::messages_taken);
        if self.messages_seen.swap(taken, Ordering::Relaxed) != taken {
            ahead.forget();
        }
        ahead
    }
}

/// Returns `true` if this request cannot change a file, and its answer cannot tell the guest that a
/// file has changed.
fn leaves_files_alone(request: &HostRequest<'_>) -> bool {
    matches!(
        request,
        HostRequest::Now
            | HostRequest::WallClock
            | HostRequest::Write(..)
            | HostRequest::Display(_)
            | HostRequest::FileWritten { .. }
    )
}

impl Host for RemoteHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        if !leaves_files_alone(&request) {
            self.ahead().forget();
        }
        let reply = match request {
            // Every process can read clocks; only their resolution is policy.
            HostRequest::Now => {
                let started = self.connection.get().map(Mailbox::started);
                return HostReply::Time(started.map_or(0.0, clock::since));
            }
            HostRequest::WallClock => return HostReply::Time(clock::wall()),
            // No session: a template is rehearsing.
            HostRequest::MountPoints if self.connection.get().is_none() => {
                return HostReply::MountPoints(Vec::new());
            }
            HostRequest::Write(stream, bytes) => bytes
                .chunks(BULK_BYTES)
                .try_for_each(|piece| self.mailbox()?.write(stream, piece))
                .map(|()| HostReply::Done),
            HostRequest::File(FileRequest::Write { file, offset, bytes })
                if bytes.len() > BULK_BYTES =>
            {
                self.write_file(file, offset, bytes)
            }
            request => {
                if matches!(request, HostRequest::Saved(_)) {
                    self.has_saved.store(true, Ordering::Relaxed);
                }
                self.request(request)
            }
        };
        reply.unwrap_or_else(|error| HostReply::Failed(error.to_string()))
    }

    fn takes_report(&self, report: &[u8], text: &[u8], is_peek: bool) -> bool {
        // What cannot be sent now cannot be sent with the reply either, which says why.
        self.tell_in_parts(&FromWorker::Report { is_peek }, report, text).is_ok()
    }

    fn read_file(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let fetch = |offset, length| self.fetch(file, offset, length);
        let read = self.ahead().read(Instant::now(), file, offset, into, fetch)?;
        Ok(u32::try_from(read).unwrap_or(u32::MAX))
    }

    fn read_file_exactly(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let length = into.len().min(BULK_BYTES);
        let bytes = self.fetch(file, offset, length)?;
        let target = into.get_mut(..bytes.len()).ok_or(FileError::Io)?;
        target.copy_from_slice(&bytes);
        Ok(u32::try_from(bytes.len()).unwrap_or(u32::MAX))
    }
}
