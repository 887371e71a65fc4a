//! Does work of idle sessions in the background: one piece at a time, and with pauses, so that it
//! takes little of the machine.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::support::lock::lock;

/// How much longer than the work the pause after it is. So short work takes at most a fifth of one
/// processor.
const PAUSE: u32 = 4;

/// The longest pause, so that one session whose work takes long does not delay the others.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Something to do.
pub(crate) type Work = Box<dyn FnOnce() + Send>;

/// The work of all sessions of an engine.
#[derive(Default)]
pub(crate) struct Checkpointer(Arc<Inner>);

#[derive(Default)]
struct Inner {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// By the time when it is due, and a number. Each session has at most one piece.
    due: BTreeMap<(Instant, u64), Work>,
    last: u64,
    has_thread: bool,
    is_over: bool,
}

impl Checkpointer {
    /// Has work done after this time. Returns `false` if there is no thread for it.
    pub(crate) fn schedule(&self, after: Duration, work: Work) -> bool {
        let mut state = lock(&self.0.state);
        if !state.has_thread {
            let inner = Arc::clone(&self.0);
            let thread = std::thread::Builder::new().name("isolet-idle".to_owned());
            if thread.spawn(move || inner.serve()).is_err() {
                return false;
            }
            state.has_thread = true;
        }
        state.last += 1;
        let key = (Instant::now() + after, state.last);
        let is_first = state.due.first_key_value().is_none_or(|(first, _)| key < *first);
        state.due.insert(key, work);
        if is_first {
            self.0.changed.notify_one();
        }
        true
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        lock(&self.0.state).is_over = true;
        self.0.changed.notify_one();
    }
}

impl Inner {
    fn serve(&self) {
        while let Some(work) = self.next() {
            let start = Instant::now();
            work();
            self.pause((start.elapsed() * PAUSE).min(LONGEST_PAUSE));
        }
    }

    /// Waits until something is due; `None` if the engine is gone.
    fn next(&self) -> Option<Work> {
        let mut state = lock(&self.state);
        loop {
            if state.is_over {
                return None;
            }
            let now = Instant::now();
            let left = match state.due.first_key_value() {
                Some(((due, _), _)) if *due <= now => {
                    return state.due.pop_first().map(|(_, work)| work);
                }
                Some(((due, _), _)) => Some(*due - now),
                None => None,
            };
            state = match left {
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn pause(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = lock(&self.state);
        while !state.is_over
            && let Some(left) = end.checked_duration_since(Instant::now())
        {
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn work_is_done_in_the_order_of_its_times_and_none_after_the_engine() {
        let (sender, receiver) = channel();
        let checkpointer = Checkpointer::default();
        let work = |number: u32| {
            let sender = sender.clone();
            Box::new(move || sender.send(number).unwrap()) as Work
        };
        assert!(checkpointer.schedule(Duration::from_millis(50), work(2)));
        assert!(checkpointer.schedule(Duration::ZERO, work(1)));
        assert!(checkpointer.schedule(Duration::from_hours(1), work(3)));
        assert_eq!([receiver.recv().unwrap(), receiver.recv().unwrap()], [1, 2]);
        drop((checkpointer, sender));
        // The thread has ended and dropped what was not due.
        assert!(receiver.recv().is_err());
    }
}
