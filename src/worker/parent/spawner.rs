//! Starts processes from a thread that lives as long as this process. The kernel ends a worker when
//! the *thread* that started it ends, and a caller's thread may end at any time.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError, mpsc};

/// A process to start, and the channel for the result.
type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// A process that is being started.
pub(super) struct Spawning(mpsc::Receiver<io::Result<Child>>);

impl Spawning {
    /// Waits until it has started.
    pub(super) fn wait(self) -> io::Result<Child> {
        self.0.recv().map_err(|_| lost())?
    }
}

/// Starts a process.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    begin(command)?.wait()
}

/// Has a process started, without waiting for it.
pub(super) fn begin(command: Command) -> io::Result<Spawning> {
    static SPAWNER: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let requests = match &*spawner {
        Some(requests) => requests.clone(),
        None => spawner.insert(start()?).clone(),
    };
    drop(spawner);
    let (answer, started) = mpsc::channel();
    requests.send((command, answer)).map_err(|_| lost())?;
    Ok(Spawning(started))
}

fn lost() -> io::Error {
    io::Error::other("the thread that starts workers has ended")
}

fn start() -> io::Result<mpsc::Sender<Request>> {
    let (requests, commands) = mpsc::channel::<Request>();
    let serve = move || {
        for (mut command, answer) in commands {
            // If nobody waits any more, the process sees the end of its socket.
            let _ = answer.send(command.spawn());
        }
    };
    std::thread::Builder::new().name("isolet-spawner".to_owned()).spawn(serve)?;
    Ok(requests)
}
