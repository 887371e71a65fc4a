//! Starts a worker's process before it is known what it is for, so that the kernel loads and links
//! the program, and the worker enters its namespaces, while its parent reads the command line. The
//! worker waits for its first frame, and ends if none comes.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Child;
use std::sync::Mutex;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::find::ITSELF;
#[cfg(feature = "engine")]
use super::launch::command;
#[cfg(feature = "engine")]
use super::spawner;
use super::spawner::Spawning;
use crate::support::lock::lock;

/// The process that waits for its first frame, with the socket to it.
static AHEAD: Mutex<Option<(UnixStream, Spawning)>> = Mutex::new(None);

/// Starts a worker of this program for the first session that asks for one. What fails here fails
/// again for the session, which says so.
#[cfg(feature = "engine")]
pub(crate) fn start_ahead() {
    let started = command(Path::new(ITSELF), false)
        .and_then(|(socket, command)| Ok((socket, spawner::begin(command)?)));
    if let Ok(started) = started {
        *lock(&AHEAD) = Some(started);
    }
}

/// Returns the worker that was started ahead from this program, if there is one. If it cannot be a
/// worker, the next one says why.
pub(super) fn take(program: &Path) -> Option<(UnixStream, Child)> {
    if program != Path::new(ITSELF) {
        return None;
    }
    let (socket, child) = lock(&AHEAD).take()?;
    let mut child = child.wait().ok()?;
    if waits(&socket) {
        return Some((socket, child));
    }
    let _ = child.kill();
    let _ = child.wait();
    None
}

/// Returns `true` unless the worker has said something, or ended, before it was asked to.
fn waits(socket: &UnixStream) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_was_started_ahead_is_taken_while_it_waits() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        assert!(waits(&ours));
        drop(theirs);
        assert!(!waits(&ours));
    }
}
