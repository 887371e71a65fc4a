//! The queue of a session's unfinished tool calls. It limits how many calls wait and run, the
//! memory of their arguments, and the answers that the guest has not read. A call is in only one
//! place, so that nothing accumulates however the guest calls.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use bytes::Bytes;
use futures_util::future::AbortHandle;
use futures_util::task::AtomicWaker;
use tokio::sync::watch;

use super::Tool;
use crate::data::limits::Limits;
use crate::data::tool::ToolError;

/// The tool calls of one session.
pub(crate) struct CallQueue {
    max_running: usize,
    max_bytes: u64,
    state: Mutex<State>,
    /// The size of the answers that the guest has not read, in bytes.
    unread: AtomicU64,
    /// The task that starts calls; woken when one may be started.
    starter: AtomicWaker,
}

#[derive(Default)]
struct State {
    /// The number of the most recent call.
    last: u32,
    waiting: VecDeque<Call>,
    /// Calls that were started and have not ended.
    running: HashMap<u32, Running>,
    /// The number of functions that have not returned, including those of cancelled calls.
    running_functions: usize,
    /// The size of the arguments of all calls, in bytes.
    bytes: u64,
}

struct Running {
    abort: AbortHandle,
    /// Dropped to tell the function that its call is over.
    _alive: watch::Sender<()>,
}

/// A call that the host has accepted but not started.
pub(super) struct Call {
    pub(super) id: u32,
    pub(super) tool: Tool,
    /// The arguments, encoded by the guest.
    pub(super) arguments: Vec<u8>,
    pub(super) charge: Charge,
}

/// Memory charged for arguments, released on drop.
pub(super) struct Charge {
    queue: Arc<CallQueue>,
    bytes: u64,
}

/// An answer that the guest has not read yet.
struct Unread {
    queue: Arc<CallQueue>,
    answer: Vec<u8>,
}

/// Permission to run a function. Dropped when the function has returned.
pub(super) struct CallPermit {
    queue: Arc<CallQueue>,
    /// The charge for the decoded arguments.
    charge: Mutex<Option<Charge>>,
}

