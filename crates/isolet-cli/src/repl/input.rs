//! Standard input at the prompt, line by line: for the prompt if there is no terminal, and for the
//! running guest. Both take only the lines they ask for, so that none is lost.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, read};

/// Reads standard input.
#[derive(Clone, Default)]
pub(super) struct Lines(Arc<Mutex<Vec<u8>>>);

/// The standard input of a run. Each read by the run returns one line.
pub(super) struct RunInput {
    lines: Lines,
    stop: PipeReader,
}

/// Ends a wait for input on drop: the run is over, and the next line is not for it.
pub(super) struct Stop(#[expect(dead_code, reason = "it is closed by being dropped")] PipeWriter);

impl Lines {
    /// Takes the next line, without its line end. `None` at the end of the input.
    pub(super) fn next(&self) -> io::Result<Option<String>> {
        let line = self.wait(None)?;
        if line.is_empty() {
            return Ok(None);
        }
        let text = String::from_utf8(line).map_err(|error| {
            let reason = format!("standard input is not UTF-8: {error}");
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        Ok(Some(text.trim_end_matches('\n').trim_end_matches('\r').to_owned()))
    }

    /// Takes the next line, if it was already read.
    pub(super) fn next_read(&self) -> io::Result<Option<String>> {
        if self.lock().contains(&b'\n') { self.next() } else { Ok(None) }
    }

    /// Makes the standard input of a run.
    pub(super) fn for_run(&self) -> io::Result<(RunInput, Stop)> {
        let (stop, stopper) = io::pipe()?;
        Ok((RunInput { lines: self.clone(), stop }, Stop(stopper)))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a line, with its line end. Returns an empty one at the end of the input, or when
    /// the wait is stopped.
    fn wait(&self, stop: Option<&PipeReader>) -> io::Result<Vec<u8>> {
        let stdin = io::stdin();
        loop {
            // Locked only for this check, so that another caller's wait for a line does not block
            // this one.
            if let Some(line) = take_line(&mut self.lock()) {
                return Ok(line);
            }
            let mut sources = vec![PollFd::new(&stdin, PollFlags::IN)];
            sources.extend(stop.map(|stop| PollFd::new(stop, PollFlags::IN)));
            match poll(&mut sources, None) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if sources.get(1).is_some_and(|stop| !stop.revents().is_empty()) {
                return Ok(Vec::new());
            }
            let mut buffer = self.lock();
            let mut chunk = [0; 4096];
            match read(&stdin, &mut chunk) {
                Ok(0) => return Ok(std::mem::take(&mut *buffer)),
                Ok(count) => buffer.extend_from_slice(&chunk[..count]),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn take_line(buffer: &mut Vec<u8>) -> Option<Vec<u8>> {
    let end = buffer.iter().position(|byte| *byte == b'\n')? + 1;
    let rest = buffer.split_off(end);
    Some(std::mem::replace(buffer, rest))
}

impl Read for RunInput {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let line = self.lines.wait(Some(&self.stop))?;
        let (taken, rest) = line.split_at(into.len().min(line.len()));
        into[..taken.len()].copy_from_slice(taken);
        if !rest.is_empty() {
            self.lines.lock().splice(..0, rest.iter().copied());
        }
        Ok(taken.len())
    }
}
