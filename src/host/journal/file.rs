//! The file of a journal: a magic line, and records. A record is its length and its CRC-32, each
//! four bytes, and itself, encoded with `postcard`. A program that is killed leaves the last record
//! incomplete at most, and it is left out.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::record::Record;
use crate::data::error::{Error, ErrorKind};
use crate::fs::{HostPlace, Identity};

/// The beginning of every journal, with the version of the format.
pub(super) const MAGIC: &[u8] = b"isolet journal 1\n";

/// The part of it that every version has.
const MAGIC_WORD: usize = 15;

const HEADER_BYTES: usize = 8;

/// The maximum size of a record, in bytes: it is read at once.
const RECORD_BYTES: u64 = 1 << 30;

/// How much is kept before it is written, in bytes.
const BUFFER_BYTES: usize = 64 << 10;

/// How much is read at once, in bytes.
const READ_BYTES: usize = 64 << 10;

/// When what was recorded reaches the device, and not only the operating system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalSync {
    /// When the operating system writes it. A journal survives the end of each process, but may
    /// lose its end with the machine.
    #[default]
    Never,
    /// Before each call of a tool that is not idempotent, each request, and each change of a file,
    /// and with each answer.
    Always,
}

/// What happens when a journal has its maximum size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalFull {
    /// The run ends with an error, and the session with it. The journal can be resumed with a
    /// larger limit.
    #[default]
    EndSession,
    /// The session goes on, and is recorded no longer. The file is emptied, because a session that
    /// was resumed from it would do again what came later.
    EndRecording,
}

/// How a journal is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalOptions {
    pub(crate) sync: JournalSync,
    pub(crate) max_bytes: u64,
    pub(crate) when_full: JournalFull,
}

/// Appends to a journal.
pub(super) struct Appender {
    file: Arc<File>,
    path: PathBuf,
    options: JournalOptions,
    /// What was not written yet.
    buffer: Vec<u8>,
    /// How long the file is with it, in bytes.
    length: u64,
    /// Whether it was full, and has ended.
    is_over: bool,
}

impl Appender {
    /// Makes the file, which must not exist. The guest may write to the directories `writable`:
    /// what it has put there leads nowhere.
    pub(super) fn create(
        path: &Path,
        options: JournalOptions,
        writable: &[Identity],
    ) -> Result<Self, Error> {
        let failed = |error: io::Error| unusable(path, "cannot be made", error);
        let place = HostPlace::find(path, writable).map_err(failed)?;
        let name = place.name().to_owned();
        let file = place.create(&name).map_err(failed)?;
        // Nobody else can have it open for long, and a reader does not mind.
        file.try_lock().map_err(|error| failed(error.into()))?;
        let mut appender = Self::new(Arc::new(file), path, options, 0);
        appender.buffer.extend_from_slice(MAGIC);
        appender.length = MAGIC.len() as u64;
        Ok(appender)
    }

    fn new(file: Arc<File>, path: &Path, options: JournalOptions, length: u64) -> Self {
        let (path, buffer) = (path.to_owned(), Vec::new());
        Self { file, path, options, buffer, length, is_over: false }
    }

    /// Returns `true` if it was full, and has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns `true` if it waits for the device.
    pub(super) fn syncs(&self) -> bool {
        self.options.sync == JournalSync::Always && !self.is_over
    }

    /// Appends a record. Returns where it is.
    pub(super) fn append(&mut self, record: &Record) -> Result<u64, String> {
        if self.is_over {
            return Ok(0);
        }
        let place = self.length;
        let start = self.buffer.len();
        self.buffer.extend_from_slice(&[0; HEADER_BYTES]);
        let buffer = std::mem::take(&mut self.buffer);
        self.buffer = postcard::to_extend(record, buffer).map_err(|error| error.to_string())?;
        let body = &self.buffer[start + HEADER_BYTES..];
        if body.len() as u64 > RECORD_BYTES {
            let needed = body.len();
            return Err(format!("a record has {needed} bytes, the limit is {RECORD_BYTES} bytes"));
        }
        let header = header(body);
        self.buffer[start..start + HEADER_BYTES].copy_from_slice(&header);
        let length = place + (self.buffer.len() - start) as u64;
        if !self.has_room(length)? {
            return Ok(0);
        }
        self.length = length;
        if self.buffer.len() >= BUFFER_BYTES {
            self.write()?;
        }
        Ok(place)
    }

    /// Appends bytes that a record has announced.
    pub(super) fn append_bytes(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.is_over || !self.has_room(self.length + bytes.len() as u64)? {
            return Ok(());
        }
        self.length += bytes.len() as u64;
        self.buffer.extend_from_slice(bytes);
        self.write()
    }

    /// Has everything survive the end of this process, and what else was asked for.
    pub(super) fn flush(&mut self) -> Result<(), String> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        self.write()?;
        match self.options.sync {
            JournalSync::Never => Ok(()),
            JournalSync::Always => self.file.sync_data().map_err(|error| self.failed(&error)),
        }
    }

    fn write(&mut self) -> Result<(), String> {
        let written = (&*self.file).write_all(&self.buffer);
        self.buffer.clear();
        written.map_err(|error| self.failed(&error))
    }

    /// Ends the journal if it would have more bytes than it may, or fails.
    fn has_room(&mut self, needed: u64) -> Result<bool, String> {
        let limit = self.options.max_bytes;
        if needed <= limit {
            return Ok(true);
        }
        match self.options.when_full {
            JournalFull::EndSession => {
                let path = self.path.display();
                Err(format!(
                    "the journal `{path}` would have {needed} bytes, the limit is {limit} bytes \
                     (`Journal::max_bytes`)"
                ))
            }
            JournalFull::EndRecording => {
                self.is_over = true;
                self.buffer = Vec::new();
                self.file.set_len(0).map_err(|error| self.failed(&error))?;
                Ok(false)
            }
        }
    }

    fn failed(&self, error: &io::Error) -> String {
        format!("the journal `{}` cannot be written: {error}", self.path.display())
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        // Nobody waits for it, and what had to survive was flushed.
        let _ = self.write();
    }
}

