//! The memory image that sessions start from: a booted CPython with our glue and the common modules
//! imported, taken before it had any entropy, input or environment of its own.
//!
//! A file of it belongs to exactly the assets, the glue and the V8 it was made with: they make its key
//! and with it its name. Its own sha256 is checked before it is used. Only pages that are not all
//! zero are stored.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use isolet_pyodide_assets::{Assets, Digest};

use super::Files;
use super::extension::glue_sources;
use super::isolate::{self, Parts, SharedWasm};
use super::platform::v8_version;
use crate::error::{Error, ErrorKind};
use crate::fs::FileError;
use crate::waist::{Host, HostReply, HostRequest};

const MAGIC: &[u8; 16] = b"isolet image 001";
/// The magic, the key and the digest of what follows.
const HEADER: usize = MAGIC.len() + 64;
const PAGE: usize = 4096;
const PREFIX: &str = "image-";
/// The memory of an interpreter that is booted to make the image: several times what it takes.
const IMAGE_BYTES: u64 = 1 << 30;

/// Memory as the image-making isolate left it.
pub(crate) struct SavedMemory {
    contents: Vec<u8>,
}

/// The host of an interpreter that is booted for its memory: it has nothing to give.
struct ImageHost;

impl Host for ImageHost {
    fn call(&self, request: HostRequest<'_>) -> HostReply {
        match request {
            HostRequest::Now | HostRequest::WallClock => HostReply::Time(0.0),
            _ => HostReply::Done,
        }
    }

    fn read_file(&self, _: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
        Err(FileError::BadHandle)
    }
}

/// What to do about an image file that is there and not as it should be.
#[derive(Clone, Copy)]
pub(crate) enum Damaged {
    Refuse,
    Replace,
}

/// A verified image; cheap to clone.
#[derive(Clone)]
pub(crate) struct Image(Arc<Contents>);

struct Contents {
    path: Option<PathBuf>,
    file: Bytes,
    layout: Layout,
}

/// Where the parts of an image file are.
struct Layout {
    config: std::ops::Range<usize>,
    memory_bytes: usize,
    /// Of each run of stored pages its first page, and its place in the file.
    runs: Vec<(usize, std::ops::Range<usize>)>,
}

impl SavedMemory {
    /// Packs `memory`: a header, the config, and every run of pages that are not all zero.
    pub(crate) fn new(memory: &[u8], config: &str) -> Self {
        let mut contents = Vec::new();
        push_number(&mut contents, memory.len());
        push_number(&mut contents, config.len());
        contents.extend_from_slice(config.as_bytes());
        let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
        let pages: Vec<&[u8]> = memory.chunks(PAGE).collect();
        let mut first = 0;
        for run in pages.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
            if !run.first().is_none_or(|page| is_zero(page)) {
                push_number(&mut contents, first);
                push_number(&mut contents, run.iter().map(|page| page.len()).sum());
                for page in run {
                    contents.extend_from_slice(page);
                }
            }
            first += run.len();
        }
        Self { contents }
    }
}

impl Image {
    /// Loads the image that belongs to these assets from beside them, or makes it and stores it there.
    ///
    /// Where it cannot be stored it serves this process only.
    pub(crate) fn load_or_build(
        assets: &Assets,
        dir: &Path,
        wasm: &SharedWasm,
        damaged: Damaged,
    ) -> Result<Self, Error> {
        let key = key(assets);
        let path = dir.join(format!("{PREFIX}{}.bin", &key.to_string()[..16]));
        let found = match fs::read(&path) {
            Ok(file) => Some(Self::verified(file, Some(path.clone()), key)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(Error::new(
                ErrorKind::Assets,
                format!("image `{}` cannot be read: {error}", path.display()),
            ))),
        };
        match (found, damaged) {
            (Some(Ok(image)), _) => return Ok(image),
            (Some(Err(error)), Damaged::Refuse) => return Err(error),
            (Some(Err(_)), Damaged::Replace) | (None, _) => {}
        }
        let parts = Parts {
            files: Files::new(assets),
            wasm: Arc::clone(wasm),
            host: Arc::new(ImageHost),
            max_memory_bytes: IMAGE_BYTES,
        };
        let saved = isolate::capture_memory(parts)?;
        let mut file = MAGIC.to_vec();
        file.extend_from_slice(key.as_bytes());
        file.extend_from_slice(Digest::of(&saved.contents).as_bytes());
        file.extend_from_slice(&saved.contents);
        let stored = store(dir, &path, &file).is_ok();
        Self::verified(file, stored.then_some(path), key)
    }

