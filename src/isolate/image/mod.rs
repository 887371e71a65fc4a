//! The image that sessions start from: the memory of a booted CPython with our glue and the common
//! modules imported, taken before it had any entropy, input or environment of its own, the files
//! that an isolate is made of besides, and what V8 had compiled of them.
//!
//! A file of it belongs to exactly the assets, the glue and the V8 it was made with: they make its
//! key and with it its name. Its own digest is checked before it is used. Only pages that are not
//! all zero are stored.

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
/// The magic, the key and the digest of what follows.
const HEADER: usize = MAGIC.len() + 64;

/// So many bytes are digested at once.
const PIECE_BYTES: usize = 1 << 20;

/// The parts in front of the pages.
const CONFIG: usize = 0;
const WASM: usize = 1;
const MODULE: usize = 2;
const STDLIB: usize = 3;
const EXPORTS: usize = 4;
const NATIVE_CODE: usize = 5;
const SCRIPT_CACHE: usize = 6;
/// Which dynamic libraries there are, and their contents one after the other.
const LIBRARIES: usize = 7;
const LIBRARY_CONTENTS: usize = 8;
const DATA: usize = 9;

/// Memory as the image-making isolate left it.
pub(crate) struct SavedMemory {
    bytes: usize,
    config: String,
    runs: Vec<(usize, Vec<u8>)>,
    libraries: Vec<Library>,
}

/// A dynamic library that is loaded in an image.
#[derive(Clone)]
pub(crate) struct Library {
    /// Its path in the guest.
    pub(crate) name: String,
    pub(crate) wasm: Bytes,
}

/// What an image says of a library: its name, and the bytes of its WebAssembly and of its native
/// code.
type LibraryEntry = (String, usize, usize);

/// Code that V8 has compiled, in its own formats. Empty where there is none.
#[derive(Default)]
pub(crate) struct Compiled {
    /// Of CPython.
    pub(crate) native_code: Vec<u8>,
    /// Of Pyodide's JavaScript.
    pub(crate) script_cache: Vec<u8>,
    /// Of each dynamic library.
    pub(crate) libraries: Vec<Vec<u8>>,
}

/// A verified image; cheap to clone.
#[derive(Clone)]
pub(crate) struct Image(Arc<Contents>);

struct Contents {
    path: Option<PathBuf>,
    file: Bytes,
    layout: Layout,
    /// The same file where several can map it: sessions, and processes.
    shared: Option<SharedFile>,
}

impl SavedMemory {
    /// Packs `memory`.
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

    /// The parts about libraries.
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
    /// Loads the image of this place, if there is one.
    pub(crate) fn find(place: &Place) -> Result<Option<Self>, Error> {
        let path = place.path();
        let opened = store::open_own(path).and_then(|file| {
            let shared = SharedFile::of_file(&file)?;
            Ok((shared.map()?, shared))
        });
        match opened {
            Ok((file, shared)) => Self::verified(file, Some(shared), place).map(Some),
            // Where it cannot be shared every session copies the pages.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let file = fs::read(path).map_err(|error| unusable(path, &error))?;
                Self::verified(file.into(), None, place).map(Some)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(path, &error)),
        }
    }

    /// Makes the image of this place, with `preload` in it, and stores it there.
    ///
    /// Where it cannot be stored it serves this process only.
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

    /// An image that was verified before, in a process that has it from there.
    pub(crate) fn received(shared: SharedFile) -> io::Result<Self> {
        let file = shared.map()?;
        Self::new(file, Some(shared), None).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// An image that is in no directory.
    fn in_memory(file: Vec<u8>) -> Result<Self, Error> {
        let shared =
            SharedFile::new("isolet-image", &file).and_then(|blob| Ok((blob.map()?, blob)));
        let image = match shared {
            Ok((mapped, blob)) => Self::new(mapped, Some(blob), None),
            Err(_) => Self::new(file.into(), None, None),
        };
        image.ok_or_else(|| Error::new(ErrorKind::Start, "the image is not laid out as one"))
    }

    /// An image of this file; `None` if it is not laid out as one.
    fn new(file: Bytes, shared: Option<SharedFile>, path: Option<PathBuf>) -> Option<Self> {
        let layout = layout(HEADER, &file)?;
        Some(Self(Arc::new(Contents { path, file, layout, shared })))
    }

    /// What [`received`](Self::received) wants, if it can be shared.
    pub(crate) fn shared(&self) -> Option<&SharedFile> {
        self.0.shared.as_ref()
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.layout.memory_bytes
    }

    /// What an isolate is made of.
    pub(crate) fn files(&self) -> Files {
        Files {
            asm_wasm: self.part(WASM),
            data: self.part(DATA),
            asm_mjs: self.part(MODULE),
            stdlib_zip: self.part(STDLIB),
            exports: self.part(EXPORTS),
        }
    }

    /// The contents of a buffer for the standard library, which whoever has it may write to.
    pub(crate) fn stdlib(&self) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
        match &self.0.shared {
            Some(shared) => copy_on_write(shared, self.0.layout.parts[STDLIB].clone()),
            None => Ok(v8::ArrayBuffer::new_backing_store_from_vec(self.part(STDLIB).into())),
        }
    }

    /// What our JavaScript has to know besides the memory.
    pub(crate) fn config(&self) -> Bytes {
        self.part(CONFIG)
    }

    /// CPython's native code, if there is any.
    pub(crate) fn native_code(&self) -> Option<Bytes> {
        Some(self.part(NATIVE_CODE)).filter(|code| !code.is_empty())
    }

    /// What V8 has compiled of Pyodide's JavaScript, if there is any.
    pub(crate) fn script_cache(&self) -> Option<Bytes> {
        Some(self.part(SCRIPT_CACHE)).filter(|cache| !cache.is_empty())
    }

    /// The dynamic libraries, in the order in which they were loaded.
    pub(crate) fn libraries(&self) -> Vec<Library> {
        self.entries().map(|(name, wasm, _)| Library { name, wasm }).collect()
    }

    /// The library of this name, and its native code if there is any.
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

    /// Makes `memory` what the interpreter's begins with.
    pub(crate) fn begin(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let data = self.0.layout.parts[DATA].clone();
        self.put(memory, data.len(), &[(0, data)])
    }

    /// Makes `memory` the image's.
    pub(crate) fn restore(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let Layout { memory_bytes, runs, .. } = &self.0.layout;
        self.put(memory, *memory_bytes, runs)
    }

    /// Replaces the first bytes of `memory`, as [`map_over`] does if it can.
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

/// The digest of the digests of pieces of the contents, which are made on as many processors as
/// there are.
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

fn unusable(path: &Path, error: &io::Error) -> Error {
    let message = format!("image `{}` cannot be used: {error}", path.display());
    Error::new(ErrorKind::Assets, message)
}
