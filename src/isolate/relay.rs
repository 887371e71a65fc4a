//! A waker that can be disconnected.
//!
//! If a promise is not settled when its isolate is dropped, `deno_core` leaks its callbacks, and
//! with them the waker that waited. Tokio's waker keeps the event loop and its descriptors alive.
//! So the promise gets a relay instead, of which only a few bytes leak.

use std::cell::Cell;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use deno_core::error::{CoreError, JsError};
use deno_core::{JsRuntime, PollEventLoopOptions, v8};
use futures_util::task::AtomicWaker;

use super::platform;

/// Forwards wake-ups to the waker that was registered last, until it is dropped.
pub(super) struct Relay {
    inner: Arc<Inner>,
    /// Set if the event loop had nothing to do when it was last served.
    is_idle: Cell<bool>,
}

#[derive(Default)]
struct Inner(AtomicWaker);

/// Why serving the event loop has ended.
pub(super) enum Settled {
    /// The call is settled.
    Done,
    /// The call waits, and nothing is pending that could settle it. Reported once, until something
    /// is pending again.
    Stalled,
}

impl Relay {
    pub(super) fn new() -> Self {
        Self { inner: Arc::default(), is_idle: Cell::new(false) }
    }

    /// Forwards wake-ups to `waker`. Returns the waker to wait with.
    fn waker(&self, waker: &Waker) -> Waker {
        self.inner.0.register(waker);
        Waker::from(Arc::clone(&self.inner))
    }

    /// Serves the event loop until `call` settles or nothing is left to serve. A guest that awaits
    /// a promise which nothing will resolve may wait until its deadline or an interrupt.
    pub(super) async fn settle<F>(
        &self,
        runtime: &mut JsRuntime,
        call: &mut Pin<Box<F>>,
    ) -> Result<Settled, CoreError>
    where
        F: Future<Output = Result<v8::Global<v8::Value>, Box<JsError>>>,
    {
        std::future::poll_fn(|context| {
            let waker = self.waker(context.waker());
            let mut relayed = Context::from_waker(&waker);
            if let Poll::Ready(result) = call.as_mut().poll(&mut relayed) {
                return Poll::Ready(result.map(|_| Settled::Done).map_err(CoreError::from));
            }
            platform::run_tasks(runtime.v8_isolate());
            let is_idle = match runtime.poll_event_loop(context, PollEventLoopOptions::default()) {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                served => served.is_ready(),
            };
            let was_idle = self.is_idle.replace(is_idle);
            match call.as_mut().poll(&mut relayed) {
                Poll::Pending if is_idle && !was_idle => Poll::Ready(Ok(Settled::Stalled)),
                settled => {
                    settled.map(|result| result.map(|_| Settled::Done).map_err(CoreError::from))
                }
            }
        })
        .await
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.inner.0.take();
    }
}

impl Wake for Inner {
    fn wake(self: Arc<Self>) {
        self.0.wake();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_relay_wakes_until_it_is_dropped_and_keeps_nothing_then() {
        let count = Arc::new(Count::default());
        let target = Waker::from(Arc::clone(&count));
        let relay = Relay::new();
        let left_behind = relay.waker(&target);
        left_behind.wake_by_ref();
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        let left_behind = relay.waker(&target);
        drop((relay, target));
        left_behind.wake_by_ref();
        assert_eq!((count.0.load(Ordering::Relaxed), Arc::strong_count(&count)), (1, 1));
    }
}
