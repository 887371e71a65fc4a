//! Carries out a session's requests and records what comes of them.

use super::JournalHost;
use super::record::{CallAgain, Digest, Record, Reply};
use crate::data::tool::ToolError;
use crate::fs::{FileError, Place};
use crate::protocol::codec;
use crate::protocol::{Host, HostReply, HostRequest};
use crate::support::lock::lock;

/// Bytes of a file of this length are recorded once, as far as the journal remembers them.
const REPEATED_BYTES: usize = 4 << 10;

/// How many reads of files it remembers.
const REMEMBERED_READS: usize = 64 << 10;

/// How a request is recorded.
pub(super) enum Kind {
    /// As one that a replay makes again.
    Passed,
    /// As one that is answered later.
    Call(u32),
    /// As one that is answered at once, and changes files of the host if `has_effect`.
    AtOnce { has_effect: bool },
}

impl JournalHost {
    pub(super) fn kind(&self, request: &HostRequest<'_>) -> Kind {
        match request {
            HostRequest::CallTool { call, .. }
            | HostRequest::NetStart { call, .. }
            | HostRequest::NetSend { call, .. }
            | HostRequest::NetRead { call, .. }
            | HostRequest::Import { call, .. } => Kind::Call(*call),
            HostRequest::File(request) => match self.host.files().place(request) {
                Place::Tree => Kind::Passed,
                Place::ReadWrite => Kind::AtOnce { has_effect: request.is_change() },
                Place::ReadOnly | Place::Overlay | Place::Nowhere => {
                    Kind::AtOnce { has_effect: false }
                }
            },
            _ => Kind::AtOnce { has_effect: false },
        }
    }

    /// Carries out a request that is recorded.
    pub(super) fn record(&self, request: HostRequest<'_>) -> HostReply {
        match self.kind(&request) {
            Kind::Passed => {
                lock(&self.state).passed += 1;
                self.host.call(request)
            }
            Kind::Call(call) => {
                let asked = {
                    let digest = Digest::of(&request);
                    let again = match &request {
                        HostRequest::CallTool { tool, .. } => {
                            Some(self.host.tools().may_repeat(tool))
                        }
                        _ => None,
                    };
                    let mut state = lock(&self.state);
                    let milliseconds = state.milliseconds();
                    state
                        .append(&Record::Asked { call, digest, milliseconds, again })
                        // What may be repeated needs no record before it is done.
                        .and_then(|_| match again {
                            Some(CallAgain::Always) => Ok(()),
                            _ => state.flush(),
                        })
                };
                match asked {
                    Ok(()) => self.make_call(call, request),
                    Err(reason) => self.failed(reason),
                }
            }
            Kind::AtOnce { has_effect } => {
                let digest = Digest::of(&request);
                if let (true, HostRequest::File(change)) = (has_effect, &request) {
                    let before = self.host.files().before(change);
                    let mut state = lock(&self.state);
                    let record = Record::Effect(digest, before);
                    let begun = state.append(&record).and_then(|_| state.flush());
                    if let Err(reason) = begun {
                        drop(state);
                        return self.failed(reason);
                    }
                }
                let reply = self.host.call(request);
                self.replied(digest, has_effect, reply)
            }
        }
    }

    /// Has the host make a call. Its refusal is an answer like others.
    pub(super) fn make_call(&self, call: u32, request: HostRequest<'_>) -> HostReply {
        if matches!(request, HostRequest::Import { .. }) {
            lock(&self.state).imports.insert(call);
        }
        let reply = match self.lost_connection(&request) {
            Some(reply) => reply,
            None => self.host.call(request),
        };
        match reply {
            HostReply::Refused(class, message) => {
                let error = ToolError::new(class, message).shortened();
                let answer = codec::encode_answer(Err(error), u64::MAX);
                self.answered(call, &answer, true);
                self.give(call, answer);
                HostReply::Done
            }
            reply => reply,
        }
    }

    /// Refuses to use an exchange that was open in the process that has ended.
    fn lost_connection(&self, request: &HostRequest<'_>) -> Option<HostReply> {
        let (HostRequest::NetSend { exchange, .. } | HostRequest::NetRead { exchange, .. }) =
            request
        else {
            return None;
        };
        let is_lost = lock(&self.state).lost.contains(exchange);
        is_lost.then(|| {
            let message = "the connection was lost when the session's process ended";
            HostReply::Refused("ConnectionResetError".to_owned(), message.to_owned())
        })
    }

    /// Records a reply before the guest gets it.
    pub(super) fn replied(&self, digest: Digest, has_effect: bool, reply: HostReply) -> HostReply {
        let mut state = lock(&self.state);
        let (milliseconds, reply) = (state.milliseconds(), Reply::Host(reply));
        let record = Record::Replied { digest, has_effect, milliseconds, reply };
        let recorded = state.append(&record);
        let recorded = recorded.and_then(|_| if has_effect { state.flush() } else { Ok(()) });
        drop(state);
        match (recorded, record) {
            (Ok(()), Record::Replied { reply: Reply::Host(reply), .. }) => reply,
            (Err(reason), _) => self.failed(reason),
            (Ok(()), _) => HostReply::Done,
        }
    }

    pub(super) fn failed(&self, reason: String) -> HostReply {
        self.fail(reason.clone());
        HostReply::Failed(reason)
    }

    /// Reads from a file, and records what was read.
    pub(super) fn record_read(
        &self,
        digest: Digest,
        (file, offset): (u32, u64),
        into: &mut [u8],
    ) -> Result<u32, FileError> {
        let read = self.host.read_file(file, offset, into);
        let length = read.as_ref().map_or(0, |count| *count as usize);
        let bytes = into.get(..length).unwrap_or_default();
        let mut state = lock(&self.state);
        let of_bytes = (length >= REPEATED_BYTES).then(|| Digest::of_bytes(bytes));
        let known = of_bytes.and_then(|of_bytes| state.reads.get(&of_bytes).copied());
        let reply = match (known, &read) {
            (Some(at), Ok(_)) => Reply::ReadAgain(at),
            (_, Ok(_)) => Reply::Read(Ok(serde_bytes::ByteBuf::from(bytes))),
            (_, Err(error)) => Reply::Read(Err(*error)),
        };
        let milliseconds = state.milliseconds();
        let recorded =
            state.append(&Record::Replied { digest, has_effect: false, milliseconds, reply });
        match recorded {
            Ok(at) => {
                if let (Some(of_bytes), None) = (of_bytes, known)
                    && state.reads.len() < REMEMBERED_READS
                {
                    state.reads.insert(of_bytes, at);
                }
                read
            }
            Err(reason) => {
                drop(state);
                self.fail(reason);
                Err(FileError::Io)
            }
        }
    }
}
