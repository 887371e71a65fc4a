//! The audit log of a server: lines of JSON.
//!
//! A disk may be full, and have room again later. The log keeps the events in between in memory, up
//! to a bound, and records how many are lost.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use serde_json::{Value, json};

use crate::audit_line::{open, seconds};
use crate::json;

/// The most bytes of entries that are kept while the log cannot be written.
const KEPT_BYTES: usize = 1 << 20;

/// The time between two tries to write.
const AGAIN: Duration = Duration::from_millis(500);

/// The log of a server.
pub struct Journal {
    file: File,
    path: String,
    /// Describes, for messages, the server's behaviour while the log cannot be written.
    meanwhile: &'static str,
    broken: Mutex<Option<Broken>>,
}

/// A log that cannot be written.
struct Broken {
    reason: String,
    since: SystemTime,
    tried: Instant,
    /// The entries to write once the log can be written.
    kept: Vec<u8>,
    /// The number of entries that did not fit.
    lost: u64,
    /// `true` if the log ends within a line.
    is_torn: bool,
}

impl Journal {
    /// Opens the log. `meanwhile` describes the server's behaviour while the log cannot be written.
    pub fn open(path: &Path, meanwhile: &'static str) -> Result<Self> {
        let (file, path) = (open(path)?, path.display().to_string());
        Ok(Self { file, path, meanwhile, broken: Mutex::new(None) })
    }

    /// Tries to write the kept entries, with a line that says since when nothing was written.
    fn repair(&self, slot: &mut Option<Broken>) {
        let Some(broken) = slot else { return };
        let mut bytes = Vec::new();
        if broken.is_torn {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(&broken.kept);
        let resumed = json!({
            "time": seconds(SystemTime::now()),
            "event": "resumed",
            "since": seconds(broken.since),
            "lost": broken.lost,
        });
        bytes.extend(encoded(&resumed));
        match append(&self.file, &bytes) {
            Ok(()) => {
                let lost = broken.lost;
                say(&format!(
                    "the audit log `{}` is written again; {lost} entries are lost",
                    self.path
                ));
                *slot = None;
            }
            Err(Failed { error, is_torn }) => {
                broken.reason = error.to_string();
                broken.tried = Instant::now();
                broken.is_torn |= is_torn;
            }
        }
    }

    /// Writes an entry. An entry that cannot be written now is kept, as far as there is room, and
    /// written later. Returns how many bytes the entry has.
    pub fn append(&self, entry: &Value) -> u64 {
        let entry = encoded(entry);
        let bytes = u64::try_from(entry.len()).unwrap_or(u64::MAX);
        let mut slot = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(broken) = &mut *slot {
            broken.keep(&entry);
        } else if let Err(Failed { error, is_torn }) = append(&self.file, &entry) {
            let (path, meanwhile) = (&self.path, self.meanwhile);
            say(&format!("the audit log `{path}` cannot be written: {error}; {meanwhile}"));
            let (since, tried) = (SystemTime::now(), Instant::now());
            let (kept, reason) = (entry, error.to_string());
            *slot = Some(Broken { reason, since, tried, kept, lost: 0, is_torn });
        }
        bytes
    }

    /// Writes the kept entries, if it is time to try again. Returns why they cannot be written.
    pub fn check(&self) -> Result<(), String> {
        let mut slot = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.as_ref().is_some_and(|broken| broken.tried.elapsed() >= AGAIN) {
            self.repair(&mut slot);
        }
        slot.as_ref().map_or(Ok(()), |broken| Err(broken.reason.clone()))
    }

    /// Writes the kept entries, or reports how many are lost.
    pub fn end(&self) {
        let mut slot = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        self.repair(&mut slot);
        if let Some(Broken { reason, kept, lost, .. }) = &*slot {
            let kept = kept.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
            let lost = lost.saturating_add(kept.try_into().unwrap_or(u64::MAX));
            let path = &self.path;
            say(&format!(
                "the audit log `{path}` cannot be written: {reason}; {lost} entries are lost"
            ));
        }
    }
}

impl Broken {
    fn keep(&mut self, entry: &[u8]) {
        if self.kept.len() + entry.len() <= KEPT_BYTES {
            self.kept.extend_from_slice(entry);
        } else {
            self.lost += 1;
        }
    }
}

/// Why entries could not be written, and whether the log now ends within a line.
struct Failed {
    error: io::Error,
    is_torn: bool,
}

/// Appends entries: all or nothing, if that is possible.
fn append(mut file: &File, bytes: &[u8]) -> Result<(), Failed> {
    let mut rest = bytes;
    let mut pieces = 0;
    while !rest.is_empty() {
        // In one piece, because others append to the file too.
        match file.write(rest) {
            Ok(0) => {
                return Err(failed(file, bytes, rest, pieces, io::ErrorKind::WriteZero.into()));
            }
            Ok(written) => rest = &rest[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(failed(file, bytes, rest, pieces, error)),
        }
        pieces += 1;
    }
    Ok(())
}

fn failed(file: &File, bytes: &[u8], rest: &[u8], pieces: u32, error: io::Error) -> Failed {
    let written = bytes.len() - rest.len();
    let is_torn = match pieces {
        0 => false,
        1 => !take_back(file, written),
        // Others may have appended in between.
        _ => true,
    };
    Failed { error, is_torn }
}

/// Removes the entry just appended from the end of a log, unless another process has appended
/// since.
fn take_back(mut file: &File, written: usize) -> bool {
    let (Ok(end), Ok(of)) = (file.stream_position(), file.metadata()) else { return false };
    let Some(before) = end.checked_sub(written.try_into().unwrap_or(u64::MAX)) else {
        return false;
    };
    of.is_file() && of.len() == end && file.set_len(before).is_ok()
}

fn encoded(entry: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    let _ = json::write_line(&mut bytes, entry);
    bytes
}

/// Tells the operator.
fn say(text: &str) {
    // If standard error is closed, the text is lost.
    let _ = writeln!(io::stderr(), "{text}");
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::OpenOptionsExt;

    use super::*;

    fn appending(path: &Path) -> File {
        File::options().create(true).append(true).mode(0o600).open(path).unwrap()
    }

    #[test]
    fn what_is_kept_for_a_log_that_cannot_be_written_is_bounded_and_the_rest_counted() {
        let journal = Journal::open(Path::new("/dev/full"), "nothing goes on").unwrap();
        assert_eq!(journal.check(), Ok(()));
        let reason = "x".repeat(10_000);
        for _ in 0..200 {
            journal.append(&json!({ "reason": reason }));
        }
        assert!(journal.check().unwrap_err().contains("No space left"), "{:?}", journal.check());
        let slot = journal.broken.lock().unwrap();
        let broken = slot.as_ref().unwrap();
        let kept = broken.kept.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        assert_eq!(u64::try_from(kept.count()).unwrap() + broken.lost, 200);
        assert!(broken.kept.len() <= KEPT_BYTES && broken.kept.len() > KEPT_BYTES - 20_000);
    }

    #[test]
    fn a_part_of_a_line_is_taken_back_unless_others_have_appended() {
        let path = tempfile::tempdir().unwrap();
        let path = path.path().join("log");
        let (log, mut other) = (appending(&path), appending(&path));
        append(&log, b"whole\n").ok().unwrap();
        append(&log, b"par").ok().unwrap();
        assert!(take_back(&log, 3));
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\n");
        append(&log, b"par").ok().unwrap();
        other.write_all(b"other\n").unwrap();
        assert!(!take_back(&log, 3));
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nparother\n");
    }
}
