//! V8, Pyodide and the threads that they run on. No other module names V8 or Pyodide.
//!
//! An isolate is made, used and dropped on one thread ([`runtime`]). Only the handle to terminate
//! it leaves that thread. All isolates share the compiled WebAssembly module and start from the
//! same memory image ([`image`]).

mod adapt;
mod allocator;
mod budget;
mod builtin_ops;
mod capture;
mod control;
mod extension;
mod heap;
mod image;
mod inbox;
mod loader;
mod module_cache;
mod native_code;
mod ops;
mod order;
mod pending;
mod platform;
mod relay;
mod restore;
mod runtime;
mod signal;
mod state;
mod stdlib;
mod stoppable;
mod thread;
mod threads;
mod trampoline;
mod turns;

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use isolet_pyodide_assets::Assets;

use crate::data::error::{Error, ErrorKind};
use crate::image::{ImageFile, JAVASCRIPT};
use crate::protocol::{Control, Host, Inbox, Reply};
use crate::support::shared_file::SharedFile;
pub(crate) use capture::{ImageHost, MEMORY_BYTES as IMAGE_MEMORY_BYTES, OnThreads};
use control::IsolateControl;
pub(crate) use control::lost_threads;
pub(crate) use image::{Compiled, Image, Maker, SavedMemory, Unmade, make as make_image};
use native_code::SharedModules;
use runtime::Parts;
pub(crate) use thread::Booted;
#[cfg(target_os = "linux")]
pub(crate) use thread::{Forked, on_isolate_thread};
pub(crate) use threads::Threads;

/// The verified files of an interpreter, in addition to its memory image.
#[derive(Clone)]
pub(crate) struct Files {
    asm_wasm: Bytes,
    /// The initial contents of its memory.
    data: Bytes,
    asm_mjs: Bytes,
    stdlib_zip: Bytes,
    /// The symbols that packages link to.
    exports: Bytes,
}

impl Files {
    fn new(assets: &Assets) -> Result<Self, Error> {
        let (wasm, module) = (assets.asm_wasm(), assets.asm_mjs());
        let adapted =
            adapt::adapted(wasm, module, JAVASCRIPT.iter().map(|(_, text)| (*text).into()))
                .map_err(|message| Error::new(ErrorKind::Assets, message))?;
        let stdlib = stdlib::completed(assets.stdlib_zip()).map_err(|error| {
            let message = format!("`python_stdlib.zip` cannot be added to: {error}");
            Error::new(ErrorKind::Assets, message).with_source(error)
        })?;
        Ok(Self {
            asm_wasm: adapted.asm_wasm.into(),
            data: adapted.data.into(),
            asm_mjs: adapted.asm_mjs.into(),
            stdlib_zip: stdlib.into(),
            exports: adapted.exports.into(),
        })
    }
}

/// Confines the process of an isolate that boots: all that comes from packages is used afterwards.
pub(crate) type Confine = Box<dyn FnOnce(Arc<dyn Control>) -> io::Result<()> + Send>;

/// What an isolate in a process that has no engine is booted with, on the thread that calls.
pub(crate) struct Boot {
    pub(crate) image: SharedFile,
    pub(crate) host: Arc<dyn Host>,
    pub(crate) inbox: Box<dyn Inbox>,
    pub(crate) max_memory_bytes: u64,
    pub(crate) max_report_bytes: u64,
    /// Whether it looks for what it waits for before it sleeps.
    pub(crate) spins: bool,
    /// Whether the process will be copied, with CPython's memory in huge pages.
    pub(crate) is_template: bool,
}

impl Boot {
    /// Boots an interpreter that starts from the image.
    pub(crate) fn of_image(self, confine: Option<Confine>) -> Result<Booted, String> {
        let modules = SharedModules::default();
        let (image, mut parts) = self.parts(|_| modules)?;
        parts.confine = confine;
        Booted::boot(parts, image, IsolateControl::new())
    }

    /// Imports these modules in an interpreter that takes CPython's code from the image, and sends
    /// its memory to the host.
    pub(crate) fn import(self, modules: Vec<String>, confine: Confine) -> Result<Reply, String> {
        let (_, mut parts) = self.parts(capture::code_of)?;
        (parts.preload, parts.confine) = (modules, Some(confine));
        capture::import_for_host(parts)
    }

    /// Compiles what a session of the image runs of its libraries, and sends it to the host.
    pub(crate) fn compile(self, confine: Confine) -> Result<Reply, String> {
        let (image, mut parts) = self.parts(capture::code_of)?;
        parts.confine = Some(confine);
        capture::compile_for_host(parts, &image)
    }

    fn parts(
        self,
        modules: impl FnOnce(&Image) -> SharedModules,
    ) -> Result<(Image, Parts), String> {
        let Self { image, host, inbox, max_memory_bytes, max_report_bytes, spins, is_template } =
            self;
        let unusable = |reason: &dyn std::fmt::Display| {
            format!("the interpreter cannot be taken from its image: {reason}")
        };
        let image = ImageFile::received(image).map_err(|error| unusable(&error))?;
        let image = Image::new(image.into()).map_err(|error| unusable(&error))?;
        let pages_aside = if is_template { image.pages_aside() } else { Ok(None) };
        let pages_aside = pages_aside.map_err(|error| unusable(&error))?;
        let parts = Parts {
            files: image.files(),
            modules: modules(&image),
            host,
            inbox,
            max_memory_bytes,
            max_report_bytes,
            spins,
            preload: Vec::new(),
            confine: None,
            pages_aside,
        };
        Ok((image, parts))
    }
}

/// The directory of the pinned release, for tests of what is made of it.
#[cfg(test)]
fn assets_dir() -> std::path::PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let named = std::env::var_os(crate::support::cache_dir::ASSETS_VARIABLE);
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/pyodide-assets/dist");
    named.unwrap_or_else(|| checkout.into()).into()
}
