//! Starts processes from a thread that lives as long as this process. The kernel ends a worker when
//! the *thread* that started it ends, and a caller's thread may end at any time.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError, mpsc};

/// A process to start, and the channel for the result.
type Request = (Command, mpsc::Sender<io::Result<Child>>);

/// Starts a process.
pub(super) fn spawn(command: Command) -> io::Result<Child> {
    static SPAWNER: Mutex<Option<mpsc::Sender<Request>>> = Mutex::new(None);
    let mut spawner = SPAWNER.lock().unwrap_or_else(PoisonError::into_inner);
    let requests = match &*spawner {
        Some(requests) => requests.clone(),
        None => spawner.insert(start()?).clone(),
    };
    drop(spawner);
    let (answer, started) = mpsc::channel();
    let lost = || io::Error::other("the thread that starts workers has ended");
    requests.send((command, answer)).map_err(|_| lost())?;
    started.recv().map_err(|_| lost())?
}

fn start() -> io::Result<mpsc::Sender<Request>> {
    let (requests, commands) = mpsc::channel::<Request>();
    let serve = move || {
        for (mut command, answer) in commands {
            // The caller waits for the answer, so sending cannot fail.
            let _ = answer.send(command.spawn());
        }
    };
    std::thread::Builder::new().name("isolet-spawner".to_owned()).spawn(serve)?;
    Ok(requests)
}
