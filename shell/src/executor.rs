//! Runs futures without threads: they are polled until nothing wakes them, and the host waits.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use crate::host;

/// Which session is polled, which sleeps until when, and how it is woken.
static POLLED: AtomicU32 = AtomicU32::new(0);
static SLEEPERS: Mutex<Vec<(u32, u64, Waker)>> = Mutex::new(Vec::new());

/// How long the host is not asked to go on, in microseconds. It may have other things to do.
const SLICE: u64 = 20_000;

/// What sleeps longer, as the run's own time limit does, is not woken.
const FOREVER: u64 = 1_000_000_000_000_000;

/// What is left for everything that does not ask: builtins, regular expressions, the parser.
const STACK_RESERVE: usize = 1 << 20;

/// Whether the session that is polled is to end.
static CANCELLED: AtomicBool = AtomicBool::new(false);

/// bashkit asks before it sleeps.
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_cancelled() -> bool {
    CANCELLED.load(Ordering::Relaxed)
}

/// The address below which the stack may not go further; it grows downwards.
static FLOOR: AtomicUsize = AtomicUsize::new(0);

/// Where the stack of the caller ends, about.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0_u8;
    std::hint::black_box(&raw const here).addr()
}

/// bashkit asks before it enters a function, a subshell or a substitution.
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_stack_spent() -> bool {
    stack_pointer() < FLOOR.load(Ordering::Relaxed)
}

/// Nothing else holds the lock: there is one thread, and it aborts when it panics.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// bashkit's timers.
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_wake_at(micros: u64, waker: &Waker) {
    if micros.saturating_sub(host::now()) > FOREVER {
        return;
    }
    let session = POLLED.load(Ordering::Relaxed);
    let mut sleepers = lock(&SLEEPERS);
    // A future that is polled again asks again.
    if !sleepers.iter().any(|(_, at, other)| *at == micros && other.will_wake(waker)) {
        sleepers.push((session, micros, waker.clone()));
    }
}

struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Polls the future of one session.
pub(crate) struct Executor {
    session: u32,
    /// How much stack it may take. V8's own grows with it, so this bounds both.
    stack: usize,
    woken: Arc<Woken>,
    waker: Waker,
    /// Whether the future would go on at once, and only its time was over.
    pub(crate) is_preempted: bool,
}

impl Executor {
    pub(crate) fn new(session: u32, stack: usize) -> Self {
        let woken = Arc::new(Woken(AtomicBool::new(false)));
        Self { session, stack, waker: Waker::from(Arc::clone(&woken)), woken, is_preempted: false }
    }

    /// Polls until the future is ready, or until only time or the host can wake it, or its time is
    /// over.
    pub(crate) fn run<T>(
        &mut self,
        mut future: Pin<&mut (impl Future<Output = T> + ?Sized)>,
        cancelled: bool,
    ) -> Poll<T> {
        let floor = stack_pointer().saturating_sub(self.stack).max(STACK_RESERVE);
        FLOOR.store(floor, Ordering::Relaxed);
        POLLED.store(self.session, Ordering::Relaxed);
        CANCELLED.store(cancelled, Ordering::Relaxed);
        let begun = host::now();
        loop {
            let now = host::now();
            self.is_preempted = now.saturating_sub(begun) > SLICE;
            if self.is_preempted {
                return Poll::Pending;
            }
            self.wake_sleepers(if cancelled { u64::MAX } else { now });
            self.woken.0.store(false, Ordering::Relaxed);
            let polled = future.as_mut().poll(&mut Context::from_waker(&self.waker));
            if polled.is_ready() || !self.woken.0.load(Ordering::Relaxed) {
                return polled;
            }
        }
    }

    /// Wakes who sleeps no longer than until then.
    fn wake_sleepers(&self, until: u64) {
        let due =
            |&mut (session, at, _): &mut (u32, u64, Waker)| session == self.session && at <= until;
        let due: Vec<_> = lock(&SLEEPERS).extract_if(.., due).collect();
        for (_, _, waker) in due {
            waker.wake();
        }
    }

    /// When a future of the session wants to be polled again.
    pub(crate) fn next_wake(&self) -> Option<u64> {
        if self.is_preempted {
            return Some(0);
        }
        lock(&SLEEPERS).iter().filter(|(of, ..)| *of == self.session).map(|(_, at, _)| *at).min()
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        lock(&SLEEPERS).retain(|(session, ..)| *session != self.session);
    }
}
