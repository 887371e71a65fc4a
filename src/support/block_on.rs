//! Runs a future on the calling thread. It spins briefly before it sleeps, and meanwhile reads the
//! isolate's frames itself.

use std::cell::RefCell;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;

use crate::support::spin::{self, spin};

/// A source of an isolate's frames. A thread reads them, except while a caller that waits for one
/// does so itself.
pub(crate) trait PollSource: Send + Sync {
    /// Reads what has arrived, without waiting. Returns `true` if something has. From here on the
    /// caller is the only reader, as soon as the thread has stopped.
    fn poll_once(&self) -> bool;
    /// Hands reading back to the thread.
    fn release(&self);
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
}

impl Unpark {
    fn take(&self) -> bool {
        self.woken.swap(false, Ordering::Acquire)
    }
}

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// Runs a future of this library on the calling thread, as the calls of
/// [`blocking`](crate::blocking) do.
///
/// Any executor runs these futures. This one needs no other thread for what comes from a worker: it
/// looks for it itself for up to 100 µs, and sleeps after that.
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
    let unpark = Arc::new(Unpark { thread: std::thread::current(), woken: AtomicBool::new(false) });
    let waker = Waker::from(Arc::clone(&unpark));
    let mut future = pin!(future);
    loop {
        // Replaced and restored, because a polled future may call `block_on` itself.
        let polling = Polling { waker: waker.clone(), source: None };
        let outer = POLLING.replace(Some(polling));
        let polled = future.as_mut().poll(&mut Context::from_waker(&waker));
        let polling = POLLING.replace(outer);
        if let Poll::Ready(value) = polled {
            return value;
        }
        sleep(&unpark, polling.and_then(|polling| polling.source));
    }
}

/// Waits until the future is woken.
fn sleep(unpark: &Unpark, source: Option<Arc<dyn PollSource>>) {
    let (mut woken, mut came) = (false, true);
    while came {
        came = false;
        spin(spin::budget(), || {
            woken = unpark.take();
            came = !woken && source.as_ref().is_some_and(|source| source.poll_once());
            woken || came
        });
    }
    if woken {
        return;
    }
    if let Some(source) = source {
        source.release();
    }
    while !unpark.take() {
        std::thread::park();
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
    let taken = POLLING.with_borrow_mut(|polling| match polling {
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

        fn release(&self) {
            self.left.store(true, Ordering::Relaxed);
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
