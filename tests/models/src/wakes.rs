//! The model of a wake-up: a caller waits within the poll of another wait, which somebody wakes
//! meanwhile.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};

use shuttle::sync::Mutex;
use shuttle::thread;

use crate::support::block_on::block_on;
use crate::support::lock::lock;

/// Something that happens once.
#[derive(Default)]
struct Event {
    has_happened: bool,
    waker: Option<Waker>,
}

/// A wait returns, though the one within it has taken the token by which threads are woken.
///
/// # Panics
///
/// Panics in an order in which it does not.
pub fn wakes_are_kept() {
    let events = [(); 2].map(|()| Arc::<Mutex<Event>>::default());
    let threads = events.each_ref().map(|event| {
        let event = Arc::clone(event);
        thread::spawn(move || {
            let waker = {
                let mut event = lock(&event);
                event.has_happened = true;
                event.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        })
    });
    let happened = |event: &Mutex<Event>, waker: &Waker| {
        let mut event = lock(event);
        event.waker = Some(waker.clone());
        event.has_happened
    };
    let mut has_waited = false;
    block_on(poll_fn(|context| {
        let outer = happened(&events[0], context.waker());
        if !std::mem::replace(&mut has_waited, true) {
            block_on(poll_fn(|context| {
                let inner = happened(&events[1], context.waker());
                if inner { Poll::Ready(()) } else { Poll::Pending }
            }));
        }
        if outer { Poll::Ready(()) } else { Poll::Pending }
    }));
    for thread in threads {
        thread.join().expect("it ends");
    }
}
