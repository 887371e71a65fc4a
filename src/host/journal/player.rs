//! Gives a session that is replayed what came of its requests before, and does nothing of it again.

use std::sync::Weak;

use super::record::{CallAgain, Digest, Reply};
use super::recorder::Kind;
use super::replay::{EffectReply, Request};
use super::trace::{self, Traced, TracedWhat};
use super::{JournalHost, Mode, Until};
use crate::data::error::Error;
use crate::data::shown::shown;
use crate::data::tool::ToolError;
use crate::fs::FileError;
use crate::host::exchanges::is_safe;
use crate::host::saved::SavedPackage;
use crate::protocol::codec;
use crate::protocol::{Host, HostReply, HostRequest, NetRequest};
use crate::support::lock::lock;

/// The name of the exception that a call raises whose answer is lost.
const CALL_INTERRUPTED: &str = "CallInterrupted";

impl JournalHost {
    /// Returns what came of the next request, if it was recorded.
    pub(super) fn next_request(&self) -> Option<Result<Request, String>> {
        let mut state = lock(&self.state);
        let replay = state.replay.as_mut().filter(|replay| !replay.is_done())?;
        let next = replay.next_request();
        Some(next.map_err(|reason| format!("the journal `{}`: {reason}", replay.path().display())))
    }

    /// Tells who looks back of something that a session asks for or gets.
    pub(super) fn trace(&self, milliseconds: u64, what: impl FnOnce() -> Option<TracedWhat>) {
        if let Some(tracer) = &self.tracer
            && let Some(what) = what()
        {
            tracer(&Traced::new(milliseconds, what));
        }
    }

    /// Gives the guest what came of a request.
    pub(super) fn replay(&self, request: HostRequest<'_>, recorded: Request) -> HostReply {
        let reply = self.replayed(request, recorded);
        self.stop_if_stopped();
        reply
    }

    fn replayed(&self, request: HostRequest<'_>, recorded: Request) -> HostReply {
        match recorded {
            Request::Passed => match self.kind(&request) {
                Kind::Passed => self.host.call(request),
                _ => self.diverged(&request),
            },
            Request::Asked { digest, milliseconds, again } if digest == Digest::of(&request) => {
                self.trace(milliseconds, || trace::of_request(&request, None));
                match self.kind(&request) {
                    Kind::Call(call) => self.replay_call(call, request, again),
                    _ => self.diverged(&request),
                }
            }
            Request::Replied { digest, milliseconds, reply: Reply::Host(reply) }
                if digest == Digest::of(&request) =>
            {
                self.trace(milliseconds, || trace::of_request(&request, Some(&reply)));
                self.host.follow(&request, &reply);
                // A worker would wait for an interrupt that does not come.
                match reply {
                    HostReply::Interrupted(_) => HostReply::Interrupted(0),
                    reply => reply,
                }
            }
            Request::Effect(digest, EffectReply { digest: again, milliseconds, reply })
                if digest == Digest::of(&request) && again == digest =>
            {
                let Reply::Host(reply) = reply else { return self.diverged(&request) };
                self.trace(milliseconds, || trace::of_request(&request, Some(&reply)));
                self.host.follow(&request, &reply);
                reply
            }
            Request::LastEffect(..) if self.looks_back() => self.beyond(&request),
            Request::LastEffect(digest, before) if digest == Digest::of(&request) => {
                let reply = match request {
                    HostRequest::File(request) => {
                        HostReply::File(self.host.files().call_again(request, before))
                    }
                    request => self.host.call(request),
                };
                self.replied(digest, true, reply)
            }
            _ => self.diverged(&request),
        }
    }