impl CallQueue {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            max_running: limits.concurrent_tools(),
            max_bytes: limits.call_bytes(),
            state: Mutex::default(),
            unread: AtomicU64::new(0),
            starter: AtomicWaker::new(),
        }
    }

    /// Accepts a call, unless its number was used before or a limit is reached.
    pub(super) fn admit(self: &Arc<Self>, id: u32, bytes: usize) -> Result<Charge, ToolError> {
        let refuse = |message| Err(ToolError::new("RuntimeError", message));
        let mut state = self.lock();
        if id <= state.last {
            return refuse(format!(
                "the call number {id} was used before, the last is {}",
                state.last
            ));
        }
        state.last = id;
        let waiting = state.waiting.len();
        if state.running_functions >= self.max_running && waiting >= Limits::WAITING_TOOL_CALLS {
            let (needed, limit) = (waiting + 1, Limits::WAITING_TOOL_CALLS);
            return refuse(format!("{needed} tool calls are waiting, the limit is {limit}"));
        }
        self.charge_in(&mut state, bytes as u64)
    }

    /// Takes note of a call that was answered before.
    pub(super) fn pass(&self, id: u32) {
        let mut state = self.lock();
        state.last = state.last.max(id);
    }

    /// Returns the number of the most recent call.
    pub(crate) fn last(&self) -> u32 {
        self.lock().last
    }

    /// Charges memory for arguments.
    pub(super) fn charge(self: &Arc<Self>, bytes: u64) -> Result<Charge, ToolError> {
        self.charge_in(&mut self.lock(), bytes)
    }

    fn charge_in(self: &Arc<Self>, state: &mut State, bytes: u64) -> Result<Charge, ToolError> {
        let needed = state.bytes.saturating_add(bytes);
        if needed > self.max_bytes {
            return Err(ToolError::new(
                "RuntimeError",
                format!(
                    "with this call the arguments of unfinished tool calls take {needed} bytes, \
                     the limit is {} bytes",
                    self.max_bytes
                ),
            ));
        }
        state.bytes = needed;
        Ok(Charge { queue: Arc::clone(self), bytes })
    }

    /// Queues a call until it is started.
    pub(super) fn push(&self, call: Call) {
        self.lock().waiting.push_back(call);
        self.starter.wake();
    }

    /// Ends a call that nobody waits for any more. If it was started, it keeps its permit until its
    /// function returns.
    pub(crate) fn cancel(&self, id: u32) {
        let mut state = self.lock();
        let running = state.running.remove(&id);
        let at = state.waiting.iter().position(|call| call.id == id);
        let waiting = at.and_then(|at| state.waiting.remove(at));
        drop(state);
        if let Some(running) = running {
            running.abort.abort();
        }
        // After unlocking, because the call's charge locks the state.
        drop(waiting);
    }

    /// Ends all calls and returns the numbers of those that were not answered.
    pub(crate) fn cancel_all(&self) -> Vec<u32> {
        let mut state = self.lock();
        let running = std::mem::take(&mut state.running);
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        let numbers = running.keys().copied().chain(waiting.iter().map(|call| call.id)).collect();
        for running in running.into_values() {
            running.abort.abort();
        }
        numbers
    }

    /// Registers the task that is woken when a call may be started.
    pub(super) fn wake(&self, waker: &Waker) {
        self.starter.register(waker);
    }

    /// Counts an answer as unread until it is dropped, which happens when the guest, or its worker,
    /// has read it.
    pub(super) fn unread(self: &Arc<Self>, answer: Vec<u8>) -> Bytes {
        self.unread.fetch_add(answer.len() as u64, Ordering::Relaxed);
        Bytes::from_owner(Unread { queue: Arc::clone(self), answer })
    }

    /// Takes the next call that may be started, and a permit for it. Returns `None` while too many
    /// answers are unread.
    pub(super) fn next(self: &Arc<Self>) -> Option<(Call, Arc<CallPermit>)> {
        let mut state = self.lock();
        if state.running_functions >= self.max_running
            || self.unread.load(Ordering::Relaxed) >= self.max_bytes
        {
            return None;
        }
        let call = state.waiting.pop_front()?;
        state.running_functions += 1;
        drop(state);
        Some((call, Arc::new(CallPermit { queue: Arc::clone(self), charge: Mutex::default() })))
    }

    /// Records a call that is about to start.
    pub(super) fn begin(&self, id: u32, abort: AbortHandle, alive: watch::Sender<()>) {
        self.lock().running.insert(id, Running { abort, _alive: alive });
    }

    /// Records the end of a call. Returns `true` if its answer is still wanted.
    pub(super) fn end(&self, id: u32) -> bool {
        self.lock().running.remove(&id).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CallPermit {
    /// Charges memory for the decoded arguments.
    pub(super) fn charge(&self, bytes: u64) -> Result<(), ToolError> {
        let charge = self.queue.charge(bytes)?;
        *self.charge.lock().unwrap_or_else(PoisonError::into_inner) = Some(charge);
        Ok(())
    }
}

impl Drop for CallPermit {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.running_functions -= 1;
        let is_awaited = !state.waiting.is_empty();
        drop(state);
        if is_awaited {
            self.queue.starter.wake();
        }
    }
}

