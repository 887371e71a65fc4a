//! The image that sessions start from. It contains the memory of a booted CPython with our glue and
//! the common modules imported, taken before it had any entropy, input or environment. It also
//! contains the other files that an isolate needs, and the code that V8 compiled from them.
//!
//! An image file belongs to exactly the assets, the glue and the V8 that it was made with. They
//! determine its key, and with it its name. Its digest is checked before it is used. Only pages
//! that are not all zero are stored.

mod file;
mod store;

use std::fs;
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use deno_core::v8;
use isolet_pyodide_assets::Digest;

use self::file::{Layout, PARTS, layout};
pub(crate) use self::store::Place;
use super::Files;
use super::capture;
use super::native_code::SharedModules;
use super::restore::{copy_on_write, copy_over, map_over};
use crate::data::error::{Error, ErrorKind};
use crate::packages::Preload;
use crate::support::shared_file::SharedFile;

const MAGIC: &[u8; 16] = b"isolet image 005";
/// The length of the header: the magic, the key and the digest of the rest.
const HEADER: usize = MAGIC.len() + 64;

/// Chunk size for hashing, in bytes.
const PIECE_BYTES: usize = 1 << 20;

/// The indices of the parts before the pages.
const CONFIG: usize = 0;
const WASM: usize = 1;
const MODULE: usize = 2;
const STDLIB: usize = 3;
const EXPORTS: usize = 4;
const NATIVE_CODE: usize = 5;
const SCRIPT_CACHE: usize = 6;
/// The list of dynamic libraries, and their contents one after another.
const LIBRARIES: usize = 7;
const LIBRARY_CONTENTS: usize = 8;
const DATA: usize = 9;

/// The memory that an image-making isolate produced.
pub(crate) struct SavedMemory {
    bytes: usize,
    config: String,
    runs: Vec<(usize, Vec<u8>)>,
    libraries: Vec<Library>,
}

/// A dynamic library that is loaded in an image.
#[derive(Clone)]
pub(crate) struct Library {
    /// Its guest path.
    pub(crate) name: String,
    pub(crate) wasm: Bytes,
}

/// The entry of a library in an image: its name, and the lengths of its WebAssembly and its native
/// code, in bytes.
type LibraryEntry = (String, usize, usize);

/// Code that V8 has compiled, in V8's own formats. Empty where there is none.
#[derive(Default)]
pub(crate) struct Compiled {
    /// CPython's code.
    pub(crate) native_code: Vec<u8>,
    /// The code of Pyodide's JavaScript.
    pub(crate) script_cache: Vec<u8>,
    /// The code of each dynamic library.
    pub(crate) libraries: Vec<Vec<u8>>,
}

/// A verified image; cheap to clone.
#[derive(Clone)]
pub(crate) struct Image(Arc<Contents>);

struct Contents {
    path: Option<PathBuf>,
    file: Bytes,
    layout: Layout,
    /// The same file in a form that several sessions and processes can map.
    shared: Option<SharedFile>,
}

impl SavedMemory {
    /// Makes the image of a memory.
    pub(crate) fn new(memory: &[u8], config: &str, libraries: Vec<Library>) -> Self {
        let (bytes, config, runs) = (memory.len(), config.to_owned(), file::runs(memory));
        Self { bytes, config, runs, libraries }
    }

    fn file(&self, key: Digest, files: &Files, compiled: &Compiled) -> Vec<u8> {
        let mut parts: [&[u8]; PARTS] = [&[]; PARTS];
        parts[CONFIG] = self.config.as_bytes();
        parts[WASM] = &files.asm_wasm;
        parts[DATA] = &files.data;
        parts[MODULE] = &files.asm_mjs;
        parts[STDLIB] = &files.stdlib_zip;
        parts[EXPORTS] = &files.exports;
        parts[NATIVE_CODE] = &compiled.native_code;
        parts[SCRIPT_CACHE] = &compiled.script_cache;
        let (libraries, contents) = self.libraries(compiled);
        (parts[LIBRARIES], parts[LIBRARY_CONTENTS]) = (&libraries, &contents);
        let mut file = file::assemble(HEADER, self.bytes, parts, &self.runs);
        let (header, contents) = file.split_at_mut(HEADER);
        let (magic, digests) = header.split_at_mut(MAGIC.len());
        magic.copy_from_slice(MAGIC);
        digests[..32].copy_from_slice(key.as_bytes());
        digests[32..].copy_from_slice(digest(contents).as_bytes());
        file
    }

