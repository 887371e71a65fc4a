//! Runs a future on the calling thread, which reads the isolate's frames itself while it waits.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};

use crate::support::alarm::Alarm;
use crate::support::spin::{self, spin};
use crate::support::sync::{AtomicBool, Thread, thread, thread_local};

/// A source of an isolate's frames. A thread reads them, except while a caller that waits for one
/// does so itself.
pub(crate) trait PollSource: Send + Sync {
    /// Reads what has arrived, without waiting. Returns `true` if something has. From here on the
    /// caller is the only reader, as soon as the thread has stopped.
    fn poll_once(&self) -> bool;
    /// Returns `true` if the isolate runs on this thread's processor, so that the caller has to
    /// leave it to get anything.
    fn is_made_here(&self) -> bool;
    /// Waits until something may have arrived, or the alarm rings. Returns `false` at once if the
    /// caller is not the reader, or waiting is for the thread.
    fn wait(&self, alarm: &Alarm) -> bool;
    /// Hands reading back to the thread.
    fn release(&self);
    /// The same, until the isolate has replied: then the caller is woken and may read again.
    fn release_until_reply(&self, caller: &Waker);
}

thread_local! {
    /// The `block_on` that is polling its future on this thread at the moment.
    static POLLING: RefCell<Option<Polling>> = const { RefCell::new(None) };
}

struct Polling {
    waker: Waker,
    /// The source that the future waits for.
    source: Option<Arc<dyn PollSource>>,
}

/// A wake-up flag. The token of `park` alone is not enough, because the polled future may consume
/// it.
struct Unpark {
    thread: Thread,
    woken: AtomicBool,
    /// Wakes the thread while it waits for a source.
    alarm: Option<Arc<Alarm>>,
    /// Set while it does.
    is_waiting: AtomicBool,
}

impl Unpark {
    fn new() -> Self {
        Self {
            thread: thread::current(),
            woken: AtomicBool::new(false),
            alarm: Alarm::of_this_thread(),
            is_waiting: AtomicBool::new(false),
        }
    }

    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::SeqCst)
    }

    /// Waits for the source until the future is woken. Returns `false` if that is for a thread.
    fn wait(&self, source: &dyn PollSource) -> bool {
        let Some(alarm) = &self.alarm else { return false };
        // Who wakes sees this, or is seen below.
        self.is_waiting.store(true, Ordering::SeqCst);
        let waited = self.woken.load(Ordering::SeqCst) || source.wait(alarm);
        self.is_waiting.store(false, Ordering::SeqCst);
        waited
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::SeqCst);
        if let (true, Some(alarm)) = (self.is_waiting.load(Ordering::SeqCst), &self.alarm) {
            alarm.ring();
        }
        self.thread.unpark();
    }
}

/// Runs a future of this library on the calling thread, as the calls of
/// [`blocking`](crate::blocking) do.
///
/// Any executor runs these futures. This one needs no other thread for what comes from a worker: it
/// reads it itself.
///
/// ```no_run
/// # fn example(sandbox: &isolet::Sandbox) -> Result<(), isolet::Error> {
/// let lengths = isolet::blocking::block_on(async {
///     let mut session = sandbox.session().await?;
///     session.set("text", "abc").await?;
///     session.run("len(text)").await
/// })?;
/// # Ok(()) }
/// ```
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let unpark = Arc::new(Unpark::new());
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        // Replaced and restored, because a polled future may call `block_on` itself.
        let polling = Polling { waker: waker.clone(), source: None };
        let outer = POLLING.with(|at| at.replace(Some(polling)));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let polling = POLLING.with(|at| at.replace(outer));
        if let Poll::Ready(value) = polled {
            return value;
        }
        let source = polling.and_then(|polling| polling.source);
        sleep(&unpark, &waker, source.as_deref());
    }
}

