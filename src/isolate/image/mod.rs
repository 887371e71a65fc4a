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
use super::capture::{self, MEMORY_BYTES};
use super::native_code::SharedModules;
use super::restore::{PagesAside, copy_on_write, copy_over, map_over, undo_changes};
use crate::data::error::{Error, ErrorKind};
use crate::image::saved::Pages;
use crate::image::{self, HEADER, ImageFile, ImageLocation};
use crate::support::patience::Patience;
use crate::support::shared_file::SharedFile;

/// What helps when an image was refused for a reason that is gone.
const TRY_AGAIN: &str = "`isolet cache clean images` makes isolet try again";

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
    /// The code of our JavaScript modules.
    pub(crate) module_cache: Vec<u8>,
    /// The code of each dynamic library.
    pub(crate) libraries: Vec<Vec<u8>>,
}

/// An image that interpreters start from; cheap to clone.
#[derive(Clone)]
pub(crate) struct Image(Arc<Contents>);

struct Contents {
    file: Arc<ImageFile>,
    layout: Layout,
    /// The dynamic libraries, in the order in which they were loaded, each with its native code.
    libraries: Vec<(Library, Bytes)>,
}

impl SavedMemory {
    /// Packs a memory.
    pub(crate) fn new(memory: &[u8], config: &str, libraries: Vec<Library>) -> Self {
        let (bytes, config, runs) = (memory.len(), config.to_owned(), layout::runs(memory));
        Self { bytes, config, runs, libraries }
    }

    /// Takes what another process has [encoded](Self::encoded). All of it is the packages' word but
    /// the WebAssembly, which must be known.
    pub(crate) fn received(
        encoded: Vec<u8>,
        is_known: impl Fn(&[u8]) -> bool,
    ) -> Result<Self, String> {
        let encoded = Bytes::from(encoded);
        let layout = layout::layout(HEADER, &encoded).ok_or("it is not laid out as a memory is")?;
        if layout.memory_bytes as u64 > MEMORY_BYTES {
            let needed = layout.memory_bytes;
            return Err(format!("its memory: limit {MEMORY_BYTES} bytes, needed {needed}"));
        }
        let part = |part| encoded.slice(layout.part(part));
        let config = String::from_utf8(part(Part::Config).into());
        let config = config.map_err(|error| format!("its configuration: {error}"))?;
        let found = libraries(&part(Part::Libraries), part(Part::LibraryContents));
        let libraries: Vec<Library> = found.into_iter().map(|(library, _)| library).collect();
        if let Some(unknown) = libraries.iter().find(|library| !is_known(&library.wasm)) {
            return Err(format!("no package has the library `{}`", unknown.name));
        }
        let run = |(at, run): &(usize, Range<usize>)| (*at, encoded[run.clone()].to_vec());
        let runs = layout.runs.iter().map(run).collect();
        Ok(Self { bytes: layout.memory_bytes, config, runs, libraries })
    }