/// Returns the header of a record, whose length is within [`RECORD_BYTES`].
pub(super) fn header(body: &[u8]) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    (u64::from(crc32fast::hash(body)) << 32 | u64::from(length)).to_le_bytes()
}

/// A journal that is read, as long as it was when it was opened.
#[derive(Clone)]
pub(super) struct JournalFile {
    file: Arc<File>,
    path: PathBuf,
    length: u64,
}

/// A record, and where it ends.
pub(super) struct Found {
    pub(super) record: Record,
    pub(super) end: u64,
}

impl JournalFile {
    /// Opens a journal; to go on with it, alone.
    pub(super) fn open(path: &Path, goes_on: bool) -> Result<Self, Error> {
        let unread = |error: io::Error| unusable(path, "cannot be read", error);
        // Without waiting: at a named pipe for who writes to it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.read(true).write(goes_on).custom_flags(flags).open(path);
        let file = file.map_err(unread)?;
        let found = file.metadata().map_err(unread)?;
        let refused = |reason: &str| refused(path, reason);
        if !found.is_file() {
            return Err(refused("it is not a regular file"));
        }
        if found.len() == 0 {
            return Err(refused("it is empty: the session was killed before it began"));
        }
        if goes_on {
            match file.try_lock() {
                Ok(()) => {}
                Err(std::fs::TryLockError::WouldBlock) => {
                    return Err(refused("a process goes on with it"));
                }
                Err(std::fs::TryLockError::Error(error)) => return Err(unread(error)),
            }
        }
        let mut magic = vec![0; MAGIC.len()];
        let journal = Self { file: Arc::new(file), path: path.to_owned(), length: found.len() };
        if journal.read_at(&mut magic, 0).is_err() || !magic.starts_with(&MAGIC[..MAGIC_WORD]) {
            return Err(refused("it is no journal"));
        }
        if magic != MAGIC {
            let shown =
                |magic: &[u8]| magic[MAGIC_WORD..].trim_ascii_end().escape_ascii().to_string();
            let (found, own) = (shown(&magic), shown(MAGIC));
            return Err(refused(&format!("its format is {found}, and this isolet reads {own}")));
        }
        Ok(journal)
    }

    /// Returns where its first record is.
    pub(super) fn start() -> u64 {
        MAGIC.len() as u64
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Reads the record at a place; `None` at the end, and before one that is incomplete.
    pub(super) fn record(&self, at: u64) -> Result<Option<Found>, String> {
        let left = self.length.saturating_sub(at);
        if left < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut header = [0; HEADER_BYTES];
        let unread = |error: io::Error| format!("it cannot be read: {error}");
        self.read_at(&mut header, at).map_err(unread)?;
        let length = header.first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default();
        let end = at + HEADER_BYTES as u64 + u64::from(length);
        if end > self.length {
            return Ok(None);
        }
        if u64::from(length) > RECORD_BYTES {
            return Err(format!(
                "the record at byte {at} has {length} bytes, the limit is {RECORD_BYTES} bytes"
            ));
        }
        let mut body = vec![0; length as usize];
        self.read_at(&mut body, at + HEADER_BYTES as u64).map_err(unread)?;
        if self::header(&body) != header {
            // The system may not have written the last one before the machine stopped.
            let is_last = end == self.length || self.is_empty_from(at);
            return if is_last { Ok(None) } else { Err(format!("it is damaged at byte {at}")) };
        }
        match postcard::take_from_bytes::<Record>(&body) {
            Ok((record, [])) => Ok(Some(Found { record, end })),
            Ok(_) => Err(format!("the record at byte {at} is too long")),
            Err(error) => Err(format!("the record at byte {at} is none: {error}")),
        }
    }

    /// Goes on with the journal behind its last record, which ends there.
    pub(super) fn go_on(&self, end: u64, options: JournalOptions) -> Result<Appender, Error> {
        let failed = |error: io::Error| unusable(&self.path, "cannot be written", error);
        self.file.set_len(end).map_err(failed)?;
        let mut at_end = &*self.file;
        io::Seek::seek(&mut at_end, io::SeekFrom::Start(end)).map_err(failed)?;
        Ok(Appender::new(Arc::clone(&self.file), &self.path, options, end))
    }

    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        self.file.read_exact_at(into, at)
    }

    /// Returns `true` if there are only zeros from there on, as a file system leaves them.
    fn is_empty_from(&self, mut at: u64) -> bool {
        let mut piece = vec![0; READ_BYTES];
        while at < self.length {
            let size = usize::try_from(self.length - at).unwrap_or(usize::MAX).min(READ_BYTES);
            if self.read_at(&mut piece[..size], at).is_err() {
                return false;
            }
            if piece[..size].iter().any(|byte| *byte != 0) {
                return false;
            }
            at += size as u64;
        }
        true
    }
}

fn unusable(path: &Path, what: &str, error: io::Error) -> Error {
    let message = format!("the journal `{}` {what}: {error}", path.display());
    Error::new(ErrorKind::Journal, message).with_source(error)
}

/// Returns the error for a journal that no session can be made of.
pub(super) fn refused(path: &Path, reason: &str) -> Error {
    Error::new(ErrorKind::Journal, format!("the journal `{}`: {reason}", path.display()))
}
