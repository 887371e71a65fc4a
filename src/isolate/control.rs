//! Stopping an isolate from other threads, until its own thread has ended.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use deno_core::v8;
use tokio::sync::Notify;

use super::signal;
use crate::protocol::Control;
use crate::support::watchdog;

/// How often V8 is told to stop while the isolate's thread is expected to end.
const REPEAT: Duration = Duration::from_millis(5);

/// How often it is told so once the thread counts as lost.
const REPEAT_LOST: Duration = Duration::from_millis(250);

/// A thread that has not ended so long after its isolate was terminated counts as lost: V8 is in a
/// step that it never interrupts. Sooner than the run returns, so that the next session sees it.
const LOST_AFTER: Duration = Duration::from_millis(400);

/// Threads of this process that count as lost and have not ended.
static LOST: AtomicUsize = AtomicUsize::new(0);

/// Returns how many threads of terminated isolates have not ended.
pub(crate) fn lost_threads() -> usize {
    LOST.load(Ordering::Acquire)
}

/// Shared by the isolate's thread and whoever may stop it.
pub(crate) struct IsolateControl {
    /// Itself, for the watchdog.
    this: Weak<Self>,
    /// Set by the isolate's thread once there is an isolate.
    handle: OnceLock<v8::IsolateHandle>,
    stopped: AtomicBool,
    /// The isolate's thread, as the system knows it.
    #[cfg(target_os = "linux")]
    thread: OnceLock<rustix::thread::Pid>,
    life: Mutex<Life>,
    /// An interrupt waits to be served by the guest.
    pending: AtomicBool,
    /// An interrupt was asked for in this run.
    asked: AtomicBool,
    woken: Notify,
    /// The limit of V8's heap and what was observed, once the guest has exceeded it.
    exhausted: OnceLock<(u64, u64)>,
}

/// The life of the isolate's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    Running,
    /// The watchdog repeats the termination until the thread ends.
    Terminated,
    Lost,
    /// It has left the guest for good, and gives back what it has.
    Leaving,
    Ended,
}

/// Says that the isolate's thread has ended, when it is dropped.
pub(super) struct Ending(Arc<IsolateControl>);

impl Ending {
    /// Says that the thread has left the guest for good.
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
            #[cfg(target_os = "linux")]
            thread: OnceLock::new(),
            life: Mutex::new(Life::Running),
            pending: AtomicBool::new(false),
            asked: AtomicBool::new(false),
            woken: Notify::new(),
            exhausted: OnceLock::new(),
        })
    }

    pub(crate) fn attach(&self, handle: v8::IsolateHandle) {
        // Set once, by the one thread that makes the isolate.
        let _ = self.handle.set(handle);
        if self.is_stopped() {
            self.terminate_once();
        }
    }

    /// The isolate's thread keeps this until its end.
    pub(super) fn ending(self: &Arc<Self>) -> Ending {
        #[cfg(target_os = "linux")]
        let _ = self.thread.set(rustix::thread::gettid());
        Ending(Arc::clone(self))
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    /// Takes the interrupt that waits, if one does.
    pub(crate) fn take_interrupt(&self) -> bool {
        self.pending.load(Ordering::Relaxed) && self.pending.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn has_interrupt(&self) -> bool {
        self.pending.load(Ordering::Acquire)
    }

    /// Stops the isolate because its heap has outgrown `limit`.
    pub(crate) fn exhaust(&self, limit: u64, observed: u64) {
        // The first time counts; while the guest is ended the heap may grow further.
        let _ = self.exhausted.set((limit, observed));
        self.terminate();
    }

    /// The limit of the heap and what was observed, if the guest has exceeded it.
    pub(crate) fn exhausted(&self) -> Option<(u64, u64)> {
        self.exhausted.get().copied()
    }

    /// Has the isolate's thread look again.
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

    /// Lets a lost thread run only when nobody else wants the processor. While `life` is locked it
    /// has not ended, so that its number is not another's.
    fn yield_processors(&self) {
        #[cfg(target_os = "linux")]
        if let Some(thread) = self.thread.get() {
            // If the system refuses, the thread takes more of the processors; it is lost all the
            // same.
            let _ = rustix::process::setpriority_process(Some(*thread), 19);
        }
    }

    /// Terminates again, `elapsed` after the first time. Returns when to do it next, if ever.
    fn terminate_again(&self, elapsed: Duration) -> Option<Duration> {
        {
            let mut life = self.life();
            match *life {
                Life::Ended => return None,
                Life::Terminated if elapsed >= LOST_AFTER => {
                    *life = Life::Lost;
                    LOST.fetch_add(1, Ordering::AcqRel);
                    self.yield_processors();
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
            signal::raise(handle);
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

    /// Terminates V8's execution now, and again until the isolate's thread has ended: V8 forgets a
    /// termination at the edges of calls, and a guest may find a way to swallow one.
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
        // Without the watchdog's thread no run begins. What is terminated before one has begun has
        // run no guest code.
        let _ = watchdog::repeat(first + REPEAT, Box::new(again));
    }
}