impl AsRef<[u8]> for Unread {
    fn as_ref(&self) -> &[u8] {
        &self.answer
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let bytes = self.answer.len() as u64;
        let before = self.queue.unread.fetch_sub(bytes, Ordering::Relaxed);
        let limit = self.queue.max_bytes;
        if before >= limit && before - bytes < limit {
            self.queue.starter.wake();
        }
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        state.bytes = state.bytes.saturating_sub(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::*;
    use crate::data::tool::ToolSpec;
    use crate::data::value::Value;

    fn queue(running: usize, bytes: u64) -> Arc<CallQueue> {
        let limits = Limits::default().max_concurrent_tools(running).max_call_bytes(bytes);
        Arc::new(CallQueue::new(&limits))
    }

    fn call(queue: &Arc<CallQueue>, id: u32, bytes: usize) -> Result<(), String> {
        let charge = queue.admit(id, bytes).map_err(|error| error.message().to_owned())?;
        let tool = Tool::from_handler(ToolSpec::new("t"), |_, _| async { Ok(Value::None) });
        queue.push(Call { id, tool, arguments: vec![0; bytes], charge });
        Ok(())
    }

    #[test]
    fn a_number_is_used_once() {
        let queue = queue(1, 100);
        assert_eq!(call(&queue, 3, 1), Ok(()));
        for used in [3, 2, 0] {
            let message = format!("the call number {used} was used before, the last is 3");
            assert_eq!(call(&queue, used, 1), Err(message));
        }
        queue.cancel(3);
        assert!(call(&queue, 3, 1).is_err());
        assert_eq!(call(&queue, 4, 1), Ok(()));
    }

    #[test]
    fn floods_of_calls_and_cancellations_leave_nothing_behind() {
        let queue = queue(1, 1000);
        for id in 1..100_000 {
            call(&queue, id, 10).unwrap();
            queue.cancel(id);
            queue.cancel(id);
        }
        let state = queue.lock();
        assert_eq!(
            (state.waiting.capacity() < 100, state.running.len(), state.bytes),
            (true, 0, 0)
        );
    }

    #[test]
    fn arguments_are_charged_until_their_call_has_ended_and_both_numbers_are_named() {
        let queue = queue(1, 100);
        assert_eq!((call(&queue, 1, 60), call(&queue, 2, 40)), (Ok(()), Ok(())));
        let refused = |needed: u32| {
            Err(format!(
                "with this call the arguments of unfinished tool calls take {needed} \
                 bytes, the limit is 100 bytes"
            ))
        };
        assert_eq!(call(&queue, 3, 1), refused(101));
        let (first, permit) = queue.next().unwrap();
        assert_eq!(permit.charge(50).unwrap_err().message(), refused(150).unwrap_err());
        drop(first);
        permit.charge(50).unwrap();
        assert_eq!(call(&queue, 4, 11), refused(101));
        assert_eq!(queue.cancel_all(), [2]);
        assert_eq!(call(&queue, 5, 50), Ok(()));
        drop(permit);
        assert_eq!(call(&queue, 6, 50), Ok(()));
    }

    #[test]
    fn a_place_is_free_when_it_is_dropped_and_not_before() {
        let queue = queue(1, 100);
        call(&queue, 1, 1).unwrap();
        call(&queue, 2, 1).unwrap();
        let (call, permit) = queue.next().unwrap();
        queue.begin(call.id, AbortHandle::new_pair().0, watch::channel(()).0);
        queue.cancel(1);
        assert!(!queue.end(1) && queue.next().is_none());
        drop(permit);
        assert_eq!(queue.next().unwrap().0.id, 2);
    }

    #[test]
    fn no_call_is_started_while_the_guest_leaves_answers_unread() {
        #[derive(Default)]
        struct Woken(AtomicUsize);
        impl Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let queue = queue(4, 100);
        let woken = Arc::new(Woken::default());
        let short = queue.unread(vec![0; 99]);
        call(&queue, 1, 1).unwrap();
        assert!(queue.next().is_some());
        let long = queue.unread(vec![0; 1000]);
        call(&queue, 2, 1).unwrap();
        // The starter waits now; after each wake it must register again.
        queue.wake(&Waker::from(Arc::clone(&woken)));
        drop(short);
        assert!(queue.next().is_none());
        assert_eq!(woken.0.load(Ordering::Relaxed), 0);
        // A slice keeps the whole answer counted.
        let part = long.slice(1..2);
        drop(long);
        assert!(queue.next().is_none());
        drop(part);
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(queue.next().is_some());
    }
}