    /// Returns the parts about libraries.
    fn libraries(&self, compiled: &Compiled) -> (Vec<u8>, Vec<u8>) {
        let mut codes = compiled.libraries.iter();
        let (mut entries, mut contents) = (Vec::<LibraryEntry>::new(), Vec::new());
        for Library { name, wasm } in &self.libraries {
            let code = codes.next().map(Vec::as_slice).unwrap_or_default();
            entries.push((name.clone(), wasm.len(), code.len()));
            contents.extend_from_slice(wasm);
            contents.extend_from_slice(code);
        }
        (serde_json::to_vec(&entries).unwrap_or_default(), contents)
    }
}

impl Image {
    /// Loads the image at this place, if there is one.
    pub(crate) fn find(place: &Place) -> Result<Option<Self>, Error> {
        let path = place.path();
        let opened = store::open_own(path).and_then(|file| {
            let shared = SharedFile::of_file(&file)?;
            Ok((shared.map()?, shared))
        });
        match opened {
            Ok((file, shared)) => Self::verified(file, Some(shared), place).map(Some),
            // If the file cannot be shared, every session copies the pages.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let file = fs::read(path).map_err(|error| unusable(path, &error))?;
                Self::verified(file.into(), None, place).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(path, &error)),
        }
    }

    /// Builds the image of this place, with `preload` in it, and stores it there.
    ///
    /// If it cannot be stored, it serves this process only.
    pub(crate) fn build(
        place: &Place,
        files: &Files,
        modules: &SharedModules,
        preload: &Preload,
    ) -> Result<Self, Error> {
        let key = place.key();
        let saved = capture::memory(files.clone(), preload)?;
        let draft = Self::in_memory(saved.file(key, files, &Compiled::default()))?;
        let compiled = capture::compiled(draft, modules)?;
        let file = saved.file(key, files, &compiled);
        let stored = place.store(&file).ok().and_then(|()| Self::find(place).ok()?);
        stored.map_or_else(|| Self::in_memory(file), Ok)
    }

    /// Makes an image from a file that another process has already verified.
    pub(crate) fn received(shared: SharedFile) -> io::Result<Self> {
        let file = shared.map()?;
        Self::new(file, Some(shared), None).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Makes an image that is not stored in a directory.
    fn in_memory(file: Vec<u8>) -> Result<Self, Error> {
        let shared =
            SharedFile::new("isolet-image", &file).and_then(|blob| Ok((blob.map()?, blob)));
        let image = match shared {
            Ok((mapped, blob)) => Self::new(mapped, Some(blob), None),
            Err(_) => Self::new(file.into(), None, None),
        };
        image.ok_or_else(|| Error::new(ErrorKind::Start, "the image is not laid out as one"))
    }

    /// Makes an image from this file; `None` if its layout is invalid.
    fn new(file: Bytes, shared: Option<SharedFile>, path: Option<PathBuf>) -> Option<Self> {
        let layout = layout(HEADER, &file)?;
        Some(Self(Arc::new(Contents { path, file, layout, shared })))
    }

    /// Returns the file for [`received`](Self::received), if it can be shared.
    pub(crate) fn shared(&self) -> Option<&SharedFile> {
        self.0.shared.as_ref()
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.layout.memory_bytes
    }

    /// Returns the files that an isolate needs.
    pub(crate) fn files(&self) -> Files {
        Files {
            asm_wasm: self.part(WASM),
            data: self.part(DATA),
            asm_mjs: self.part(MODULE),
            stdlib_zip: self.part(STDLIB),
            exports: self.part(EXPORTS),
        }
    }

    /// Returns the contents of a buffer with the standard library. Its user may write to it.
    pub(crate) fn stdlib(&self) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
        match &self.0.shared {
            Some(shared) => copy_on_write(shared, self.0.layout.parts[STDLIB].clone()),
            None => Ok(v8::ArrayBuffer::new_backing_store_from_vec(self.part(STDLIB).into())),
        }
    }

    /// Returns the configuration that our JavaScript needs in addition to the memory.
    pub(crate) fn config(&self) -> Bytes {
        self.part(CONFIG)
    }

    /// Returns CPython's native code, if there is any.
    pub(crate) fn native_code(&self) -> Option<Bytes> {
        Some(self.part(NATIVE_CODE)).filter(|code| !code.is_empty())
    }

    /// Returns the code that V8 compiled from Pyodide's JavaScript, if there is any.
    pub(crate) fn script_cache(&self) -> Option<Bytes> {
        Some(self.part(SCRIPT_CACHE)).filter(|cache| !cache.is_empty())
    }

    /// Returns the dynamic libraries, in the order in which they were loaded.
    pub(crate) fn libraries(&self) -> Vec<Library> {
        self.entries().map(|(name, wasm, _)| Library { name, wasm }).collect()
    }

    /// Returns the library of this name, and its native code if there is any.
    pub(crate) fn library(&self, wanted: &str) -> Option<(Library, Option<Bytes>)> {
        let (name, wasm, code) = self.entries().find(|(name, _, _)| name == wanted)?;
        Some((Library { name, wasm }, Some(code).filter(|code| !code.is_empty())))
    }

    fn entries(&self) -> impl Iterator<Item = (String, Bytes, Bytes)> {
        let entries: Vec<LibraryEntry> =
            serde_json::from_slice(&self.part(LIBRARIES)).unwrap_or_default();
        let mut rest = self.part(LIBRARY_CONTENTS);
        entries.into_iter().map(move |(name, wasm, code)| {
            let mut take = |length: usize| rest.split_to(length.min(rest.len()));
            (name, take(wasm), take(code))
        })
    }

    fn part(&self, part: usize) -> Bytes {
        self.0.file.slice(self.0.layout.parts[part].clone())
    }

    /// Fills `memory` with the initial contents of the interpreter's memory.
    pub(crate) fn begin(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let data = self.0.layout.parts[DATA].clone();
        self.put(memory, data.len(), &[(0, data)])
    }

    /// Fills `memory` with the memory of the image.
    pub(crate) fn restore(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let Layout { memory_bytes, runs, .. } = &self.0.layout;
        self.put(memory, *memory_bytes, runs)
    }

    /// Replaces the first bytes of `memory`, as [`map_over`] does if possible.
    fn put(
        &self,
        memory: v8::Local<'_, v8::WasmMemoryObject>,
        length: usize,
        runs: &[(usize, Range<usize>)],
    ) -> io::Result<()> {
        match &self.0.shared {
            Some(shared) => map_over(memory, length, shared, runs),
            None => copy_over(memory, length, &self.0.file, runs),
        }
    }

    fn verified(file: Bytes, shared: Option<SharedFile>, place: &Place) -> Result<Self, Error> {
        let (path, key) = (place.path(), place.key());
        let wrong = |what: String| {
            let message = format!("image `{}` {what}; {}", path.display(), place.remedy());
            Error::new(ErrorKind::Assets, message)
        };
        let Some((header, contents)) = file.split_at_checked(HEADER) else {
            return Err(wrong(format!("ends after {} bytes, inside its header", file.len())));
        };
        let (found_key, found_digest) = header[MAGIC.len()..].split_at(32);
        let digest = digest(contents);
        let expected = blake3::Hash::from_slice(found_digest).map_err(|e| wrong(e.to_string()))?;
        if digest != expected {
            return Err(wrong(format!("has the wrong BLAKE3 (expected {expected}, got {digest})")));
        }
        if !header.starts_with(MAGIC) || found_key != key.as_bytes() {
            return Err(wrong(format!("is not the one of key {key}")));
        }
        Self::new(file, shared, Some(path.to_owned()))
            .ok_or_else(|| wrong("is not laid out as an image is".to_owned()))
    }
}

/// Returns a digest over the digests of the chunks, which are computed on all processors.
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
            // If the thread could not start, this one computes its share.
            let digests = thread.ok().and_then(|thread| thread.join().ok());
            add(digests.unwrap_or_else(|| all(share)));
        }
    });
    whole.finalize()
}

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!("image `{}` cannot be used: {error}", path.display());
    Error::new(ErrorKind::Assets, message)
}
