//! The file of a saved session: a header with versions and the length of the host's part, the
//! host's part, the isolate's part, and a digest of all that. The digest finds damage; it proves
//! nothing about who wrote the file.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::state::{SavedState, Unread};
use crate::data::error::{Error, ErrorKind};
use crate::fs::{HostPlace, Identity, SavedLimits};

/// The beginning of every such file, with the version of the format.
const MAGIC: &[u8; 16] = b"isolet session 2";

/// The part of it that every version has.
const MAGIC_WORD: usize = 15;

/// The version of isolet, padded with zeros.
const VERSION_BYTES: usize = 32;

/// The magic, the version and the length of the host's part.
const HEADER_BYTES: usize = MAGIC.len() + VERSION_BYTES + size_of::<u64>();

const DIGEST_BYTES: usize = 32;

/// The maximum size of the host's part, in bytes, in addition to the quotas of overlays.
pub(crate) const STATE_BYTES: u64 = 64 << 20;

/// How much is digested at a time, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// Writes a saved session, to a file that takes its place when it is whole, or to memory.
pub(crate) struct SavedWriter {
    to: Target,
    hasher: blake3::Hasher,
    /// How much the isolate may still write, in bytes.
    left: u64,
    limit: u64,
    has_begun: bool,
}

enum Target {
    File(Unfinished),
    Memory(Vec<u8>),
}

/// A file that is removed unless it is kept.
struct Unfinished {
    /// For messages.
    to: PathBuf,
    place: HostPlace,
    /// The name of the file until it is whole.
    temporary: OsString,
    file: File,
    is_kept: bool,
}

impl SavedWriter {
    /// Makes the file, next to the place `to`. The isolate's part may have at most `limit` bytes.
    /// The guest may write to the directories `writable`: what it has put there leads nowhere.
    pub(crate) fn create(to: &Path, limit: u64, writable: &[Identity]) -> Result<Box<Self>, Error> {
        let mut random = [0; 8];
        let failed = |error: io::Error| {
            let message = format!("cannot save the session to `{}`: {error}", to.display());
            Error::new(ErrorKind::Config, message).with_session_alive().with_source(error)
        };
        getrandom::fill(&mut random).map_err(|error| failed(io::Error::other(error)))?;
        let place = HostPlace::find(to, writable).map_err(failed)?;
        let mut temporary = OsString::from(".");
        temporary.push(place.name());
        temporary.push(format!(".{:016x}", u64::from_le_bytes(random)));
        let file = place.create(&temporary).map_err(failed)?;
        let to = Unfinished { to: to.to_owned(), place, temporary, file, is_kept: false };
        Ok(Self::new(Target::File(to), limit))
    }

    /// Writes to memory. The isolate's part may have at most `limit` bytes.
    pub(crate) fn in_memory(limit: u64) -> Box<Self> {
        Self::new(Target::Memory(Vec::new()), limit)
    }

    /// It is large.
    fn new(to: Target, limit: u64) -> Box<Self> {
        let hasher = blake3::Hasher::new();
        Box::new(Self { to, hasher, left: limit, limit, has_begun: false })
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }

    /// Writes the host's part. A sandbox with these limits can read it.
    pub(super) fn begin(&mut self, state: &SavedState, limits: &SavedLimits) -> Result<(), String> {
        let state = state.write(limits)?;
        within_bytes(state.len() as u64, limits)?;
        let mut header = Vec::from(MAGIC);
        header.extend_from_slice(&version());
        header.extend_from_slice(&(state.len() as u64).to_le_bytes());
        self.has_begun = true;
        self.put(&header).and_then(|()| self.put(&state)).map_err(|error| error.to_string())
    }

