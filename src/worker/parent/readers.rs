//! The threads that read what workers send. A worker that sends nothing for a while has none: an
//! event loop ([`super::event_loop`]) or one thread watches all of these workers, so that thousands
//! of idle sessions take no threads.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use tokio::runtime::Handle;

use super::event_loop;
use super::link::thread;
use super::reader::{Patience, Reader};
use super::reader_lease::ReaderLease;
use crate::support::lock::lock;

/// How long a thread without a worker waits for one before it ends.
const KEPT: Duration = Duration::from_secs(1);

/// How long a thread waits for a worker's next frame. Most sessions that are used at all are used
/// again before.
const PATIENCE: Patience =
    Patience { after_reply: Duration::from_millis(100), otherwise: Duration::from_millis(100) };

/// The same if an event loop can wait instead.
const SHORT: Patience =
    Patience { after_reply: Duration::ZERO, otherwise: Duration::from_millis(1) };

/// The maximum number of workers that are taken from the kernel's list at once.
const EVENTS: usize = 64;

/// The process's readers, once there are any.
static READERS: Mutex<Option<Arc<Readers>>> = Mutex::new(None);

/// Reads from a worker until it ends, on the event loop if there is one and as far as it can.
pub(super) fn read(
    reader: Reader,
    lease: Arc<ReaderLease>,
    event_loop: Option<&Handle>,
) -> io::Result<()> {
    let readers = {
        let mut readers = lock(&READERS);
        match &*readers {
            Some(readers) => Arc::clone(readers),
            None => Arc::clone(readers.insert(Readers::start()?)),
        }
    };
    readers.read(reader, lease, event_loop)
}

/// Has a thread read from a worker that is about to be sent something, if nobody does and there is
/// one. Otherwise a thread is found once the answer is there, which takes longer.
pub(super) fn expect_answer(lease: &ReaderLease) {
    if lease.is_watched() {
        let readers = lock(&READERS).clone();
        if let Some(readers) = readers {
            let _ = readers.resume(lease.number());
        }
    }
}

/// Threads that read, and one that watches the workers that nobody reads from.
pub(super) struct Readers {
    epoll: OwnedFd,
    state: Mutex<State>,
    /// Notified when there is a task.
    task: Condvar,
}

#[derive(Default)]
struct State {
    /// The workers that are watched, by the numbers of their leases.
    watched: HashMap<u64, Box<Task>>,
    /// The tasks that wait for a thread.
    waiting: VecDeque<Box<Task>>,
    /// The number of threads that wait for a task.
    idle: usize,
}

/// A worker to read from.
pub(super) struct Task {
    pub(super) reader: Reader,
    pub(super) lease: Arc<ReaderLease>,
    /// Reads what it can in the place of a thread.
    pub(super) event_loop: Option<Handle>,
}