    /// Gives the guest the answer to a call that was made before. Without one, the call is made
    /// again if that does no harm.
    fn replay_call(
        &self,
        call: u32,
        request: HostRequest<'_>,
        again: Option<CallAgain>,
    ) -> HostReply {
        let recorded = {
            let state = lock(&self.state);
            let replay = state.replay.as_ref();
            let answer = replay.map_or(Ok(None), |replay| replay.answer(call));
            let loaded = replay.map_or(Ok(None), |replay| replay.loaded(call));
            answer.and_then(|answer| Ok((answer, loaded?)))
        };
        let (answer, loaded) = match recorded {
            Ok(recorded) => recorded,
            Err(reason) => return self.failed(reason),
        };
        if let Some((answer, is_refusal, milliseconds)) = answer {
            self.trace(milliseconds, || Some(trace::of_answer(call, &answer)));
            if let Some(packages) = loaded
                && let Err(error) = self.load_again(&packages)
            {
                return self.failed(error.to_string());
            }
            if let HostRequest::CallTool { tool, .. } = &request
                && self.host.tools().is_question(tool)
                && !self.looks_back()
            {
                return self.ask_again(call, request, answer);
            }
            let permitted =
                if is_refusal { Ok(()) } else { self.host.permit_again(call, &request) };
            if let Err(reason) = permitted {
                let reason = Self::diverge(&lock(&self.state), &reason);
                return self.failed(reason);
            }
            if matches!(request, HostRequest::NetStart { .. }) {
                lock(&self.state).lost.insert(call);
            }
            self.give(call, answer);
            return HostReply::Done;
        }
        if self.looks_back() {
            return self.beyond(&request);
        }
        if self.may_ask_again(call, &request, again) {
            return self.make_call(call, request);
        }
        let what = match &request {
            HostRequest::CallTool { tool, .. } => {
                self.host.tools().count_again(call, tool);
                format!("the call of {}()", shown(tool))
            }
            _ => "the request".to_owned(),
        };
        let message = format!(
            "{what} was under way when the session's process ended, so it may have been carried \
             out, and is not made again"
        );
        let answer = codec::encode_answer(Err(ToolError::new(CALL_INTERRUPTED, message)), u64::MAX);
        self.answered(call, &answer, true);
        self.give(call, answer);
        HostReply::Done
    }

    /// Asks the host a question of the guest's glue again, for the modules of tools that it then
    /// has. The guest gets the recorded answer.
    fn ask_again(&self, call: u32, request: HostRequest<'_>, recorded: Vec<u8>) -> HostReply {
        lock(&self.state).substitutes.insert(call, recorded);
        if matches!(self.host.call(request), HostReply::Refused(..))
            && let Some(recorded) = lock(&self.state).substitutes.remove(&call)
        {
            self.give(call, recorded);
        }
        HostReply::Done
    }

    /// Loads the packages that the guest had loaded, if they are allowed. Looking back needs no
    /// permission of its own.
    pub(super) fn load_again(&self, packages: &[SavedPackage]) -> Result<(), Error> {
        let mode = {
            let mut state = lock(&self.state);
            state.packages = packages.len();
            state.mode
        };
        match mode {
            Mode::GoesOn | Mode::Ended => {
                let preloaded = self.host.packages().saved().0;
                self.host.packages().restore(&preloaded, packages)
            }
            Mode::LooksBack => self.host.packages().load_exactly(packages),
        }
    }

    /// Returns `true` if a call that was under way may be made again.
    fn may_ask_again(
        &self,
        call: u32,
        request: &HostRequest<'_>,
        again: Option<CallAgain>,
    ) -> bool {
        match request {
            HostRequest::CallTool { .. } => match again {
                Some(CallAgain::Always) => true,
                Some(CallAgain::UnlessBegun) => {
                    let state = lock(&self.state);
                    !state.replay.as_ref().is_some_and(|replay| replay.has_begun(call))
                }
                Some(CallAgain::Never) | None => false,
            },
            HostRequest::NetStart { request, .. } => match request {
                NetRequest::Connect { .. } => true,
                request => is_safe(request),
            },
            // The exchange is lost, which its answer says.
            HostRequest::NetSend { .. }
            | HostRequest::NetRead { .. }
            | HostRequest::Import { .. } => true,
            _ => false,
        }
    }

    pub(super) fn diverged(&self, request: &HostRequest<'_>) -> HostReply {
        let reason = {
            let state = lock(&self.state);
            let what = format!("it {}, and did something else when it was recorded", told(request));
            Self::diverge(&state, &what)
        };
        self.failed(reason)
    }

    /// Ends a run that is looked back at, which asks for more than was recorded. What is run then
    /// gets nothing of the host.
    pub(super) fn beyond(&self, request: &HostRequest<'_>) -> HostReply {
        if !self.end_look_back() {
            return beyond(request);
        }
        match self.kind(request) {
            // It waits until it is interrupted.
            Kind::Call(_) => HostReply::Done,
            _ => beyond(request),
        }
    }