    /// Writes a piece of the isolate's part.
    pub(super) fn write(&mut self, piece: &[u8]) -> Result<(), String> {
        let Some(left) = self.left.checked_sub(piece.len() as u64) else {
            let limit = self.limit;
            return Err(format!("it is too large: limit {limit} bytes, needed more"));
        };
        self.left = left;
        self.put(piece).map_err(|error| match &self.to {
            Target::File(file) => format!("`{}`: {error}", file.to.display()),
            Target::Memory(_) => error.to_string(),
        })
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.hasher.update(bytes);
        match &mut self.to {
            Target::File(to) => to.file.write_all(bytes),
            Target::Memory(to) => {
                to.extend_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// Puts the file into its place, in which there may be another. Returns what was written, if
    /// that is in memory.
    pub(crate) fn keep(self) -> Result<Option<Vec<u8>>, Error> {
        let digest = self.hasher.finalize();
        match self.to {
            Target::File(to) => to.keep(&digest).map(|()| None),
            Target::Memory(mut bytes) => {
                bytes.extend_from_slice(digest.as_bytes());
                Ok(Some(bytes))
            }
        }
    }
}

impl Unfinished {
    fn keep(mut self, digest: &blake3::Hash) -> Result<(), Error> {
        let kept = self
            .file
            .write_all(digest.as_bytes())
            .and_then(|()| self.file.sync_data())
            .and_then(|()| self.place.replace_by(&self.temporary));
        self.is_kept = kept.is_ok();
        kept.map_err(|error| {
            let message = format!("cannot save the session to `{}`: {error}", self.to.display());
            Error::new(ErrorKind::Config, message).with_session_alive().with_source(error)
        })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept {
            // It may be gone already, and nothing else can be done.
            let _ = self.place.remove(&self.temporary);
        }
    }
}

/// A saved session that is read.
pub(crate) struct SavedFile {
    /// For messages.
    name: String,
    contents: Contents,
    length: u64,
    /// Where the isolate's part begins and ends.
    start: u64,
    end: u64,
}

/// Where a saved session is.
#[derive(Clone)]
enum Contents {
    File(Arc<File>),
    /// From there on in a file.
    Part(Arc<File>, u64),
    Memory(Arc<[u8]>),
}

impl Contents {
    fn read_at(&self, into: &mut [u8], at: u64) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(into, at),
            Self::Part(file, start) => file.read_exact_at(into, start.saturating_add(at)),
            Self::Memory(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let there = bytes.get(at..).and_then(|bytes| bytes.get(..into.len()));
                into.copy_from_slice(there.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

impl SavedFile {
    /// Opens a file, and reads the host's part.
    pub(crate) fn open(path: &Path, limits: &SavedLimits) -> Result<(Self, SavedState), Error> {
        let name = format!("`{}`", path.display());
        let unread = |error: io::Error| refused(&name, &error.to_string()).with_source(error);
        // Without waiting: at a named pipe for who writes to it.
        let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(unread)?;
        let found = file.metadata().map_err(unread)?;
        if !found.is_file() {
            return Err(refused(&name, "it is not a regular file"));
        }
        Self::read_state(Contents::File(Arc::new(file)), found.len(), &name, limits)
    }

    /// Reads the host's part of what was saved to a part of a file of this name.
    pub(crate) fn part(
        file: Arc<File>,
        (start, end): (u64, u64),
        path: &Path,
        limits: &SavedLimits,
    ) -> Result<(Self, SavedState), Error> {
        let (name, length) = (format!("`{}`", path.display()), end.saturating_sub(start));
        Self::read_state(Contents::Part(file, start), length, &name, limits)
    }

    /// Reads the host's part of what was saved in memory.
    pub(crate) fn in_memory(
        bytes: Vec<u8>,
        limits: &SavedLimits,
    ) -> Result<(Self, SavedState), Error> {
        let length = bytes.len() as u64;
        Self::read_state(Contents::Memory(bytes.into()), length, "memory", limits)
    }

    /// Reads the host's part again.
    pub(crate) fn again(&self, limits: &SavedLimits) -> Result<(Self, SavedState), Error> {
        Self::read_state(self.contents.clone(), self.length, &self.name, limits)
    }

    /// Reads the host's part of a saved session of this length.
    fn read_state(
        contents: Contents,
        length: u64,
        name: &str,
        limits: &SavedLimits,
    ) -> Result<(Self, SavedState), Error> {
        let refused = |reason: String| refused(name, &reason);
        let unread = |error: io::Error| refused(error.to_string()).with_source(error);
        let mut header = [0; HEADER_BYTES];
        let size = usize::try_from(length).unwrap_or(usize::MAX).min(HEADER_BYTES);
        contents.read_at(&mut header[..size], 0).map_err(unread)?;
        if !header.starts_with(&MAGIC[..MAGIC_WORD]) {
            return Err(refused("it is no saved session".to_owned()));
        }
        let (magic, rest) = header.split_at(MAGIC.len());
        if magic != MAGIC {
            let shown = |magic: &[u8]| magic[MAGIC_WORD..].escape_ascii().to_string();
            let (found, own) = (shown(magic), shown(MAGIC));
            return Err(refused(format!("its format is {found}, and this isolet reads {own}")));
        }
        let (found, rest) = rest.split_at(VERSION_BYTES);
        if found != version() {
            let shown = |version: &[u8]| {
                let end = version.iter().position(|byte| *byte == 0).unwrap_or(version.len());
                String::from_utf8_lossy(&version[..end]).into_owned()
            };
            let own = env!("CARGO_PKG_VERSION");
            let found = shown(found);
            return Err(refused(format!("isolet {found:?} has saved it, and this is {own:?}")));
        }
        let state_bytes = u64::from_le_bytes(rest.try_into().unwrap_or_default());
        within_bytes(state_bytes, limits).map_err(refused)?;
        let start = HEADER_BYTES as u64 + state_bytes;
        let Some(end) = length.checked_sub(DIGEST_BYTES as u64).filter(|end| *end >= start) else {
            return Err(refused(format!("it ends after {length} bytes")));
        };
        let saved = Self { name: name.to_owned(), contents, length, start, end };
        saved.check_digest().map_err(unread)?.map_err(refused)?;
        let mut state = vec![0; usize::try_from(state_bytes).unwrap_or_default()];
        saved.contents.read_at(&mut state, HEADER_BYTES as u64).map_err(unread)?;
        let state = SavedState::read(&state, limits).map_err(|unread| match unread {
            Unread::Invalid(reason) => refused(format!("the host's part: {reason}")),
            Unread::NoOverlay(error) => error,
        })?;
        Ok((saved, state))
    }

    fn check_digest(&self) -> io::Result<Result<(), String>> {
        let mut hasher = blake3::Hasher::new();
        match &self.contents {
            Contents::Memory(bytes) => {
                let end = usize::try_from(self.end).unwrap_or(usize::MAX);
                hasher.update(bytes.get(..end).ok_or(io::ErrorKind::UnexpectedEof)?);
            }
            Contents::File(_) | Contents::Part(..) => {
                let (mut at, mut piece) = (0, vec![0; PIECE_BYTES]);
                while at < self.end {
                    let size = usize::try_from(self.end - at).unwrap_or(usize::MAX);
                    let piece = &mut piece[..size.min(PIECE_BYTES)];
                    self.contents.read_at(piece, at)?;
                    hasher.update(piece);
                    at += piece.len() as u64;
                }
            }
        }
        let mut found = [0; DIGEST_BYTES];
        self.contents.read_at(&mut found, self.end)?;
        let (found, expected) = (blake3::Hash::from(found), hasher.finalize());
        Ok(if found == expected {
            Ok(())
        } else {
            Err(format!("it is damaged: its BLAKE3 is {expected}, and {found} is written in it"))
        })
    }

    /// Returns a piece of the isolate's part; nothing at its end.
    pub(super) fn read(&self, offset: u64, max: u32) -> Result<Vec<u8>, String> {
        let at = self.start.saturating_add(offset).min(self.end);
        let size = (self.end - at).min(u64::from(max)).min(PIECE_BYTES as u64);
        let mut piece = vec![0; usize::try_from(size).unwrap_or_default()];
        self.contents.read_at(&mut piece, at).map_err(|error| error.to_string())?;
        Ok(piece)
    }
}

/// Fails if the host's part is too large.
fn within_bytes(needed: u64, limits: &SavedLimits) -> Result<(), String> {
    let limit = STATE_BYTES.saturating_add(limits.bytes);
    if needed > limit {
        return Err(format!("the host's part: limit {limit} bytes, needed {needed}"));
    }
    Ok(())
}

fn version() -> [u8; VERSION_BYTES] {
    let mut padded = [0; VERSION_BYTES];
    for (to, from) in padded.iter_mut().zip(env!("CARGO_PKG_VERSION").bytes()) {
        *to = from;
    }
    padded
}

fn refused(name: &str, reason: &str) -> Error {
    let message = format!("the session in {name} cannot be restored: {reason}");
    Error::new(ErrorKind::Config, message)
}
