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
mod native_code;
mod ops;
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

use std::sync::Arc;

use bytes::Bytes;
use isolet_pyodide_assets::Assets;

use crate::data::error::{Error, ErrorKind};
use crate::image::{ImageFile, JAVASCRIPT};
use crate::protocol::{Host, Inbox};
use crate::support::shared_file::SharedFile;
use control::IsolateControl;
pub(crate) use control::lost_threads;
use image::Image;
pub(crate) use image::make as make_image;
use native_code::SharedModules;
use runtime::Parts;
pub(crate) use thread::{Booted, on_isolate_thread};
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

/// Boots an interpreter from a file of [`Source::shared_file`] on this thread, in a process that
/// has no engine.
pub(crate) fn boot_of_image(
    image: SharedFile,
    host: Arc<dyn Host>,
    inbox: Box<dyn Inbox>,
    max_memory_bytes: u64,
    max_report_bytes: u64,
) -> Result<Booted, String> {
    let unusable = |reason: &dyn std::fmt::Display| {
        format!("the interpreter cannot be taken from its image: {reason}")
    };
    let image = ImageFile::received(image).map_err(|error| unusable(&error))?;
    let image = Image::new(image.into()).map_err(|error| unusable(&error))?;
    let (files, modules) = (image.files(), SharedModules::default());
    let parts = Parts {
        files,
        modules,
        host,
        inbox,
        max_memory_bytes,
        max_report_bytes,
        preload: Vec::new(),
    };
    Booted::boot(parts, image, IsolateControl::new())
}

/// The directory of the pinned release, for tests of what is made of it.
#[cfg(test)]
fn assets_dir() -> std::path::PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let named = std::env::var_os(crate::support::cache_dir::ASSETS_VARIABLE);
    let checkout = concat!(env!("CARGO_MANIFEST_DIR"), "/pyodide-assets/dist");
    named.unwrap_or_else(|| checkout.into()).into()
}
