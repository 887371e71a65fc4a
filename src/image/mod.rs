//! The image that sessions start from: the memory of a booted CPython with our glue and the common
//! modules imported, taken before it had any entropy, input or environment of its own, the files
//! that an isolate is made of besides, and what V8 had compiled of them.
//!
//! An image file belongs to exactly the assets, the glue and the V8 it was made with: a digest of
//! these is its key and part of its name. Its own digest is checked before it is used, once for as
//! long as the file stays the same ([`checked`]). This folder
//! finds and verifies images without V8; `isolate` makes them and starts interpreters from them.

mod build_lock;
mod checked;
mod key;
mod location;
#[cfg(any(feature = "engine", feature = "fuzzing"))]
pub(crate) mod saved;
mod sources;
mod store;
mod v8_flags;

use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use isolet_pyodide_assets::Digest;

use self::checked::Check;
pub(crate) use self::location::{ImageLocation, Importer};
#[cfg(feature = "engine")]
pub(crate) use self::sources::{JAVASCRIPT, PYTHON, WARM_UP, WARM_UP_PACKAGES};
pub(crate) use self::store::PRELOADED_BYTES;
#[cfg(feature = "engine")]
pub(crate) use self::v8_flags::V8_FLAGS;
use crate::data::error::{Error, ErrorKind};
use crate::support::shared_file::SharedFile;

const MAGIC: &[u8; 16] = b"isolet image 006";
/// Bytes of the magic, the key and the digest of what follows.
pub(crate) const HEADER: usize = MAGIC.len() + 64;

/// Bytes that are digested at once.
const PIECE_BYTES: usize = 1 << 20;

/// A verified image file.
pub(crate) struct ImageFile {
    path: Option<PathBuf>,
    /// All of it, which only an isolate of this process reads.
    bytes: Bytes,
    shared: Option<SharedFile>,
    /// Why it was not stored, if it was made just now.
    unstored: Option<String>,
}

impl ImageFile {
    /// Loads and verifies the image of this location, if there is one.
    pub(crate) fn find(location: &ImageLocation) -> Result<Option<Self>, Error> {
        let path = location.path();
        let opened = location::open_own(path).and_then(|file| {
            location.note_use(&file);
            let shared = SharedFile::of_file(&file)?;
            // Before the file is read: what is changed meanwhile is not remembered.
            Ok((Check::of(path, &file), shared.map()?, shared))
        });
        match opened {
            Ok((check, bytes, shared)) => {
                if check.as_ref().is_some_and(Check::was_right) {
                    return Self::of(bytes, Some(shared), location).map(Some);
                }
                let image = Self::verified(bytes, Some(shared), location)?;
                if let Some(check) = check {
                    check.remember();
                }
                Ok(Some(image))
            }
            // Where it cannot be shared every session copies the pages.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let bytes = fs::read(path).map_err(|error| unusable(path, error))?;
                Self::verified(bytes.into(), None, location).map(Some)
            }
            // What cannot be reached is not there, and cannot be put there either.
            Err(error) if is_out_of_reach(&error) => Ok(None),
            Err(error) => Err(unusable(path, error)),
        }
    }

    /// An image that could not be stored.
    #[cfg(feature = "engine")]
    pub(crate) fn unstored(bytes: Vec<u8>, reason: String) -> Self {
        Self { unstored: Some(reason), ..Self::in_memory(bytes) }
    }

    /// Returns why the image could not be stored.
    pub(crate) fn why_unstored(&self) -> Option<&str> {
        self.unstored.as_deref()
    }

    /// An image that is in no directory.
    pub(crate) fn in_memory(bytes: Vec<u8>) -> Self {
        let shared = SharedFile::new("isolet-image", &bytes);
        match shared.and_then(|shared| Ok((shared.map()?, shared))) {
            Ok((bytes, shared)) => Self { path: None, bytes, shared: Some(shared), unstored: None },
            Err(_) => Self { path: None, bytes: bytes.into(), shared: None, unstored: None },
        }
    }

    /// An image that another process has verified.
    pub(crate) fn received(shared: SharedFile) -> io::Result<Self> {
        Ok(Self { path: None, bytes: shared.map()?, shared: Some(shared), unstored: None })
    }

    /// Returns where the image is stored, if it could be.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the file for other sessions and processes to map, if the system can share it.
    pub(crate) fn shared(&self) -> Option<&SharedFile> {
        self.shared.as_ref()
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Checks the digest of an image, and whether it is the one of this location.
    fn verified(
        bytes: Bytes,
        shared: Option<SharedFile>,
        location: &ImageLocation,
    ) -> Result<Self, Error> {
        let (header, contents) = split(&bytes, location)?;
        let digest = digest(contents);
        let expected = blake3::Hash::from_slice(&header[MAGIC.len() + 32..])
            .map_err(|error| wrong(location, &error.to_string()))?;
        if digest != expected {
            let what = format!("has the wrong BLAKE3 (expected {expected}, got {digest})");
            return Err(wrong(location, &what));
        }
        Self::of(bytes, shared, location)
    }

    /// Checks whether an image is the one of this location.
    fn of(
        bytes: Bytes,
        shared: Option<SharedFile>,
        location: &ImageLocation,
    ) -> Result<Self, Error> {
        let (header, _) = split(&bytes, location)?;
        let key = location.key();
        if !header.starts_with(MAGIC) || &header[MAGIC.len()..][..32] != key.as_bytes() {
            return Err(wrong(location, &format!("is not the one of key {key}")));
        }
        Ok(Self { path: Some(location.path().to_owned()), bytes, shared, unstored: None })
    }
}