    /// An image that was verified before, in a process that has it from there.
    pub(crate) fn trusted(file: Bytes) -> Option<Self> {
        let layout = layout(&file, HEADER)?;
        Some(Self(Arc::new(Contents { path: None, file, layout })))
    }

    pub(crate) fn file(&self) -> &[u8] {
        &self.0.file
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.layout.memory_bytes
    }

    /// What Pyodide has to know besides the memory.
    pub(crate) fn config(&self) -> &str {
        let bytes = self.0.file.get(self.0.layout.config.clone()).unwrap_or_default();
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Makes `memory` the image's; `None` if it is too small.
    pub(crate) fn restore(&self, memory: &mut [u8]) -> Option<()> {
        let mut rest = memory.get_mut(..)?;
        if rest.len() < self.memory_bytes() {
            return None;
        }
        let mut at = 0;
        for (first, range) in &self.0.layout.runs {
            let (gap, after) = rest.split_at_mut_checked(first * PAGE - at)?;
            clear(gap);
            let stored = self.0.file.get(range.clone())?;
            let (run, after) = after.split_at_mut_checked(stored.len())?;
            run.copy_from_slice(stored);
            rest = after;
            at = first * PAGE + stored.len();
        }
        clear(rest);
        Some(())
    }

    fn verified(file: Vec<u8>, path: Option<PathBuf>, key: Digest) -> Result<Self, Error> {
        let name = path.as_deref().unwrap_or(Path::new("in memory")).display().to_string();
        let wrong = |what: String| {
            Error::new(
                ErrorKind::Assets,
                format!("image `{name}` {what}; `isolet assets prepare` makes it anew"),
            )
        };
        let header = file
            .get(..HEADER)
            .ok_or_else(|| wrong(format!("ends after {} bytes, inside its header", file.len())))?;
        let (found_key, found_digest) = header[MAGIC.len()..].split_at(32);
        let contents = &file[header.len()..];
        let digest = Digest::of(contents);
        if digest.as_bytes() != found_digest {
            let expected: String =
                found_digest.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
            return Err(wrong(format!("has the wrong sha256 (expected {expected}, got {digest})")));
        }
        if !header.starts_with(MAGIC) || found_key != key.as_bytes() {
            return Err(wrong(format!("is not the one of key {key}")));
        }
        let layout = layout(&file, header.len())
            .ok_or_else(|| wrong("is not laid out as an image is".to_owned()))?;
        Ok(Self(Arc::new(Contents { path, file: file.into(), layout })))
    }
}

/// Writes zeros where there are none, and so touches no page that nothing was ever written to.
fn clear(memory: &mut [u8]) {
    for page in memory.chunks_mut(PAGE) {
        if page.iter().any(|byte| *byte != 0) {
            page.fill(0);
        }
    }
}

/// What an image depends on.
fn key(assets: &Assets) -> Digest {
    let mut inputs = Vec::new();
    inputs.extend_from_slice(assets.digest().as_bytes());
    let versions = [env!("CARGO_PKG_VERSION"), v8_version()].map(Cow::Borrowed);
    for part in versions.into_iter().chain(glue_sources()) {
        push_number(&mut inputs, part.len());
        inputs.extend_from_slice(part.as_bytes());
    }
    Digest::of(&inputs)
}

/// Stores the image so that it is there whole or not at all, and removes those it replaces.
fn store(dir: &Path, path: &Path, file: &[u8]) -> io::Result<()> {
    static STORED: AtomicU64 = AtomicU64::new(0);
    let (process, nth) = (std::process::id(), STORED.fetch_add(1, Ordering::Relaxed));
    let temporary = dir.join(format!(".{PREFIX}{process}-{nth}.tmp"));
    let written = fs::File::create(&temporary)
        .and_then(|mut target| target.write_all(file).and_then(|()| target.sync_all()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
        return written;
    }
    for entry in fs::read_dir(dir)?.flatten() {
        let name = entry.file_name();
        let stale = name.to_string_lossy().starts_with(PREFIX) && entry.path() != path;
        if stale {
            // Another process may have removed it first.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn push_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

fn layout(file: &[u8], start: usize) -> Option<Layout> {
    let mut at = start;
    let number = |at: &mut usize| {
        let bytes = file.get(*at..*at + 8)?;
        *at += 8;
        usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    let memory_bytes = number(&mut at)?;
    let config_bytes = number(&mut at)?;
    let config = at..at.checked_add(config_bytes)?;
    at = config.end;
    let mut runs = Vec::new();
    while at < file.len() {
        let first = number(&mut at)?;
        let length = number(&mut at)?;
        let end = at.checked_add(length)?;
        runs.push((first, at..end));
        at = end;
    }
    (at == file.len()).then_some(Layout { config, memory_bytes, runs })
}
