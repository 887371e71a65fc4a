//! A gate at which threads wait for the client's next message; one thread passes for each.
//!
//! The kernel wakes only that thread. With a lock around reading, each message would wake two: one
//! to read it, and one to wait for the next.

use std::fs::File;
use std::io;

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::fd::OwnedFd;
use rustix::io::Errno;

pub(super) struct Gate {
    input: File,
    /// `None` for an input that is always readable, such as a file.
    epoll: Option<OwnedFd>,
}

/// The input is reported once, to one thread, until the gate is opened again.
const ONCE: EventFlags = EventFlags::IN.union(EventFlags::ONESHOT);

const ONLY: EventData = EventData::new_u64(0);

impl Gate {
    /// Creates an open gate.
    pub(super) fn new(input: File) -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let epoll = match epoll::add(&epoll, &input, ONLY, ONCE) {
            Ok(()) => Some(epoll),
            Err(Errno::PERM) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Self { input, epoll })
    }

    /// Waits until the input is readable, or ends.
    pub(super) fn pass(&self) -> io::Result<()> {
        let Some(epoll) = &self.epoll else { return Ok(()) };
        let mut events = Vec::with_capacity(1);
        loop {
            match epoll::wait(epoll, rustix::buffer::spare_capacity(&mut events), None) {
                Ok(0) | Err(Errno::INTR) => {}
                passed => return Ok(passed.map(drop)?),
            }
        }
    }

    /// Lets the next thread pass once the input is readable.
    pub(super) fn open(&self) -> io::Result<()> {
        let Some(epoll) = &self.epoll else { return Ok(()) };
        Ok(epoll::modify(epoll, &self.input, ONLY, ONCE)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::sync::{Arc, mpsc};
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Longer than any wait of a test that does not hang.
    const HANG: Duration = Duration::from_mins(1);

    #[test]
    fn one_thread_passes_for_what_there_is_until_the_gate_is_opened_again() {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut input = File::from(OwnedFd::from(reader));
        let gate = Arc::new(Gate::new(input.try_clone().unwrap()).unwrap());
        let (sender, passed) = mpsc::channel();
        for _ in 0..3 {
            let (gate, sender) = (Arc::clone(&gate), sender.clone());
            thread::spawn(move || sender.send(gate.pass()));
        }
        writer.write_all(b"ab").unwrap();
        passed.recv_timeout(HANG).unwrap().unwrap();
        input.read_exact(&mut [0]).unwrap();
        writer.write_all(b"c").unwrap();
        assert!(passed.try_recv().is_err());
        // For what was there before.
        gate.open().unwrap();
        passed.recv_timeout(HANG).unwrap().unwrap();
        input.read_exact(&mut [0; 2]).unwrap();
        // For the end.
        drop(writer);
        gate.open().unwrap();
        passed.recv_timeout(HANG).unwrap().unwrap();
    }

    #[test]
    fn a_file_is_always_ready() {
        let gate = Gate::new(tempfile::tempfile().unwrap()).unwrap();
        for _ in 0..2 {
            gate.pass().unwrap();
            gate.open().unwrap();
        }
    }
}