    /// Interrupts the run that is looked back at, once. Returns `true` if it has.
    pub(super) fn end_look_back(&self) -> bool {
        let was_over = {
            let mut state = lock(&self.state);
            state.is_silent |= !state.is_over;
            std::mem::replace(&mut state.is_over, true)
        };
        if let (false, Some(stopper)) = (was_over, self.stopper.get().and_then(Weak::upgrade)) {
            stopper.interrupt();
        }
        !was_over
    }

    /// Returns the line at which the session that is looked back at stops, as `LINE FILE`.
    pub(super) fn stop_line(&self) -> String {
        match &self.until {
            Until::Line { file, line } => format!("{line} {}", file.as_deref().unwrap_or("")),
            Until::End | Until::Call(_) | Until::Milliseconds(_) => String::new(),
        }
    }

    /// Ends the replay where the guest has come to its line. It interrupts itself there.
    pub(super) fn end_at_line(&self) {
        let mut state = lock(&self.state);
        if state.mode == Mode::LooksBack && matches!(self.until, Until::Line { .. }) {
            state.is_silent |= !state.is_over;
            (state.is_over, state.was_interrupted) = (true, true);
            (state.replay, state.stopped) = (None, None);
        }
    }

    /// Returns what happens next in a replay.
    pub(super) fn order(&self) -> HostReply {
        let mut state = lock(&self.state);
        let script = match &mut state.replay {
            Some(replay) => replay.script(),
            None => Ok(crate::protocol::happened::Script { events: Vec::new(), requests: Some(0) }),
        };
        drop(state);
        self.stop_if_stopped();
        let encoded = script
            .and_then(|script| postcard::to_allocvec(&script).map_err(|error| error.to_string()));
        encoded.map_or_else(|reason| self.failed(reason), HostReply::Bytes)
    }

    /// Ends a session that a replay has taken to where the host ended it. What the guest computed
    /// after that, nobody has seen, so it is not computed again.
    pub(crate) fn stop_if_stopped(&self) {
        if self.is_stopped()
            && let Some(stopper) = self.stopper.get().and_then(Weak::upgrade)
        {
            stopper.kill();
        }
    }

    /// Returns `true` if a replay has taken a session to where the host ended it.
    pub(super) fn is_stopped(&self) -> bool {
        let state = lock(&self.state);
        let Some(stopped) = state.stopped.as_ref().filter(|stopped| stopped.ends_session) else {
            return false;
        };
        let is_over =
            state.replay.as_ref().is_none_or(|replay| replay.is_done() && replay.has_told_all());
        let limit = (stopped.stdout_bytes, stopped.stderr_bytes);
        let has_given = state.given >= stopped.given;
        // The line at which it is to stop may come after everything that was recorded.
        let until_line = state.mode == Mode::LooksBack && matches!(self.until, Until::Line { .. });
        drop(state);
        let written = self.host.written();
        is_over && has_given && !until_line && written.0 >= limit.0 && written.1 >= limit.1
    }
}

/// Returns what a session that is looked back at gets for a request that was not recorded.
fn beyond(request: &HostRequest<'_>) -> HostReply {
    let reason = "the journal ends here, and a session that is replayed reaches nothing else";
    match request {
        HostRequest::File(_) => HostReply::File(Err(FileError::Io)),
        HostRequest::ReadStdin(_) => HostReply::Bytes(Vec::new()),
        _ => HostReply::Refused("PermissionError".to_owned(), reason.to_owned()),
    }
}

/// Says what the guest asks for.
fn told(request: &HostRequest<'_>) -> String {
    match request {
        HostRequest::CallTool { tool, .. } => format!("calls {}()", shown(tool)),
        HostRequest::ReadStdin(_) => "reads its standard input".to_owned(),
        HostRequest::NetCheck { host, .. } => format!("asks for the server `{}`", shown(host)),
        HostRequest::NetStart { .. } => "makes a request".to_owned(),
        HostRequest::NetSend { .. } => "sends the body of a request".to_owned(),
        HostRequest::NetRead { .. } => "reads the body of a response".to_owned(),
        HostRequest::Import { module, .. } => format!("imports `{}`", shown(module)),
        HostRequest::File(request) => match request.path() {
            Some(path) => format!("uses the file `{}`", shown(path)),
            None => "uses an open file".to_owned(),
        },
        _ => "asks for something".to_owned(),
    }
}