impl Readers {
    /// Starts the thread that watches.
    pub(super) fn start() -> io::Result<Arc<Self>> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let readers = Arc::new(Self { epoll, state: Mutex::default(), task: Condvar::new() });
        let watching = Arc::clone(&readers);
        thread("isolet-idle-workers", move || watching.watch_all())?;
        Ok(readers)
    }

    /// Reads from a worker until it ends.
    pub(super) fn read(
        self: &Arc<Self>,
        reader: Reader,
        lease: Arc<ReaderLease>,
        event_loop: Option<&Handle>,
    ) -> io::Result<()> {
        let task = Task { reader, lease, event_loop: event_loop.cloned() };
        match event_loop {
            Some(event_loop) => event_loop::read(event_loop, Arc::clone(self), task),
            None => self.hand_over(Box::new(task)).map_err(|(_task, error)| error)?,
        }
        Ok(())
    }

    /// Has a thread read from a worker, sooner or later, that an event loop cannot read from.
    pub(super) fn read_on_thread(self: &Arc<Self>, task: Box<Task>) {
        if let Err((task, error)) = self.hand_over(task) {
            // The thread that watches tries it again, and otherwise reads itself.
            if let Err(task) = self.watch(task) {
                task.reader.give_up(error);
            }
        }
    }

    /// Gives the task to a thread that has none, or to a new one. Returns the task if there can be
    /// no further thread.
    fn hand_over(self: &Arc<Self>, task: Box<Task>) -> Result<(), (Box<Task>, io::Error)> {
        let number = task.lease.number();
        let mut state = lock(&self.state);
        state.waiting.push_back(task);
        if state.waiting.len() <= state.idle {
            drop(state);
            self.task.notify_one();
            return Ok(());
        }
        drop(state);
        let readers = Arc::clone(self);
        let Err(error) = thread("isolet-from-worker", move || readers.work()) else {
            return Ok(());
        };
        let waiting = &mut lock(&self.state).waiting;
        let found = waiting.iter().position(|task| task.lease.number() == number);
        // Otherwise another thread has taken it meanwhile.
        found.and_then(|at| waiting.remove(at)).map_or(Ok(()), |task| Err((task, error)))
    }

    /// Reads from one worker after another.
    fn work(self: &Arc<Self>) {
        let mut state = lock(&self.state);
        loop {
            if let Some(task) = state.waiting.pop_front() {
                drop(state);
                self.serve(*task);
                state = lock(&self.state);
                continue;
            }
            state.idle += 1;
            let none = |state: &mut State| state.waiting.is_empty();
            let waited = self.task.wait_timeout_while(state, KEPT, none);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
            if state.waiting.is_empty() {
                return;
            }
        }
    }

    /// Reads from a worker until it has ended or is watched.
    fn serve(self: &Arc<Self>, task: Task) {
        let Task { mut reader, lease, event_loop } = task;
        let patience = if event_loop.is_some() { SHORT } else { PATIENCE };
        while let Some(idle) = reader.serve(&lease, patience) {
            let (lease, event_loop) = (Arc::clone(&lease), event_loop.clone());
            let task = Task { reader: idle, lease, event_loop };
            if let Some(event_loop) = task.event_loop.clone() {
                return event_loop::read(&event_loop, Arc::clone(self), task);
            }
            match self.watch(Box::new(task)) {
                Ok(()) => return,
                Err(task) => reader = task.reader,
            }
        }
    }

    /// Leaves the worker to the thread that watches. Returns it if the kernel does not permit that.
    fn watch(&self, task: Box<Task>) -> Result<(), Box<Task>> {
        let number = task.lease.number();
        let mut state = lock(&self.state);
        let data = EventData::new_u64(number);
        if epoll::add(&self.epoll, task.reader.socket(), data, EventFlags::IN).is_err() {
            return Err(task);
        }
        task.lease.set_watched(true);
        state.watched.insert(number, task);
        Ok(())
    }

    /// Ends watching a worker, if it is watched.
    fn take(&self, state: &mut State, number: u64) -> Option<Box<Task>> {
        let task = state.watched.remove(&number)?;
        // Fails only for a socket that is not in the list.
        let _ = epoll::delete(&self.epoll, task.reader.socket());
        task.lease.set_watched(false);
        Some(task)
    }

    /// Has a thread that has no worker read from one that is watched. Returns `false` if there is
    /// no such thread or worker.
    fn resume(&self, number: u64) -> bool {
        let mut state = lock(&self.state);
        if state.idle <= state.waiting.len() {
            return false;
        }
        let Some(task) = self.take(&mut state, number) else { return false };
        state.waiting.push_back(task);
        drop(state);
        self.task.notify_one();
        true
    }

    /// Has threads read from the workers that were watched and have sent something.
    fn watch_all(self: &Arc<Self>) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            // An interrupted call has no events.
            let _ = epoll::wait(&self.epoll, spare_capacity(&mut events), None);
            for event in &events {
                let task = self.take(&mut lock(&self.state), event.data.u64());
                let Some(task) = task else { continue };
                if let Err((task, _)) = self.hand_over(task) {
                    // Late is better than never.
                    self.serve(*task);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::super::reader::tests::{HANG, Seen, Worker};
    use super::*;

    fn worker(readers: &Arc<Readers>) -> Worker {
        Worker::served(|reader, lease| {
            readers.read(reader, lease, None).unwrap();
            std::thread::current().id()
        })
    }

    /// Waits until nobody reads from the workers. Returns how many threads have none.
    fn wait_until_watched(readers: &Readers, workers: &[Worker]) -> usize {
        let started = Instant::now();
        while !workers.iter().all(|worker| worker.lease.is_watched()) {
            assert!(started.elapsed() < HANG);
            std::thread::yield_now();
        }
        lock(&readers.state).idle
    }

    #[test]
    fn idle_workers_have_no_thread_and_are_read_when_they_send() {
        let readers = Readers::start().unwrap();
        let mut workers: Vec<Worker> = (0..20).map(|_| worker(&readers)).collect();
        wait_until_watched(&readers, &workers);
        for (nth, worker) in workers.iter_mut().enumerate() {
            if nth % 2 == 0 {
                worker.print();
                assert_eq!(worker.next(), Seen::Output(vec![1]));
            } else {
                worker.write("line");
                assert!(worker.must_announce());
                worker.announce();
                assert_eq!(worker.next(), Seen::Output(b"line".to_vec()));
            }
        }
        assert!(wait_until_watched(&readers, &workers) <= 20);
    }

    #[test]
    fn the_end_of_an_idle_worker_is_seen() {
        let readers = Readers::start().unwrap();
        let workers = [worker(&readers), worker(&readers)];
        wait_until_watched(&readers, &workers);
        workers[0].socket.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(workers[0].next(), Seen::End(true));
        wait_until_watched(&readers, &workers[1..]);
        assert_eq!(lock(&readers.state).watched.len(), 1);
    }

    #[test]
    fn a_thread_that_has_no_worker_reads_from_one_before_it_answers() {
        let readers = Readers::start().unwrap();
        let mut workers = [worker(&readers)];
        let started = Instant::now();
        // The thread waits for a worker soon after it has left one, and not for ever.
        for count in 1.. {
            wait_until_watched(&readers, &workers);
            let resumed = readers.resume(workers[0].lease.number());
            workers[0].print();
            assert_eq!(workers[0].next(), Seen::Output(vec![count]));
            if resumed {
                break;
            }
            assert!(started.elapsed() < HANG);
        }
        wait_until_watched(&readers, &workers);
    }
}
