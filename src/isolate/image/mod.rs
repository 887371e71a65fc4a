//! What an isolate takes from an image, and how an image is made.

mod layout;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use deno_core::v8;
use isolet_pyodide_assets::{Assets, Digest};

use self::layout::{Layout, PARTS, Part};
use super::Files;
use super::capture;
use super::native_code::SharedModules;
use super::restore::{copy_on_write, copy_over, map_over};
use crate::data::error::{Error, ErrorKind};
use crate::image::{self, HEADER, ImageFile, Place};
use crate::packages::Preload;

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

/// An image that interpreters start from; cheap to clone.
#[derive(Clone)]
pub(crate) struct Image(Arc<Contents>);

struct Contents {
    file: Arc<ImageFile>,
    layout: Layout,
}

impl SavedMemory {
    /// Packs `memory`.
    pub(crate) fn new(memory: &[u8], config: &str, libraries: Vec<Library>) -> Self {
        let (bytes, config, runs) = (memory.len(), config.to_owned(), layout::runs(memory));
        Self { bytes, config, runs, libraries }
    }

    fn file(&self, key: Digest, files: &Files, compiled: &Compiled) -> Vec<u8> {
        let mut parts: [&[u8]; PARTS] = [&[]; PARTS];
        parts[Part::Config as usize] = self.config.as_bytes();
        parts[Part::Wasm as usize] = &files.asm_wasm;
        parts[Part::Data as usize] = &files.data;
        parts[Part::Module as usize] = &files.asm_mjs;
        parts[Part::Stdlib as usize] = &files.stdlib_zip;
        parts[Part::Exports as usize] = &files.exports;
        parts[Part::NativeCode as usize] = &compiled.native_code;
        parts[Part::ScriptCache as usize] = &compiled.script_cache;
        let (libraries, contents) = self.libraries(compiled);
        (parts[Part::Libraries as usize], parts[Part::LibraryContents as usize]) =
            (&libraries, &contents);
        let mut file = layout::assemble(HEADER, self.bytes, parts, &self.runs);
        image::write_header(&mut file, key);
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

/// Makes the image of the assets in `dir` with these packages, and stores it at `place`. One that
/// another process has made meanwhile is taken.
///
/// An image that cannot be stored serves this process only. One that is there and cannot be used is
/// an error unless `replace_damaged`.
pub(crate) fn make(
    dir: &Path,
    place: &Place,
    preload: &Preload,
    replace_damaged: bool,
) -> Result<ImageFile, Error> {
    // Of several that start at once, one makes the image and the others find it.
    let _turn = place.turn();
    match ImageFile::find(place) {
        Ok(Some(image)) => return Ok(image),
        Err(error) if !replace_damaged => return Err(error),
        Ok(None) | Err(_) => {}
    }
    let assets = Assets::open(dir).map_err(|e| Error::new(ErrorKind::Assets, e.to_string()))?;
    build(place, &Files::new(&assets)?, &SharedModules::default(), preload)
}

/// Makes the image of these files, and stores it if it can.
pub(super) fn build(
    place: &Place,
    files: &Files,
    modules: &SharedModules,
    preload: &Preload,
) -> Result<ImageFile, Error> {
    let key = place.key();
    let saved = capture::memory(files.clone(), preload)?;
    let draft = saved.file(key, files, &Compiled::default());
    let compiled = capture::compiled(Image::new(ImageFile::in_memory(draft).into())?, modules)?;
    let file = saved.file(key, files, &compiled);
    let stored = place.store(&file).ok().and_then(|()| ImageFile::find(place).ok()?);
    Ok(stored.unwrap_or_else(|| ImageFile::in_memory(file)))
}

impl Image {
    /// Takes a verified file.
    pub(crate) fn new(file: Arc<ImageFile>) -> Result<Self, Error> {
        let layout = layout::layout(HEADER, file.bytes()).ok_or_else(|| {
            Error::new(ErrorKind::Assets, "the image is not laid out as an image is")
        })?;
        Ok(Self(Arc::new(Contents { file, layout })))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.layout.memory_bytes
    }

    /// What an isolate is made of.
    pub(crate) fn files(&self) -> Files {
        Files {
            asm_wasm: self.part(Part::Wasm),
            data: self.part(Part::Data),
            asm_mjs: self.part(Part::Module),
            stdlib_zip: self.part(Part::Stdlib),
            exports: self.part(Part::Exports),
        }
    }

    /// The contents of a buffer for the standard library, which whoever has it may write to.
    pub(crate) fn stdlib(&self) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
        match self.0.file.shared() {
            Some(shared) => copy_on_write(shared, self.0.layout.part(Part::Stdlib)),
            None => Ok(v8::ArrayBuffer::new_backing_store_from_vec(self.part(Part::Stdlib).into())),
        }
    }

    /// What our JavaScript has to know besides the memory.
    pub(crate) fn config(&self) -> Bytes {
        self.part(Part::Config)
    }

    /// CPython's native code, if there is any.
    pub(crate) fn native_code(&self) -> Option<Bytes> {
        Some(self.part(Part::NativeCode)).filter(|code| !code.is_empty())
    }

    /// What V8 has compiled of Pyodide's JavaScript, if there is any.
    pub(crate) fn script_cache(&self) -> Option<Bytes> {
        Some(self.part(Part::ScriptCache)).filter(|cache| !cache.is_empty())
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
            serde_json::from_slice(&self.part(Part::Libraries)).unwrap_or_default();
        let mut rest = self.part(Part::LibraryContents);
        entries.into_iter().map(move |(name, wasm, code)| {
            let mut take = |length: usize| rest.split_to(length.min(rest.len()));
            (name, take(wasm), take(code))
        })
    }

    fn part(&self, part: Part) -> Bytes {
        self.0.file.bytes().slice(self.0.layout.part(part))
    }

    /// Makes `memory` what the interpreter's begins with.
    pub(crate) fn begin(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let data = self.0.layout.part(Part::Data);
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
        match self.0.file.shared() {
            Some(shared) => map_over(memory, length, shared, runs),
            None => copy_over(memory, length, self.0.file.bytes(), runs),
        }
    }
}
