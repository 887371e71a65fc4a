//! Stops an isolate from other threads, until its own thread has ended.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use deno_core::v8;
use tokio::sync::Notify;

use super::signal::{self, Signal};
use crate::protocol::Control;
use crate::support::niceness::NiceThread;
use crate::support::watchdog;

/// How often V8 is told to stop while the isolate's thread is expected to end.
const REPEAT: Duration = Duration::from_millis(5);

/// How often V8 is told to stop once the thread counts as lost.
const REPEAT_LOST: Duration = Duration::from_millis(250);

/// A thread that has not ended this long after its isolate was terminated counts as lost: V8 is in
/// a step that cannot be interrupted. Shorter than the time until the run returns, so that the next
/// session sees it.
const LOST_AFTER: Duration = Duration::from_millis(400);

/// There is no alarm.
const NO_ALARM: u8 = 0;
/// The alarm is not due yet.
const ALARM_SET: u8 = 1;
/// The alarm is due, and the guest has not taken it.
const ALARM_DUE: u8 = 2;

/// The number of threads of this process that count as lost and have not ended.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Returns how many threads of terminated isolates have not ended.
pub(crate) fn lost_threads() -> usize {
    LOST.load(Ordering::Acquire)
}

/// State shared by the isolate's thread and the threads that may stop it.
pub(crate) struct IsolateControl {
    /// Itself, for the watchdog.
    this: Weak<Self>,
    /// Set by the isolate's thread once the isolate exists.
    handle: OnceLock<v8::IsolateHandle>,
    stopped: AtomicBool,
    /// The isolate's thread.
    thread: NiceThread,
    life: Mutex<Life>,
    /// Set while an interrupt waits for the guest to handle it.
    pending: AtomicBool,
    /// Set if an interrupt was requested in this run.
    asked: AtomicBool,
    /// The guest's alarm: one of the three below.
    alarm: AtomicU8,
    woken: Notify,
    /// The limit of V8's heap and the observed size, once the guest has exceeded the limit.
    exhausted: OnceLock<(u64, u64)>,
}

/// The state of the isolate's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// The watchdog repeats the termination until the thread ends.
    Terminated,
    Lost,
    /// The thread has left the guest permanently and is freeing its resources.
    Leaving,
    Ended,
}

/// Records on drop that the isolate's thread has ended.
pub(super) struct Ending(Arc<IsolateControl>);

impl Ending {
    /// Records that the thread has left the guest permanently.
    pub(super) fn leave(&self) {
        self.enter(Life::Leaving);
    }

    fn enter(&self, life: Life) {
        let before = std::mem::replace(&mut *self.0.life(), life);
        if before == Life::Lost {
            LOST.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.enter(Life::Ended);
    }
}

impl IsolateControl {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Self {
            this: Weak::clone(this),
            handle: OnceLock::new(),
            stopped: AtomicBool::new(false),
            thread: NiceThread::default(),
            life: Mutex::new(Life::Running),
            pending: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            alarm: AtomicU8::new(NO_ALARM),
            woken: Notify::new(),
            exhausted: OnceLock::new(),
        })
    }

    pub(crate) fn attach(&self, handle: v8::IsolateHandle) {
        // Set once, by the only thread that makes the isolate.
        let _ = self.handle.set(handle);
        if self.is_stopped() {
            self.terminate_once();
        }
    }

    /// Returns a guard that the isolate's thread keeps until its end.
    pub(super) fn ending(self: &Arc<Self>) -> Ending {
        self.thread.set_to_this_thread();
        Ending(Arc::clone(self))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Takes the waiting interrupt. Returns `true` if there was one.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_interrupt(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Sets the guest's alarm, or none.
    pub(crate) fn set_alarm(&self, is_set: bool) {
        self.alarm.store(if is_set { ALARM_SET } else { NO_ALARM }, Ordering::Release);
    }

    /// Has the guest look for its alarm, which is due.
    pub(crate) fn ring(&self) {
        let order = (Ordering::AcqRel, Ordering::Acquire);
        if self.alarm.compare_exchange(ALARM_SET, ALARM_DUE, order.0, order.1).is_ok()
            && let Some(handle) = self.handle.get()
        {
            signal::raise(handle, Signal::Alarm);
        }
    }

    /// Takes the alarm if it is due, or even before if `is_early`. Returns `true` if there was one.
    pub(crate) fn take_alarm(&self, is_early: bool) -> bool {
        let taken = |found| match found {
            ALARM_DUE => Some(NO_ALARM),
            ALARM_SET if is_early => Some(NO_ALARM),
            _ => None,
        };
        self.alarm.fetch_update(Ordering::AcqRel, Ordering::Acquire, taken).is_ok()
    }

    /// Stops the isolate because its heap has exceeded `limit`.
    pub(crate) fn exhaust(&self, limit: u64, observed: u64) {
        // Only the first call counts: the heap may grow further while the guest is being ended.
        let _ = self.exhausted.set((limit, observed));
        self.terminate();
    }

    /// Returns the limit of the heap and the observed size, if the guest has exceeded the limit.
    pub(crate) fn exhausted(&self) -> Option<(u64, u64)> {
        self.exhausted.get().copied()
    }

    /// Wakes the isolate's thread to check its state.
    pub(crate) fn wake(&self) {
        self.woken.notify_one();
    }

    /// Waits for an interrupt or a termination.
    pub(crate) async fn woken(&self) {
        self.woken.notified().await;
    }

    fn life(&self) -> std::sync::MutexGuard<'_, Life> {
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn terminate_once(&self) {
        if let Some(handle) = self.handle.get() {
            handle.terminate_execution();
        }
        self.woken.notify_one();
    }

    /// Terminates again, `elapsed` after the first time. Returns the delay until the next time, if
    /// there is one.
    fn terminate_again(&self, elapsed: Duration) -> Option<Duration> {
        {
            let mut life = self.life();
            match *life {
                Life::Ended => return None,
                Life::Terminated if elapsed >= LOST_AFTER => {
                    *life = Life::Lost;
                    LOST.fetch_add(1, Ordering::AcqRel);
                    // While `life` is locked the thread has not ended.
                    self.thread.yield_processors();
                }
                _ => {}
            }
        }
        self.terminate_once();
        Some(if elapsed < LOST_AFTER { REPEAT } else { REPEAT_LOST })
    }
}

impl Control for IsolateControl {
    fn interrupt(&self) {
        self.asked.store(true, Ordering::Release);
        self.pending.store(true, Ordering::Release);
        if let Some(handle) = self.handle.get() {
            signal::raise(handle, Signal::Interrupt);
        }
        self.woken.notify_one();
    }

    fn clear_interrupt(&self) {
        self.asked.store(false, Ordering::Release);
        self.pending.store(false, Ordering::Release);
    }

    fn interrupted(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Terminates V8's execution now, and repeats this until the isolate's thread has ended: V8
    /// forgets a termination at the boundaries of calls, and a guest may find a way to catch one.
    fn terminate(&self) {
        self.stopped.store(true, Ordering::Release);
        self.terminate_once();
        {
            let mut life = self.life();
            if *life != Life::Running {
                return;
            }
            *life = Life::Terminated;
        }
        let (this, first) = (Weak::clone(&self.this), Instant::now());
        let again = move || {
            let next = this.upgrade()?.terminate_again(first.elapsed())?;
            Some(Instant::now() + next)
        };
        // If the watchdog's thread cannot start, no run can begin, and an isolate terminated before
        // its first run has run no guest code.
        let _ = watchdog::repeat(first + REPEAT, Box::new(again));
    }
}
