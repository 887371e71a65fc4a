//! Stopping the command that is under way, in steps: a `KeyboardInterrupt` first, so that the
//! session may live on, then the kill. The verdict is settled before the first of them, once, by
//! whoever is first.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::gate::Passage;
use crate::data::execution::LimitKind;
use crate::protocol::Control;
use crate::support::lock::lock;
use crate::support::watchdog::{self, Armed};

/// How long after a kill the isolate's last reply is waited for. V8 has steps that it never
/// interrupts, and the host may be in the midst of a request that takes long.
const PATIENCE: Duration = Duration::from_millis(500);

/// Why the host stopped a command.
#[derive(Clone, Debug)]
pub(crate) enum Cause {
    /// Its time was up.
    Deadline,
    /// It had more of something than it may.
    Limit { kind: LimitKind, limit: u64, observed: u64 },
}

/// What the host did about a command that has ended. The guest has no say in it.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    /// Why it was stopped; `None` if it came to its end by itself.
    pub(crate) cause: Option<Cause>,
    /// The guest was killed, whatever it has reported.
    pub(crate) killed: bool,
}

/// The verdict on a command. Its lock is held while the guest is interrupted, so that no interrupt
/// can come after the end and hit the next command.
#[derive(Default)]
struct Verdict {
    settled: Mutex<Settled>,
    /// Told when the isolate's reply is not worth waiting for any more.
    overdue: Notify,
}

/// Who has ended a command.
#[derive(Default)]
enum Ending {
    /// Nobody so far.
    #[default]
    Open,
    /// The command itself.
    Finished,
    /// The host.
    Stopped(Cause),
}

#[derive(Default)]
struct Settled {
    ending: Ending,
    /// The second interrupt and the kill, which follow the first.
    kill: Option<Armed>,
    killed: Arc<AtomicBool>,
}

/// The host whose guest is stopped.
pub(crate) trait Stoppable: Send + Sync {
    /// Lets no more of the guest's requests pass than this.
    fn shut(&self, passage: Passage);

    /// Ends the waits in which the guest's requests are.
    fn interrupt_waits(&self);
}

/// Stops the command that a session's guest carries out.
pub(crate) struct RunStopper {
    control: Arc<dyn Control>,
    host: Arc<dyn Stoppable>,
    grace: Duration,
    /// The verdict on the command that is under way.
    current: Mutex<Option<Arc<Verdict>>>,
}

/// A command while it is under way. Dropping it disarms what was to stop it.
pub(crate) struct Stopping<'a> {
    stopper: &'a Arc<RunStopper>,
    verdict: Arc<Verdict>,
    _deadline: Armed,
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

    /// Begins a command, which is stopped at `deadline`.
    pub(crate) fn begin(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Stopping<'_>, std::io::Error> {
        self.control.clear_interrupt();
        let verdict = Arc::new(Verdict::default());
        *lock(&self.current) = Some(Arc::clone(&verdict));
        let (stopper, late) = (Arc::clone(self), Arc::clone(&verdict));
        let stop = move || {
            stopper.apply(&late, Cause::Deadline);
            None
        };
        match watchdog::arm(deadline, Box::new(stop)) {
            Ok(armed) => Ok(Stopping { stopper: self, verdict, _deadline: armed }),
            Err(error) => {
                lock(&self.current).take();
                Err(error)
            }
        }
    }

    /// Stops the command that is under way, if there is one that nobody has stopped yet.
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

    /// Kills the guest, whose requests have no effect from here on; what it has written may still
    /// be on its way.
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
                // One interrupt ends one task; what the guest has begun meanwhile needs another
                // one.
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
        // Without the watchdog's thread there would be no deadline to come from.
        settled.kill = watchdog::arm(next.unwrap_or(last), Box::new(step)).ok();
    }
}

impl Stopping<'_> {
    /// Waits until the guest was killed and its isolate has had time enough to say so.
    pub(crate) async fn overdue(&self) {
        self.verdict.overdue.notified().await;
    }

    /// The command has ended: settles what nobody has settled yet. Nothing stops the guest any
    /// more.
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
        Stop { cause, killed: killed.load(Ordering::Acquire) }
    }
}

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.settle();
    }
}
