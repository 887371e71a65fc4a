//! Serves a deterministic or recorded session: what happens in it comes in turns.

use std::time::Instant;

use deno_core::v8;
use futures_util::FutureExt;

use super::order::Next;
use super::runtime::{Called, Isolate};
use crate::protocol::{HostRequest, ReplySink};

/// What happens in a turn of a deterministic session.
#[derive(Clone, Copy)]
enum Turn {
    /// The first callback that is to run at once runs, if there is one.
    Ready,
    /// The first timer fires.
    Timer,
    /// The guest gets the answer to a call, of this length.
    Answer(u32, usize),
}

/// A callback has run.
const RAN: f64 = -2.0;

impl Isolate {
    /// Serves a deterministic session until a call is done or the isolate is stopped: what the
    /// guest waits for comes one by one, in the order that [`Order`] decides.
    ///
    /// [`Order`]: super::order::Order
    pub(super) async fn call_in_order(
        &mut self,
        promise: v8::Global<v8::Value>,
        replies: &ReplySink,
    ) -> Called {
        let mut has_stalled = false;
        loop {
            if self.control.is_stopped() {
                return Called::Stopped;
            }
            if self.state(|state| state.died.is_some() || state.exited.is_some()) {
                return Called::Ended;
            }
            if let Some(called) = self.settled(&promise) {
                return called;
            }
            let is_woken = self.control.woken().now_or_never().is_some();
            let is_recorded = self.state(|state| state.recording().is_some());
            // In a recorded session an interrupt is one of the things that come next.
            if is_woken && !is_recorded {
                self.interrupt();
            }
            let due = match self.turn(Turn::Ready) {
                RAN => {
                    has_stalled = false;
                    continue;
                }
                due => (due >= 0.0).then_some(due),
            };
            let next = self.next_in_order(due, has_stalled);
            let tells_stalled = next.0 == Next::Nothing && !has_stalled;
            has_stalled = next.0 == Next::Nothing || has_stalled && next.0.is_outside();
            let limit = match next {
                (Next::Answer(call), length) => {
                    self.turn(Turn::Answer(call, length.unwrap_or_default()));
                    continue;
                }
                (Next::Timer, _) => {
                    self.turn(Turn::Timer);
                    continue;
                }
                (Next::Interrupt, _) => {
                    self.end_wait();
                    continue;
                }
                (Next::Peek(frame), _) => {
                    drop(self.peek(frame));
                    continue;
                }
                (Next::Diverged(reason), _) => {
                    self.state(|state| state.host.call(HostRequest::Diverged(reason)));
                    return Called::Threw(reason.to_owned());
                }
                _ if tells_stalled => {
                    let stalled = self.entry_points.stalled.clone();
                    // As for an interrupt.
                    drop(self.runtime.call(&stalled));
                    continue;
                }
                (Next::Server(limit), _) => limit,
                (Next::Tool | Next::Nothing, _) => None,
            };
            let started = Instant::now();
            tokio::select! {
                biased;
                () = self.control.woken() => {
                    if !is_recorded {
                        self.interrupt();
                    }
                }
                message = self.message() => {
                    let Some(message) = message else { return Called::Stopped };
                    self.serve(message, replies);
                }
                () = tokio::time::sleep(limit.unwrap_or_default()), if limit.is_some() => {}
            }
            if matches!(next.0, Next::Server(_)) {
                self.state(|state| {
                    if let Some(order) = &mut state.order {
                        order.waited(started.elapsed());
                    }
                });
            }
        }
    }

    /// Decides what happens next in a deterministic session. Of an answer it also returns the
    /// length.
    fn next_in_order(&self, due: Option<f64>, has_stalled: bool) -> (Next, Option<usize>) {
        let control = &self.control;
        self.state(|state| {
            let Some(order) = &mut state.order else { return (Next::Nothing, None) };
            let is_interrupted = control.has_interrupt();
            let next = order.next_in_recording(&state.calls, due, has_stalled, is_interrupted);
            match next {
                Next::Answer(call) => (next, state.calls.answer_length(call)),
                Next::Interrupt => {
                    if order.recording().is_some_and(|recording| !recording.is_replayed()) {
                        control.take_interrupt();
                    }
                    (next, None)
                }
                next => (next, None),
            }
        })
    }

    /// Ends the guest's wait for an interrupt, if there is one.
    pub(super) fn interrupt(&mut self) {
        if self.control.has_interrupt() {
            self.end_wait();
        }
    }

    /// Ends the guest's wait.
    fn end_wait(&mut self) {
        let interrupt = self.entry_points.interrupt.clone();
        // Fails only if the isolate is being terminated, which the callers detect.
        drop(self.runtime.call(&interrupt));
    }

    /// Returns how a call has ended, if its promise is settled. Reports promises that nobody
    /// handles.
    fn settled(&mut self, promise: &v8::Global<v8::Value>) -> Option<Called> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        let options = deno_core::PollEventLoopOptions::default();
        if let std::task::Poll::Ready(Err(error)) =
            self.runtime.poll_event_loop(&mut context, options)
        {
            return Some(Called::Threw(error.to_string()));
        }
        deno_core::scope!(scope, self.runtime);
        let promise = v8::Local::new(scope, promise);
        let promise = v8::Local::<v8::Promise>::try_from(promise).ok()?;
        match promise.state() {
            v8::PromiseState::Pending => None,
            v8::PromiseState::Fulfilled => Some(Called::Returned),
            v8::PromiseState::Rejected => {
                Some(Called::Threw(promise.result(scope).to_rust_string_lossy(scope)))
            }
        }
    }

    /// Lets the guest of a deterministic session go on. Returns [`RAN`], or when its first timer is
    /// due, or a negative number if it has none.
    fn turn(&mut self, turn: Turn) -> f64 {
        let (what, call, length) = match turn {
            Turn::Ready => (0, 0, 0),
            Turn::Timer => (1, 0, 0),
            Turn::Answer(call, length) => (2, call, length),
        };
        let function = self.entry_points.turn.clone();
        deno_core::scope!(scope, self.runtime);
        v8::tc_scope!(let scope, scope);
        #[expect(clippy::cast_precision_loss, reason = "an answer is shorter than 2^53 bytes")]
        let numbers = [f64::from(what), f64::from(call), length as f64];
        let arguments = numbers.map(|number| v8::Number::new(scope, number).into());
        let this = v8::undefined(scope).into();
        let result = function.open(scope).call(scope, this, &arguments);
        let result = result.and_then(|result| result.number_value(scope));
        scope.perform_microtask_checkpoint();
        // Fails only if the isolate is being terminated, which the caller detects.
        result.unwrap_or(RAN)
    }
}
