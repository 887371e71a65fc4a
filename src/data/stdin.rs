//! The guest's standard input: read on demand, by waits that can be interrupted.

use std::fmt;
use std::io::Read;
use std::sync::mpsc;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// The standard input of a run. Default: empty.
pub struct Stdin(Source);

enum Source {
    Bytes(Vec<u8>),
    Reader(Box<dyn Read + Send>),
}

impl Stdin {
    /// Makes an empty input: the guest reads end-of-file at once.
    #[must_use]
    pub fn empty() -> Self {
        Self::from_bytes(Vec::new())
    }

    /// Makes an input of these bytes.
    #[must_use]
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(Source::Bytes(bytes.into()))
    }

    /// Makes an input that a separate thread reads from `reader` as the guest asks for it.
    ///
    /// A blocking read does not delay a deadline. The thread ends with the run, or, if a read is
    /// under way then, when that read returns.
    #[must_use]
    pub fn from_reader(reader: impl Read + Send + 'static) -> Self {
        Self(Source::Reader(Box::new(reader)))
    }
}

impl Stdin {
    /// Returns the input, if it is known.
    pub(crate) fn known(&self) -> Option<&[u8]> {
        match &self.0 {
            Source::Bytes(bytes) => Some(bytes),
            Source::Reader(_) => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.0, Source::Bytes(bytes) if bytes.is_empty())
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Source::Bytes(_) => "Stdin(bytes)",
            Source::Reader(_) => "Stdin(reader)",
        })
    }
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// The bytes read. Empty at the end of the input.
    Bytes(Vec<u8>),
    /// The wait was interrupted, by the interrupt of this number in the run.
    Interrupted(u64),
}

/// The host's end of a run's standard input.
#[derive(Debug)]
pub(crate) struct InputPump {
    shared: Arc<Shared>,
    requests: Option<mpsc::Sender<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    ready: Vec<u8>,
    ended: bool,
    /// Set if an interrupt has arrived that has ended no wait yet.
    interrupted: bool,
    interrupts: u64,
}

const CHUNK: usize = 64 * 1024;

impl InputPump {
    pub(crate) fn new(stdin: Stdin) -> Self {
        let shared = Arc::new(Shared::default());
        let requests = match stdin.0 {
            Source::Bytes(bytes) => {
                let mut state = shared.lock();
                state.ready = bytes;
                state.ended = true;
                None
            }
            Source::Reader(reader) => pump(reader, Arc::clone(&shared)),
        };
        Self { shared, requests }
    }

    /// Waits for input and returns at most `max` bytes of it.
    pub(crate) fn read(&self, max: usize) -> Input {
        let mut state = self.shared.lock();
        if state.ready.is_empty() && !state.ended {
            match self.requests.as_ref().map(|requests| requests.send(())) {
                Some(Ok(())) => {}
                _ => state.ended = true,
            }
        }
        loop {
            if state.interrupted {
                state.interrupted = false;
                return Input::Interrupted(state.interrupts);
            }
            if !state.ready.is_empty() || state.ended {
                let count = max.min(state.ready.len());
                let rest = state.ready.split_off(count);
                return Input::Bytes(std::mem::replace(&mut state.ready, rest));
            }
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Skips what a session that is replayed has read before, if the input was known then.
    pub(crate) fn skip(&self, count: usize) {
        if self.requests.is_none() {
            let mut state = self.shared.lock();
            let count = count.min(state.ready.len());
            state.ready.drain(..count);
        }
    }

    /// Interrupts the current wait, or else the next one.
    pub(crate) fn interrupt(&self) {
        let mut state = self.shared.lock();
        state.interrupted = true;
        state.interrupts += 1;
        drop(state);
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads one chunk per request, so that nothing is taken from the reader before the guest asks for
/// it.
fn pump(mut reader: Box<dyn Read + Send>, shared: Arc<Shared>) -> Option<mpsc::Sender<()>> {
    let (requests, asked) = mpsc::channel();
    let run = move || {
        while asked.recv().is_ok() {
            let mut chunk = vec![0; CHUNK];
            let count = loop {
                match reader.read(&mut chunk) {
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    result => break result.unwrap_or(0),
                }
            };
            let mut state = shared.lock();
            state.ended = count == 0;
            state.ready.extend_from_slice(&chunk[..count]);
            drop(state);
            shared.changed.notify_all();
        }
    };
    std::thread::Builder::new().name("isolet-stdin".to_owned()).spawn(run).ok()?;
    Some(requests)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_in_pieces_and_then_end() {
        let input = InputPump::new(Stdin::from_bytes(*b"abc"));
        assert_eq!(input.read(2), Input::Bytes(b"ab".to_vec()));
        assert_eq!(input.read(2), Input::Bytes(b"c".to_vec()));
        assert_eq!(input.read(2), Input::Bytes(Vec::new()));
    }

    #[test]
    fn a_wait_for_a_silent_reader_can_be_ended_and_loses_nothing() {
        let (mut writer, reader) = {
            let (reader, writer) = std::io::pipe().unwrap();
            (writer, reader)
        };
        let input = Arc::new(InputPump::new(Stdin::from_reader(reader)));
        let waiting = {
            let input = Arc::clone(&input);
            std::thread::spawn(move || input.read(10))
        };
        input.interrupt();
        assert_eq!(waiting.join().unwrap(), Input::Interrupted(1));
        std::io::Write::write_all(&mut writer, b"late").unwrap();
        assert_eq!(input.read(10), Input::Bytes(b"late".to_vec()));
    }
}