/// Waits until the future is woken.
fn sleep(unpark: &Unpark, waker: &Waker, source: Option<&dyn PollSource>) {
    loop {
        let (mut woken, mut came) = (false, true);
        while came {
            came = false;
            spin(spin::budget(), || {
                woken = unpark.take();
                let Some(source) = source.filter(|_| !woken) else { return woken };
                came = source.poll_once();
                came || source.is_made_here()
            });
        }
        if woken {
            return;
        }
        let Some(source) = source else { break };
        if !unpark.wait(source) {
            source.release_until_reply(waker);
            break;
        }
    }
    while !unpark.take() {
        thread::park();
    }
}

/// Waits for something from an isolate. If [`block_on`] polls this future, it may read the
/// isolate's frames.
pub(crate) async fn with_source<T>(
    source: Option<&Arc<dyn PollSource>>,
    future: impl Future<Output = T>,
) -> T {
    let mut future = pin!(future);
    poll_fn(|context| {
        let polled = future.as_mut().poll(context);
        if let (true, Some(source)) = (polled.is_pending(), source) {
            offer(context, source);
        }
        polled
    })
    .await
}

fn offer(context: &Context<'_>, source: &Arc<dyn PollSource>) {
    let taken = POLLING.with(|at| match &mut *at.borrow_mut() {
        // Not if another executor is in between: it may wait in a different way.
        Some(polling) if polling.waker.will_wake(context.waker()) => {
            polling.source = Some(Arc::clone(source));
            true
        }
        _ => false,
    });
    if !taken {
        source.release();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// A source whose result arrives after this many polls.
    #[derive(Default)]
    struct Source {
        coming: Mutex<u32>,
        waker: Mutex<Option<Waker>>,
        left: AtomicBool,
    }

    impl Source {
        fn after(looks: u32) -> Arc<Self> {
            Arc::new(Self { coming: Mutex::new(looks), ..Self::default() })
        }

        fn come(&self) -> bool {
            let mut coming = self.coming.lock().unwrap();
            *coming = coming.saturating_sub(1);
            if *coming == 0
                && let Some(waker) = self.waker.lock().unwrap().take()
            {
                waker.wake();
            }
            *coming == 0
        }

        async fn wait(self: &Arc<Self>) {
            let source = Arc::clone(self) as Arc<dyn PollSource>;
            let come = poll_fn(|context| {
                *self.waker.lock().unwrap() = Some(context.waker().clone());
                if *self.coming.lock().unwrap() == 0 { Poll::Ready(()) } else { Poll::Pending }
            });
            with_source(Some(&source), come).await;
        }
    }

    impl PollSource for Source {
        fn poll_once(&self) -> bool {
            self.come()
        }

        fn is_made_here(&self) -> bool {
            false
        }

        fn wait(&self, _alarm: &Alarm) -> bool {
            false
        }

        fn release(&self) {
            self.left.store(true, Ordering::Relaxed);
        }

        fn release_until_reply(&self, _caller: &Waker) {
            self.release();
        }
    }

    #[test]
    fn who_waits_here_reads_and_does_not_leave_while_it_looks() {
        let source = Source::after(1);
        block_on(source.wait());
        assert!(!source.left.load(Ordering::Relaxed));
    }

    #[test]
    fn who_sleeps_leaves_first() {
        let source = Source::after(u32::MAX);
        let other = Arc::clone(&source);
        let waker = std::thread::spawn(move || {
            while !other.left.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
            *other.coming.lock().unwrap() = 1;
            other.come();
        });
        block_on(source.wait());
        waker.join().unwrap();
    }

    #[test]
    fn another_executor_leaves_at_once_even_within_a_wait() {
        let polled = |source: &Arc<Source>| {
            let polled = pin!(source.wait()).poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending() && source.left.load(Ordering::Relaxed));
            assert_eq!(*source.coming.lock().unwrap(), 5);
        };
        polled(&Source::after(5));
        block_on(async { polled(&Source::after(5)) });
    }

    #[test]
    fn a_wait_within_another_one_reads_what_is_its_own() {
        let (outer, inner) = (Source::after(1), Source::after(1));
        block_on(async {
            block_on(inner.wait());
            outer.wait().await;
        });
        assert!(!outer.left.load(Ordering::Relaxed) && !inner.left.load(Ordering::Relaxed));
    }
}
