//! Stops the current command in steps: first a `KeyboardInterrupt`, so that the session may
//! survive, then the kill. The verdict is settled once, before the first step, by the first cause.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::clock::{Alarm, RunClock, RunTimes};
use super::gate::Passage;
use crate::data::execution::LimitKind;
use crate::protocol::Control;
use crate::support::lock::lock;
use crate::support::watchdog::{self, Armed};

/// How long the host waits for the isolate's last reply after a kill. Some of V8's steps cannot be
/// interrupted, and the host may be serving a long request.
const PATIENCE: Duration = Duration::from_millis(500);

/// Why the host stopped a command.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// The guest's time is used up.
    Deadline,
    /// The time of the tools is used up.
    HostTime,
    /// A count exceeded its limit.
    Limit { kind: LimitKind, limit: u64, observed: u64 },
}

/// How the host stopped a command that has ended. The guest cannot influence it.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Why the command was stopped; `None` if it ended by itself.
    pub(crate) cause: Option<Cause>,
    /// The guest was killed, whatever it has reported.
    pub(crate) killed: bool,
    /// The time that the command took.
    pub(crate) times: RunTimes,
}

/// The verdict on a command. Its lock is held while the guest is interrupted, so that no interrupt
/// can arrive after the end and hit the next command.
#[derive(Default)]
struct Verdict {
    settled: Mutex<Settled>,
    /// Notified when waiting for the isolate's reply is no longer worthwhile.
    overdue: Notify,
}

/// What ended a command.
#[derive(Default)]
enum Ending {
    /// Nothing so far.
    #[default]
    Open,
    /// The command ended by itself.
    Finished,
    /// The host stopped it.
    Stopped(Cause),
}

#[derive(Default)]
struct Settled {
    ending: Ending,
    /// The second interrupt and the kill, which follow the first interrupt.
    kill: Option<Armed>,
    killed: Arc<AtomicBool>,
}

/// A host whose guest can be stopped.
pub(crate) trait Stoppable: Send + Sync {
    /// Shuts the gate for the guest's requests to this state.
    fn shut(&self, passage: Passage);

    /// Ends all waits of the guest's requests.
    fn interrupt_waits(&self);
}

/// Stops the command that a session's guest is running.
pub(crate) struct RunStopper {
    control: Arc<dyn Control>,
    host: Arc<dyn Stoppable>,
    grace: Duration,
    /// The verdict on the current command.
    current: Mutex<Option<Arc<Verdict>>>,
}

/// A command under way. Dropping it disarms its deadline.
pub(crate) struct Stopping<'a> {
    stopper: &'a Arc<RunStopper>,
    verdict: Arc<Verdict>,
    clock: Arc<RunClock>,
}

impl RunStopper {
    pub(crate) fn new(
        control: Arc<dyn Control>,
        host: Arc<dyn Stoppable>,
        grace: Duration,
    ) -> Self {
        Self { control, host, grace, current: Mutex::default() }
    }

    pub(crate) fn control(&self) -> &Arc<dyn Control> {
        &self.control
    }

    /// Begins a command that will be stopped when its guest has taken `guest_limit`, or the tools
    /// that it calls have taken `host_limit`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        started: Instant,
        guest_limit: Duration,
        host_limit: Duration,
    ) -> Result<Stopping<'_>, std::io::Error> {
        self.control.clear_interrupt();
        let verdict = Arc::new(Verdict::default());
        *lock(&self.current) = Some(Arc::clone(&verdict));
        let clock = Arc::new(RunClock::new(started, guest_limit, host_limit));
        let (stopper, late, times) = (Arc::clone(self), Arc::clone(&verdict), Arc::clone(&clock));
        let ring = move || {
            let cause = match times.ring(Instant::now()) {
                Alarm::Moved => return None,
                Alarm::At(later) => return Some(later),
                Alarm::GuestTime => Cause::Deadline,
                Alarm::HostTime => Cause::HostTime,
            };
            stopper.apply(&late, cause);
            None
        };
        match watchdog::arm(clock.wakes(), Box::new(ring)) {
            Ok(armed) => {
                clock.set_alarm(armed);
                Ok(Stopping { stopper: self, verdict, clock })
            }
            Err(error) => {
                lock(&self.current).take();
                Err(error)
            }
        }
    }

    /// Stops the current command, if there is one that has not been stopped yet.
    pub(crate) fn stop(self: &Arc<Self>, cause: Cause) {
        let current = lock(&self.current).clone();
        if let Some(verdict) = current {
            self.apply(&verdict, cause);
        }
    }

    /// Raises `KeyboardInterrupt` in the guest.
    pub(crate) fn interrupt(&self) {
        self.control.interrupt();
        self.host.interrupt_waits();
    }

    /// Kills the guest. Its requests have no effect from here on, except for output that it wrote
    /// before.
    pub(crate) fn kill(&self) {
        self.host.shut(Passage::Output);
        self.control.terminate();
        self.host.interrupt_waits();
    }

    fn apply(self: &Arc<Self>, verdict: &Arc<Verdict>, cause: Cause) {
        let mut settled = lock(&verdict.settled);
        if !matches!(settled.ending, Ending::Open) {
            return;
        }
        settled.ending = Ending::Stopped(cause);
        let (stopper, killed) = (Arc::clone(self), Arc::clone(&settled.killed));
        let overdue = Arc::clone(verdict);
        let last = Instant::now() + self.grace;
        let step = move || {
            if Instant::now() < last {
                // One interrupt ends one task; a task that the guest has started since needs
                // another one.
                stopper.interrupt();
                return Some(last);
            }
            if killed.swap(true, Ordering::AcqRel) {
                overdue.overdue.notify_one();
                return None;
            }
            stopper.kill();
            Some(Instant::now() + PATIENCE)
        };
        let next = if self.grace.is_zero() {
            step()
        } else {
            self.interrupt();
            Some(Instant::now() + self.grace / 2)
        };
        // The watchdog's thread exists, because the deadline was armed on it.
        settled.kill = watchdog::arm(next.unwrap_or(last), Box::new(step)).ok();
    }
}

impl Stopping<'_> {
    /// Returns the command's clock.
    pub(crate) fn clock(&self) -> &Arc<RunClock> {
        &self.clock
    }

    /// Waits until the guest was killed and its isolate had time to reply.
    pub(crate) async fn overdue(&self) {
        self.verdict.overdue.notified().await;
    }

    /// Ends the command and settles its verdict, if that is still open. Nothing stops the guest
    /// after this.
    pub(crate) fn end(self) -> Stop {
        self.settle()
    }

    fn settle(&self) -> Stop {
        lock(&self.stopper.current).take();
        let (cause, kill, killed) = {
            let mut settled = lock(&self.verdict.settled);
            let cause = match &settled.ending {
                Ending::Stopped(cause) => Some(cause.clone()),
                Ending::Open | Ending::Finished => {
                    settled.ending = Ending::Finished;
                    None
                }
            };
            (cause, settled.kill.take(), Arc::clone(&settled.killed))
        };
        // Waits for a kill that is under way.
        drop(kill);
        let times = self.clock.end();
        Stop { cause, killed: killed.load(Ordering::Acquire), times }
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}
