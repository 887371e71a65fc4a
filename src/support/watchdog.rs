//! Calls actions at their deadlines, from one thread for the whole process.
//!
//! An action may ask to be called again, which is how a kill is repeated until the guest has
//! stopped.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Instant;

/// An action. Returns the time at which it wants to be called again, if it does.
pub(crate) type Action = Box<dyn FnMut() -> Option<Instant> + Send>;

type Key = (Instant, u64);

static QUEUE: OnceLock<Queue> = OnceLock::new();
static STARTED: Mutex<bool> = Mutex::new(false);

#[derive(Default)]
struct Queue {
    entries: Mutex<Entries>,
    changed: Condvar,
    /// Notified when the thread has begun, and when an action has returned.
    idle: Condvar,
}

#[derive(Default)]
struct Entries {
    last: u64,
    /// Set when the thread has begun to serve.
    has_begun: bool,
    /// Set while an action runs.
    is_calling: bool,
    /// When the thread wakes up by itself; `None` if it must be woken.
    wakes: Option<Instant>,
    /// Each action has its own cell, so that it runs without locking the queue.
    waiting: BTreeMap<Key, Arc<Mutex<Option<Action>>>>,
}

/// Disarms its action on drop. After that the action is not running and never will.
pub(crate) struct Armed {
    queue: &'static Queue,
    action: Arc<Mutex<Option<Action>>>,
    id: u64,
}

/// Starts the thread, which otherwise the first action would do.
pub(crate) fn prepare() -> Result<(), std::io::Error> {
    start().map(drop)
}

/// Calls `fork`, which copies the process, while the thread waits and holds no lock. The thread
/// must have been started: until it has begun, it may hold locks of the standard library.
#[cfg(all(feature = "engine", target_os = "linux"))]
pub(crate) fn while_it_waits<T>(fork: impl FnOnce() -> T) -> T {
    let queue = QUEUE.get_or_init(Queue::default);
    let is_busy = |entries: &mut Entries| !entries.has_begun || entries.is_calling;
    let _entries = queue.idle.wait_while(queue.lock(), is_busy);
    fork()
}

/// Starts the thread in a copy of a process that had it.
#[cfg(all(feature = "engine", target_os = "linux"))]
pub(crate) fn start_again() -> Result<(), std::io::Error> {
    *STARTED.lock().unwrap_or_else(PoisonError::into_inner) = false;
    QUEUE.get_or_init(Queue::default).lock().has_begun = false;
    prepare()
}

fn start() -> Result<&'static Queue, std::io::Error> {
    let queue = QUEUE.get_or_init(Queue::default);
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if !*started {
        let thread = std::thread::Builder::new().name("isolet-watchdog".to_owned());
        thread.spawn(move || queue.serve())?;
        *started = true;
    }
    Ok(queue)
}

/// Calls `action` at `deadline`, unless the returned guard is dropped before.
pub(crate) fn arm(deadline: Instant, action: Action) -> Result<Armed, std::io::Error> {
    let queue = start()?;
    let action = Arc::new(Mutex::new(Some(action)));
    let id = queue.number();
    queue.enter(deadline, id, Arc::clone(&action));
    Ok(Armed { queue, action, id })
}

/// Calls `action` at `deadline`, and then as often as it asks for. It cannot be disarmed.
pub(crate) fn repeat(deadline: Instant, action: Action) -> Result<(), std::io::Error> {
    let queue = start()?;
    queue.enter(deadline, queue.number(), Arc::new(Mutex::new(Some(action))));
    Ok(())
}

impl Armed {
    /// Calls the action at this time too, in addition to the time that it is waiting for.
    pub(crate) fn call_at(&self, deadline: Instant) {
        self.queue.enter(deadline, self.id, Arc::clone(&self.action));
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        // Waits for a call in progress.
        self.action.lock().unwrap_or_else(PoisonError::into_inner).take();
        let id = self.id;
        self.queue.lock().waiting.retain(|(_, waiting), _| *waiting != id);
    }
}