/// Returns the header and the rest of an image.
fn split<'a>(bytes: &'a Bytes, location: &ImageLocation) -> Result<(&'a [u8], &'a [u8]), Error> {
    bytes.split_at_checked(HEADER).ok_or_else(|| {
        wrong(location, &format!("ends after {} bytes, inside its header", bytes.len()))
    })
}

fn wrong(location: &ImageLocation, what: &str) -> Error {
    let message = format!("image `{}` {what}; {}", location.path().display(), location.remedy());
    Error::new(ErrorKind::Assets, message)
}

/// Fills in the first [`HEADER`] bytes of an image file.
pub(crate) fn write_header(file: &mut [u8], key: Digest) {
    let (header, contents) = file.split_at_mut(HEADER);
    let (magic, digests) = header.split_at_mut(MAGIC.len());
    magic.copy_from_slice(MAGIC);
    digests[..32].copy_from_slice(key.as_bytes());
    digests[32..].copy_from_slice(digest(contents).as_bytes());
}

/// Returns the digest of the digests of pieces of the contents, made on all processors.
fn digest(contents: &[u8]) -> blake3::Hash {
    let pieces: Vec<&[u8]> = contents.chunks(PIECE_BYTES).collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let share = pieces.len().div_ceil(threads).max(1);
    let all = |pieces: &[&[u8]]| -> Vec<blake3::Hash> {
        pieces.iter().map(|piece| blake3::hash(piece)).collect()
    };
    let mut whole = blake3::Hasher::new();
    std::thread::scope(|scope| {
        let mut shares = pieces.chunks(share);
        let ours = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| {
                let thread = std::thread::Builder::new().name("isolet-digest".to_owned());
                (share, thread.spawn_scoped(scope, || all(share)))
            })
            .collect();
        let mut add = |digests: Vec<blake3::Hash>| {
            for digest in digests {
                whole.update(digest.as_bytes());
            }
        };
        add(all(ours));
        for (share, thread) in others {
            // Without a further thread it takes longer.
            let digests = thread.ok().and_then(|thread| thread.join().ok());
            add(digests.unwrap_or_else(|| all(share)));
        }
    });
    whole.finalize()
}

fn unusable(path: &Path, error: io::Error) -> Error {
    let message = format!("image `{}` cannot be used: {error}", path.display());
    let shown = path.parent().unwrap_or(path).display();
    let hint = format!(
        "delete `{shown}`, or set XDG_CACHE_HOME to a directory that only this user and root may \
         write to"
    );
    Error::new(ErrorKind::Assets, message).with_source(error).with_hint(hint)
}

/// Whether there is no such file for this user.
fn is_out_of_reach(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, PermissionDenied};
    let is_loop = rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP);
    [NotFound, PermissionDenied, NotADirectory, InvalidFilename].contains(&error.kind()) || is_loop
}
