//! The queue of messages from a session to its isolate on another thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;

use crate::protocol::{Inbox, Message};
use crate::support::spin::spin;
use crate::support::sync::{AtomicUsize, Condvar, Mutex, MutexGuard, PoisonError};

/// A queue between two threads.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// The number of messages, readable without the lock.
    length: AtomicUsize,
    arrived: Condvar,
    waker: AtomicWaker,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    /// Set while the isolate's thread sleeps in `wait`.
    asleep: bool,
    closed: bool,
}

/// The sending end. After it is dropped, no more messages come.
pub(crate) struct Sender(Arc<Queue>);

struct Receiver(Arc<Queue>);

/// Makes a queue between two threads.
pub(crate) fn queue() -> (Sender, Box<dyn Inbox>) {
    let queue = Arc::new(Queue::default());
    (Sender(Arc::clone(&queue)), Box::new(Receiver(queue)))
}

impl Sender {
    pub(crate) fn send(&self, message: Message) {
        let asleep = {
            let mut state = self.0.lock();
            state.messages.push_back(message);
            self.0.length.store(state.messages.len(), Ordering::Release);
            state.asleep
        };
        if asleep {
            self.0.arrived.notify_one();
        }
        self.0.waker.wake();
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.waker.wake();
    }
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> bool {
        self.length.load(Ordering::Acquire) == 0
    }

    fn take(&self, state: &mut State) -> Option<Message> {
        let message = state.messages.pop_front();
        self.length.store(state.messages.len(), Ordering::Release);
        message
    }
}

impl Inbox for Receiver {
    fn try_take(&self) -> Option<Message> {
        if self.0.is_empty() {
            return None;
        }
        self.0.take(&mut self.0.lock())
    }

    fn poll_take(&self, context: &mut Context<'_>) -> Poll<Option<Message>> {
        if let Some(message) = self.try_take() {
            return Poll::Ready(Some(message));
        }
        self.0.waker.register(context.waker());
        // The end is seen together with the queue: a message may come right before it.
        let mut state = self.0.lock();
        match self.0.take(&mut state) {
            None if !state.closed => Poll::Pending,
            taken => Poll::Ready(taken),
        }
    }

    fn wait(&self, spinning: Duration, limit: Duration) {
        let start = Instant::now();
        if spin(spinning.min(limit), || !self.0.is_empty()) || start.elapsed() >= limit {
            return;
        }
        let mut state = self.0.lock();
        if state.messages.is_empty() {
            state.asleep = true;
            let left = limit.saturating_sub(start.elapsed());
            let woken = self.0.arrived.wait_timeout(state, left);
            woken.unwrap_or_else(PoisonError::into_inner).0.asleep = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    fn number(message: Option<&Message>) -> Option<u64> {
        match message {
            Some(Message::Peek(number, _)) => Some(*number),
            _ => None,
        }
    }

    #[test]
    fn messages_come_in_order_and_the_end_after_them() {
        let (sender, inbox) = queue();
        let mut context = Context::from_waker(Waker::noop());
        assert!(inbox.poll_take(&mut context).is_pending());
        for i in 0..3 {
            sender.send(Message::Peek(i, Vec::new()));
        }
        drop(sender);
        assert_eq!(number(inbox.try_take().as_ref()), Some(0));
        assert_eq!(number(inbox.try_take().as_ref()), Some(1));
        let Poll::Ready(last) = inbox.poll_take(&mut context) else { panic!("it is there") };
        assert_eq!(number(last.as_ref()), Some(2));
        assert!(matches!(inbox.poll_take(&mut context), Poll::Ready(None)));
    }

    #[test]
    fn a_wait_ends_with_a_message() {
        let (sender, inbox) = queue();
        let thread = std::thread::spawn(move || {
            while inbox.try_take().is_none() {
                inbox.wait(Duration::ZERO, Duration::from_hours(1));
            }
        });
        sender.send(Message::Peek(1, Vec::new()));
        thread.join().unwrap();
    }
}