impl Queue {
    fn lock(&self) -> std::sync::MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number for an action.
    fn number(&self) -> u64 {
        let mut entries = self.lock();
        entries.last += 1;
        entries.last
    }

    /// Queues an action.
    fn enter(&self, deadline: Instant, id: u64, action: Arc<Mutex<Option<Action>>>) {
        let mut entries = self.lock();
        entries.waiting.insert((deadline, id), action);
        // When the thread wakes up, it finds deadlines later than the one it waited for. Waking it
        // for every run would cost more than many short runs take.
        let is_first = entries.wakes.is_none_or(|wakes| deadline < wakes);
        drop(entries);
        if is_first {
            self.changed.notify_one();
        }
    }

    fn serve(&self) {
        let mut entries = self.lock();
        entries.has_begun = true;
        self.idle.notify_all();
        loop {
            let now = Instant::now();
            let Some((&key, _)) = entries.waiting.first_key_value() else {
                entries.wakes = None;
                entries = self.changed.wait(entries).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            if key.0 > now {
                entries.wakes = Some(key.0);
                let (guard, _) = self
                    .changed
                    .wait_timeout(entries, key.0 - now)
                    .unwrap_or_else(PoisonError::into_inner);
                entries = guard;
                continue;
            }
            let Some(cell) = entries.waiting.remove(&key) else {
                continue;
            };
            entries.is_calling = true;
            drop(entries);
            let again = {
                let mut action = cell.lock().unwrap_or_else(PoisonError::into_inner);
                action.as_mut().and_then(|call| call())
            };
            entries = self.lock();
            entries.is_calling = false;
            self.idle.notify_all();
            if let Some(deadline) = again {
                // A concurrent drop of the guard takes the locks in the same order and empties this
                // cell.
                entries.waiting.insert((deadline, key.1), cell);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_action_is_called_again_until_it_has_enough() {
        let (sender, calls) = mpsc::channel();
        let mut left = 3;
        let armed = arm(
            Instant::now(),
            Box::new(move || {
                left -= 1;
                sender.send(left).unwrap();
                (left > 0).then(|| Instant::now() + Duration::from_millis(1))
            }),
        )
        .unwrap();
        assert_eq!(calls.recv(), Ok(2));
        assert_eq!(calls.recv(), Ok(1));
        assert_eq!(calls.recv(), Ok(0));
        drop(armed);
        assert!(calls.recv().is_err());
    }

    #[test]
    fn a_repeated_action_is_dropped_when_it_has_enough() {
        let (sender, calls) = mpsc::channel();
        let mut left = 2;
        let action = move || {
            left -= 1;
            sender.send(left).unwrap();
            (left > 0).then(Instant::now)
        };
        repeat(Instant::now(), Box::new(action)).unwrap();
        assert_eq!(calls.recv(), Ok(1));
        assert_eq!(calls.recv(), Ok(0));
        assert!(calls.recv().is_err());
    }

    #[test]
    fn an_action_is_called_at_further_times_and_at_none_of_them_once_it_is_disarmed() {
        let (sender, calls) = mpsc::channel();
        let far = Instant::now() + Duration::from_hours(1);
        let armed = arm(
            far,
            Box::new(move || {
                sender.send(()).unwrap();
                None
            }),
        )
        .unwrap();
        armed.call_at(Instant::now());
        assert_eq!(calls.recv(), Ok(()));
        armed.call_at(far);
        drop(armed);
        assert!(calls.recv().is_err());
    }

    #[test]
    fn a_disarmed_action_is_dropped_uncalled() {
        let (sender, calls) = mpsc::channel::<()>();
        let armed = arm(
            Instant::now() + Duration::from_hours(1),
            Box::new(move || {
                sender.send(()).unwrap();
                None
            }),
        )
        .unwrap();
        drop(armed);
        assert!(calls.recv().is_err());
    }
}