    /// Encodes it for another process: as an image without the files of the assets.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let (libraries, contents) = self.libraries(&Compiled::default());
        let mut parts: [&[u8]; PARTS] = [&[]; PARTS];
        parts[Part::Config as usize] = self.config.as_bytes();
        parts[Part::Libraries as usize] = &libraries;
        parts[Part::LibraryContents as usize] = &contents;
        layout::assemble(HEADER, self.bytes, parts, &self.runs)
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
        parts[Part::ModuleCache as usize] = &compiled.module_cache;
        let identity = self.identity();
        parts[Part::Identity as usize] = &identity;
        let (libraries, contents) = self.libraries(compiled);
        (parts[Part::Libraries as usize], parts[Part::LibraryContents as usize]) =
            (&libraries, &contents);
        let mut file = layout::assemble(HEADER, self.bytes, parts, &self.runs);
        image::write_header(&mut file, key);
        file
    }

    /// Returns a digest of what interpreters of the image start with in their memory.
    fn identity(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        add(&self.bytes.to_le_bytes());
        add(self.config.as_bytes());
        for (at, run) in &self.runs {
            add(&at.to_le_bytes());
            add(run);
        }
        hasher.finalize().into()
    }

    /// Returns the image without all of the compiled code.
    fn draft(
        &self,
        location: &ImageLocation,
        files: &Files,
        compiled: &Compiled,
    ) -> Result<Image, Error> {
        let draft = self.file(location.key(), files, compiled);
        Image::new(ImageFile::in_memory(draft).into())
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

impl Compiled {
    /// Encodes the native code of libraries for another process.
    pub(crate) fn encode_libraries(libraries: &[Vec<u8>]) -> Vec<u8> {
        let entries: Vec<LibraryEntry> =
            libraries.iter().map(|code| (String::new(), 0, code.len())).collect();
        let (entries, contents) =
            (serde_json::to_vec(&entries).unwrap_or_default(), libraries.concat());
        let mut parts: [&[u8]; PARTS] = [&[]; PARTS];
        parts[Part::Libraries as usize] = &entries;
        parts[Part::LibraryContents as usize] = &contents;
        layout::assemble(HEADER, 0, parts, &[])
    }

    /// Takes the native code of libraries that another process has encoded.
    pub(crate) fn decode_libraries(encoded: Vec<u8>) -> Result<Vec<Vec<u8>>, String> {
        let encoded = Bytes::from(encoded);
        let layout = layout::layout(HEADER, &encoded).ok_or("it is not laid out as code is")?;
        let part = |part| encoded.slice(layout.part(part));
        let found = libraries(&part(Part::Libraries), part(Part::LibraryContents));
        Ok(found.into_iter().map(|(_, code)| code.into()).collect())
    }
}

/// Why the part of an image with packages was not made.
pub(crate) enum Unmade {
    /// It could not be tried.
    Untried(Error),
    /// It was tried, and would fail again.
    Failed(Error),
    /// It took too long, or nobody waits for it any more.
    Late(Error),
}

/// Boots the interpreters that an image with packages is made of.
pub(crate) trait Maker {
    /// Imports the packages in an interpreter with CPython's code of `base`, the image without
    /// packages. Returns its memory.
    fn memory(&self, base: &Image, patience: &Patience) -> Result<SavedMemory, Unmade>;
    /// Runs an interpreter of a draft of the image. Returns the native code of its libraries, in
    /// their order.
    fn libraries(&self, draft: Image, patience: &Patience) -> Result<Vec<Vec<u8>>, Unmade>;
}

/// Makes the image of the assets in `dir`, with packages if there is a `maker` for it, and stores
/// it at `location`. One that another process has made meanwhile is taken.
///
/// An image that cannot be stored serves this process only. One that is there and cannot be used is
/// an error unless `replace_damaged`. `tell` gets a sentence if another process takes long, and
/// `patience` is for the packages.
pub(crate) fn make(
    dir: &Path,
    location: &ImageLocation,
    maker: Option<&dyn Maker>,
    replace_damaged: bool,
    tell: &dyn Fn(&str),
    patience: &Patience,
) -> Result<ImageFile, Error> {
    // An image with packages has everything of the one without.
    let with_packages = match maker {
        Some(maker) => {
            let location = location.without_packages();
            let base = match ImageFile::find(&location)? {
                Some(base) => base,
                None => make(dir, &location, None, replace_damaged, tell, patience)?,
            };
            Some((maker, Image::new(base.into())?))
        }
        None => None,
    };
    // Of several that start at once, one makes the image and the others find it.
    let _lock = location.acquire_build_lock(tell, patience)?;
    match ImageFile::find(location) {
        Ok(Some(image)) => return Ok(image),
        Err(error) if !replace_damaged => return Err(error),
        Ok(None) | Err(_) => {}
    }
    if let Some((maker, base)) = with_packages {
        if let Some(reason) = location.refusal() {
            return Err(Error::new(ErrorKind::Start, reason).with_hint(TRY_AGAIN));
        }
        return build_with_packages(location, &base, maker, &patience.anew()).map_err(|unmade| {
            match unmade {
                Unmade::Untried(error) | Unmade::Late(error) => error,
                Unmade::Failed(error) => {
                    location.refuse(&error.to_string());
                    error
                }
            }
        });
    }
    let assets = Assets::open(dir).map_err(Error::of_assets)?;
    build(location, &Files::new(&assets)?, &SharedModules::default())
}

/// Makes the image of these files, and stores it if it can.
pub(super) fn build(
    location: &ImageLocation,
    files: &Files,
    modules: &SharedModules,
) -> Result<ImageFile, Error> {
    let saved = capture::memory_of(files.clone(), modules)?;
    let draft = saved.draft(location, files, &Compiled::default())?;
    let compiled = capture::compiled(draft, modules)?;
    Ok(store(location, saved.file(location.key(), files, &compiled)))
}

/// Makes an image with packages, and stores it if it can. It takes CPython's native code from
/// `base`, the one without.
fn build_with_packages(
    location: &ImageLocation,
    base: &Image,
    maker: &dyn Maker,
    patience: &Patience,
) -> Result<ImageFile, Unmade> {
    let files = base.files();
    let saved = maker.memory(base, patience)?;
    let mut compiled = Compiled {
        native_code: base.part(Part::NativeCode).into(),
        script_cache: base.part(Part::ScriptCache).into(),
        module_cache: base.part(Part::ModuleCache).into(),
        libraries: Vec::new(),
    };
    let draft = saved.draft(location, &files, &compiled).map_err(Unmade::Failed)?;
    compiled.libraries = maker.libraries(draft, patience)?;
    Ok(store(location, saved.file(location.key(), &files, &compiled)))
}

fn store(location: &ImageLocation, file: Vec<u8>) -> ImageFile {
    let stored = location.store(&file).map_err(|error| error.to_string()).and_then(|()| {
        let found = ImageFile::find(location).map_err(|error| error.to_string())?;
        found.ok_or_else(|| "it is gone at once".to_owned())
    });
    stored.unwrap_or_else(|reason| ImageFile::unstored(file, reason))
}

/// Reads the list of libraries, with the contents that follow one another.
fn libraries(list: &[u8], mut contents: Bytes) -> Vec<(Library, Bytes)> {
    let entries: Vec<LibraryEntry> = serde_json::from_slice(list).unwrap_or_default();
    let mut take = |length: usize| contents.split_to(length.min(contents.len()));
    let read = entries.into_iter().map(|(name, wasm, code)| {
        let wasm = take(wasm);
        (Library { name, wasm }, take(code))
    });
    read.collect()
}

impl Image {
    /// Takes a verified file.
    pub(crate) fn new(file: Arc<ImageFile>) -> Result<Self, Error> {
        let layout = layout::layout(HEADER, file.bytes()).ok_or_else(|| {
            Error::new(ErrorKind::Assets, "the image is not laid out as an image is")
        })?;
        let libraries = libraries(
            &file.bytes().slice(layout.part(Part::Libraries)),
            file.bytes().slice(layout.part(Part::LibraryContents)),
        );
        Ok(Self(Arc::new(Contents { file, layout, libraries })))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.layout.memory_bytes
    }

    /// Returns a digest of the memory. A session that is saved as a change of it can be restored
    /// only over the same one.
    pub(crate) fn identity(&self) -> [u8; 32] {
        self.part(Part::Identity).as_ref().try_into().unwrap_or_default()
    }

    /// Returns the bytes of the file, and the runs of the memory: for each its place in the memory
    /// and its place in the file.
    pub(crate) fn memory(&self) -> Pages<'_> {
        (self.0.file.bytes(), &self.0.layout.runs)
    }

    /// Returns the files that an isolate needs.
    pub(crate) fn files(&self) -> Files {
        Files {
            asm_wasm: self.part(Part::Wasm),
            data: self.part(Part::Data),
            asm_mjs: self.part(Part::Module),
            stdlib_zip: self.part(Part::Stdlib),
            exports: self.part(Part::Exports),
        }
    }

    /// Returns the contents of a buffer with the standard library. Its user may write to it.
    pub(crate) fn stdlib(&self) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
        match self.0.file.shared() {
            Some(shared) => copy_on_write(shared, self.0.layout.part(Part::Stdlib)),
            None => Ok(v8::ArrayBuffer::new_backing_store_from_vec(self.part(Part::Stdlib).into())),
        }
    }

    /// Returns the configuration that our JavaScript needs in addition to the memory.
    pub(crate) fn config(&self) -> Bytes {
        self.part(Part::Config)
    }

    /// Returns CPython's native code, if there is any.
    pub(crate) fn native_code(&self) -> Option<Bytes> {
        Some(self.part(Part::NativeCode)).filter(|code| !code.is_empty())
    }

    /// Returns the code that V8 compiled from Pyodide's JavaScript, if there is any.
    pub(crate) fn script_cache(&self) -> Option<Bytes> {
        Some(self.part(Part::ScriptCache)).filter(|cache| !cache.is_empty())
    }

    /// Returns the code that V8 compiled from our JavaScript modules.
    pub(crate) fn module_cache(&self) -> Bytes {
        self.part(Part::ModuleCache)
    }

    /// Returns the dynamic libraries, in the order in which they were loaded.
    pub(crate) fn libraries(&self) -> Vec<Library> {
        self.0.libraries.iter().map(|(library, _)| library.clone()).collect()
    }

    /// Returns the library of this name, and its native code if there is any.
    pub(crate) fn library(&self, wanted: &str) -> Option<(Library, Option<Bytes>)> {
        let (library, code) =
            self.0.libraries.iter().find(|(library, _)| library.name == wanted)?;
        Some((library.clone(), Some(code.clone()).filter(|code| !code.is_empty())))
    }

    fn part(&self, part: Part) -> Bytes {
        self.0.file.bytes().slice(self.0.layout.part(part))
    }

    /// Fills `memory` with the initial contents of the interpreter's memory.
    pub(crate) fn begin(&self, memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
        let data = self.0.layout.part(Part::Data);
        self.put(memory, data.len(), &[(0, data)])
    }

    /// Fills `memory` with the memory of the image. Copies it unless files `may_be_mapped`.
    pub(crate) fn restore(
        &self,
        memory: v8::Local<'_, v8::WasmMemoryObject>,
        may_be_mapped: bool,
    ) -> io::Result<()> {
        let Layout { memory_bytes, runs, .. } = &self.0.layout;
        if may_be_mapped {
            self.put(memory, *memory_bytes, runs)
        } else {
            copy_over(memory, *memory_bytes, self.0.file.bytes(), runs)
        }
    }

    /// Puts the pages of its memory aside, for [`reset`](Self::reset) in copies of this process.
    pub(crate) fn pages_aside(&self) -> io::Result<Option<PagesAside>> {
        self.0.file.shared().map(|file| PagesAside::new(file, &self.0.layout.runs)).transpose()
    }

    /// Undoes all that was written to `memory` since [`restore`](Self::restore), which was called
    /// with the same `may_be_mapped`. Takes the pages that were put `aside`, if there are any.
    pub(crate) fn reset(
        &self,
        memory: v8::Local<'_, v8::WasmMemoryObject>,
        may_be_mapped: bool,
        aside: Option<PagesAside>,
    ) -> io::Result<()> {
        let Layout { memory_bytes, runs, .. } = &self.0.layout;
        if let Some(aside) = aside {
            return aside.put_back(memory, runs);
        }
        if may_be_mapped && self.0.file.shared().is_some() {
            return undo_changes(memory);
        }
        copy_over(memory, *memory_bytes, self.0.file.bytes(), runs)?;
        let store = memory.buffer().get_backing_store();
        for cell in store.get(*memory_bytes..).unwrap_or_default() {
            cell.set(0);
        }
        Ok(())
    }

    /// Returns the file for other processes to map, if the system can share it.
    pub(crate) fn shared(&self) -> Option<&SharedFile> {
        self.0.file.shared()
    }

    /// Replaces the first bytes of `memory`, as [`map_over`] does if possible.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A page of WebAssembly's, which is a whole number of any system's.
    const PAGE: usize = 64 << 10;

    fn memory() -> SavedMemory {
        let mut memory = vec![0; 4 * PAGE];
        memory[PAGE] = 1;
        let library = Library { name: "a.so".to_owned(), wasm: Bytes::from_static(b"known") };
        SavedMemory::new(&memory, "{}", vec![library])
    }

    fn received(encoded: Vec<u8>) -> Result<SavedMemory, String> {
        SavedMemory::received(encoded, |wasm| wasm == b"known")
    }

    #[test]
    fn a_memory_of_another_process_is_taken_as_it_was_sent() {
        let (sent, got) = (memory(), received(memory().encoded()).unwrap());
        assert_eq!((got.bytes, &got.config, &got.runs), (sent.bytes, &sent.config, &sent.runs));
        let [library] = &got.libraries[..] else { panic!("one library was sent") };
        assert_eq!((library.name.as_str(), &library.wasm[..]), ("a.so", &b"known"[..]));
    }

    #[test]
    fn a_memory_with_a_library_that_no_package_has_is_refused() {
        let mut unknown = memory();
        unknown.libraries[0].wasm = Bytes::from_static(b"other");
        let error = received(unknown.encoded()).err().unwrap();
        assert_eq!(error, "no package has the library `a.so`");
    }

    #[test]
    fn a_memory_that_is_too_large_or_not_one_is_refused() {
        let large = SavedMemory { bytes: 1 << 40, ..memory() };
        let error = received(large.encoded()).err().unwrap();
        assert_eq!(error, "its memory: limit 1073741824 bytes, needed 1099511627776");
        let whole = memory().encoded();
        for length in (0..whole.len()).step_by(101) {
            assert!(received(whole[..length].to_vec()).is_err(), "{length}");
        }
        let no_text = SavedMemory { config: String::new(), ..memory() };
        let mut encoded = no_text.encoded();
        let of_config = HEADER + size_of::<u64>();
        encoded[of_config..of_config + 8].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(received(encoded).is_err());
    }

    #[test]
    fn native_code_of_another_process_is_taken_in_its_order() {
        let codes = [b"one".to_vec(), Vec::new(), b"three".to_vec()];
        let encoded = Compiled::encode_libraries(&codes);
        assert_eq!(Compiled::decode_libraries(encoded.clone()).unwrap(), codes);
        assert!(Compiled::decode_libraries(encoded[..encoded.len() - 1].to_vec()).is_err());
    }
}
