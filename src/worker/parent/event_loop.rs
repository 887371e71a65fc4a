//! Reads what workers send on an event loop of tokio's, on which the callers of their sessions
//! wait. What is answered at once then wakes no other thread. The rest is left to a thread
//! ([`super::readers`]).

use std::io;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::io::Interest;
use tokio::io::unix::{AsyncFd, AsyncFdReadyMutGuard};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::reader::{By, OUTPUT_PAUSE, Progress, Reader, Wait};
use super::reader_lease::ReaderLease;
use super::readers::{Readers, Task};
use crate::data::error::{Error, ErrorKind};

/// The maximum number of reads between two replies. A worker that sends more gets a thread, which
/// the kernel lets others take turns with.
const MOST_READS: usize = 32;

/// Fails if the runtime has no event loop, or no timers.
pub(crate) fn check_event_loop(runtime: &Handle) -> Result<(), Error> {
    let failed = |what: &str| {
        let message = format!("the runtime of the event loop cannot read from sockets: {what}");
        let hint = "build it with `tokio::runtime::Builder::enable_all`";
        Error::new(ErrorKind::Config, message).with_hint(hint)
    };
    let pair = UnixStream::pair().and_then(|(socket, _)| {
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    let socket = pair.map_err(|error| failed(&error.to_string()))?;
    let _entered = runtime.enter();
    // A runtime tells in no other way.
    let tried = catch_unwind(AssertUnwindSafe(|| {
        drop(timeout(OUTPUT_PAUSE, std::future::pending::<()>()));
        tokio::net::UnixStream::from_std(socket).map(drop)
    }));
    match tried {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(failed(&error.to_string())),
        Err(_) => Err(failed("it was built without I/O or time")),
    }
}

/// Reads on the event loop until the worker has ended, or something is for a thread.
pub(super) fn read(event_loop: &Handle, readers: Arc<Readers>, task: Task) {
    let Task { reader, lease, .. } = task;
    let mut turn = Turn { readers, lease, reader: Some(reader), source: None };
    event_loop.spawn(async move {
        let Some(reader) = turn.reader.take() else { return };
        match watched(reader) {
            Ok(source) => turn.source = Some((source, Handle::current())),
            Err(reader) => turn.reader = Some(*reader),
        }
        if let Some((source, _)) = &mut turn.source {
            // An error means that the runtime ends.
            let _ = serve(source).await;
        }
    });
}

/// Has the event loop watch the socket for data alone: a worker that reads makes it writable, which
/// is no reason to wake up.
#[expect(unsafe_code, reason = "the sockets that are safe are watched for both")]
fn watched(reader: Reader) -> Result<AsyncFd<Reader>, Box<Reader>> {
    // SAFETY: The descriptor is that of the socket, which the reader owns for as long as it exists:
    // no method of `Reader` replaces it.
    let source = unsafe { AsyncFd::register_with_interest(reader, Interest::READABLE) };
    source.map_err(|error| Box::new(error.into_parts().0))
}

/// Reads until something is for a thread.
async fn serve(source: &mut AsyncFd<Reader>) -> io::Result<()> {
    let mut reads = 0;
    while reads < MOST_READS {
        let progress = match source.get_mut().before_wait() {
            Wait::Not => source.get_mut().read(By::EventLoop),
            Wait::Briefly => {
                let next = async { source.readable_mut().await.map(read_ready) };
                match timeout(OUTPUT_PAUSE, next).await {
                    Ok(progress) => progress?,
                    Err(_) => source.get_mut().read(By::EventLoop),
                }
            }
            Wait::UntilReadable => {
                source.get_mut().free();
                source.readable_mut().await.map(read_ready)?
            }
        };
        reads += 1;
        match progress {
            Progress::Thread => return Ok(()),
            Progress::Came if source.get_ref().has_replied() => reads = 0,
            Progress::Came | Progress::Nothing => {}
        }
    }
    Ok(())
}

fn read_ready(mut ready: AsyncFdReadyMutGuard<'_, Reader>) -> Progress {
    let reader = ready.get_inner_mut();
    let progress = reader.read(By::EventLoop);
    // Otherwise it would be looked at once more.
    if reader.has_emptied_socket() {
        ready.clear_ready();
    }
    progress
}

/// A worker that is read on an event loop. When this is dropped, also by a runtime that ends, a
/// thread takes the worker over.
struct Turn {
    readers: Arc<Readers>,
    lease: Arc<ReaderLease>,
    /// Set until the event loop has begun, and if it cannot read: it is not tried again then.
    reader: Option<Reader>,
    source: Option<(AsyncFd<Reader>, Handle)>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        let (reader, event_loop) = match (self.source.take(), self.reader.take()) {
            (Some((source, event_loop)), _) => (source.into_inner(), Some(event_loop)),
            (None, Some(reader)) => (reader, None),
            (None, None) => return,
        };
        let lease = Arc::clone(&self.lease);
        self.readers.read_on_thread(Box::new(Task { reader, lease, event_loop }));
    }
}

#[cfg(test)]
mod tests {
    use std::thread::{self, JoinHandle, ThreadId};
    use std::time::Instant;

    use tokio::runtime::Builder;
    use tokio::sync::oneshot;

    use super::super::reader::tests::{HANG, Seen, Worker};
    use super::*;
    use crate::data::error::Error;
    use crate::protocol::{HostRequest, Reply};
    use crate::worker::wire::FromWorker;

    /// An event loop on a thread of its own.
    struct EventLoop {
        handle: Handle,
        thread: JoinHandle<()>,
        end: oneshot::Sender<()>,
        readers: Arc<Readers>,
    }

    impl EventLoop {
        fn start() -> Self {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let handle = runtime.handle().clone();
            let (end, is_ended) = oneshot::channel();
            let thread = thread::spawn(move || runtime.block_on(is_ended).unwrap());
            Self { handle, thread, end, readers: Readers::start().unwrap() }
        }

        fn id(&self) -> ThreadId {
            self.thread.thread().id()
        }

        fn worker(&self) -> Worker {
            Worker::served(|reader, lease| {
                self.readers.read(reader, lease, Some(&self.handle)).unwrap();
                self.id()
            })
        }

        /// Has the worker print until the event loop reads. Returns how often.
        fn print_until_read(&self, worker: &mut Worker) -> usize {
            let started = Instant::now();
            for count in 1.. {
                worker.print();
                let (seen, thread) = worker.next_and_thread();
                assert!(matches!(seen, Seen::Output(_)));
                if thread == self.id() {
                    return count;
                }
                assert!(started.elapsed() < HANG);
                // The thread leaves a worker that sends nothing for a while.
                thread::yield_now();
            }
            unreachable!()
        }
    }

    const STDIN: FromWorker<'_> = FromWorker::Request(HostRequest::ReadStdin(1));
    const REPLY: FromWorker<'_> = FromWorker::Reply(Reply::Terminated);

    #[test]
    fn replies_and_output_are_read_on_the_event_loop() {
        let on = EventLoop::start();
        let mut worker = on.worker();
        for _ in 0..1000 {
            worker.send(&REPLY);
            assert_eq!(worker.next_and_thread(), (Seen::Reply, on.id()));
            worker.write("line");
            worker.announce();
            worker.send(&REPLY);
            assert_eq!(worker.next_and_thread(), (Seen::Output(b"line".to_vec()), on.id()));
            assert_eq!(worker.next_and_thread(), (Seen::Reply, on.id()));
        }
    }

    #[test]
    fn output_that_is_not_announced_is_read_on_the_event_loop() {
        let on = EventLoop::start();
        let mut worker = on.worker();
        for _ in 0..20 {
            worker.write("first");
            worker.announce();
            assert_eq!(worker.next(), Seen::Output(b"first".to_vec()));
            worker.write("second");
            let started = Instant::now();
            // It announces only what the event loop does not look for.
            let seen = loop {
                if worker.must_announce() {
                    worker.announce();
                }
                if let Some(seen) = worker.try_next() {
                    break seen;
                }
                assert!(started.elapsed() < HANG);
            };
            assert_eq!(seen, Seen::Output(b"second".to_vec()));
        }
    }

    #[test]
    fn a_thread_answers_what_takes_time_and_the_event_loop_goes_on_after_it() {
        let on = EventLoop::start();
        let mut worker = on.worker();
        for _ in 0..20 {
            worker.send(&STDIN);
            worker.send(&REPLY);
            let (seen, thread) = worker.next_and_thread();
            assert!(seen == Seen::Input && thread != on.id());
            assert_eq!(worker.next(), Seen::Reply);
            on.print_until_read(&mut worker);
        }
    }

    #[test]
    fn a_worker_that_sends_much_gets_a_thread() {
        let on = EventLoop::start();
        let mut worker = on.worker();
        let started = Instant::now();
        loop {
            worker.print();
            let (_, thread) = worker.next_and_thread();
            if thread != on.id() {
                break;
            }
            assert!(started.elapsed() < HANG);
        }
    }

    #[test]
    fn a_thread_sees_the_end_of_a_worker() {
        let on = EventLoop::start();
        let mut worker = on.worker();
        worker.write("last");
        worker.socket.shutdown(std::net::Shutdown::Both).unwrap();
        assert_eq!(worker.next(), Seen::Output(b"last".to_vec()));
        let (seen, thread) = worker.next_and_thread();
        assert!(seen == Seen::End(true) && thread != on.id());
    }

    #[test]
    fn threads_read_when_the_event_loop_has_ended() {
        let on = EventLoop::start();
        let mut workers = [on.worker(), on.worker()];
        on.print_until_read(&mut workers[0]);
        let id = on.id();
        let EventLoop { handle, thread, end, readers } = on;
        end.send(()).unwrap();
        thread.join().unwrap();
        // One that is made later finds no event loop.
        let late = Worker::served(|reader, lease| {
            readers.read(reader, lease, Some(&handle)).unwrap();
            id
        });
        for mut worker in workers.into_iter().chain([late]) {
            for _ in 0..3 {
                worker.send(&REPLY);
                let (seen, by) = worker.next_and_thread();
                assert!(seen == Seen::Reply && by != id);
            }
        }
    }

    #[test]
    fn a_runtime_that_cannot_read_is_refused() {
        let check = |builder: &mut Builder| -> Result<(), Error> {
            check_event_loop(builder.build().unwrap().handle())
        };
        check(Builder::new_current_thread().enable_all()).unwrap();
        let without: [fn(&mut Builder) -> &mut Builder; 3] =
            [|none| none, Builder::enable_io, Builder::enable_time];
        for enable in without {
            let error = check(enable(&mut Builder::new_current_thread())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
            assert!(error.to_string().contains("without I/O or time"), "{error}");
        }
    }
}
