//! The one extension: our ops and our JavaScript.

use std::borrow::Cow;
use std::sync::Arc;

use deno_core::{Extension, ExtensionFileSource, ascii_str_include};

use super::state::State;
use super::{adapt, builtin_ops, capture, ops};

deno_core::extension!(
    isolet,
    ops = [
        ops::stdio::op_isolet_write,
        ops::stdio::op_isolet_stdin,
        ops::stdio::op_isolet_console,
        ops::time::op_isolet_now,
        ops::time::op_isolet_wall_clock,
        ops::time::op_isolet_tick,
        ops::time::op_isolet_timer,
        ops::entropy::op_isolet_entropy,
        ops::text::op_isolet_utf8_length,
        ops::text::op_isolet_utf8_encode,
        ops::text::op_isolet_utf8_encode_into,
        ops::text::op_isolet_decode,
        ops::boot::op_isolet_entry_points,
        ops::boot::op_isolet_wasm_module,
        ops::boot::op_isolet_exports,
        ops::boot::op_isolet_preloaded,
        ops::boot::op_isolet_library,
        ops::boot::op_isolet_library_keep,
        ops::boot::op_isolet_stdlib,
        ops::boot::op_isolet_python_sources,
        ops::boot::op_isolet_image_length,
        ops::boot::op_isolet_image_config,
        ops::boot::op_isolet_image_restore,
        ops::boot::op_isolet_image_save,
        ops::boot::op_isolet_watch_signals,
        ops::boot::op_isolet_memory_begin,
        ops::memory::op_isolet_memory_adopt,
        ops::memory::op_isolet_memory_grow,
        ops::memory::op_isolet_memory_make,
        ops::memory::op_isolet_memory_take,
        ops::run::op_isolet_frame_take,
        ops::run::op_isolet_report,
        ops::run::op_isolet_exited,
        ops::run::op_isolet_died,
        ops::run::op_isolet_interrupted,
        ops::net::op_isolet_net_check,
        ops::net::op_isolet_net_start,
        ops::net::op_isolet_net_send,
        ops::net::op_isolet_net_read,
        ops::net::op_isolet_net_close,
        ops::net::op_isolet_net_head,
        ops::net::op_isolet_net_chunk,
        ops::net::op_isolet_fetch,
        ops::file::op_isolet_mount_points,
        ops::file::op_isolet_file_stat_at,
        ops::file::op_isolet_file_stat,
        ops::file::op_isolet_file_open,
        ops::file::op_isolet_file_close,
        ops::file::op_isolet_file_read,
        ops::file::op_isolet_file_write,
        ops::file::op_isolet_file_resize,
        ops::file::op_isolet_file_resize_at,
        ops::file::op_isolet_file_sync,
        ops::file::op_isolet_file_list,
        ops::file::op_isolet_file_make_directory,
        ops::file::op_isolet_file_remove_directory,
        ops::file::op_isolet_file_remove,
        ops::file::op_isolet_file_rename,
        ops::file::op_isolet_file_link,
        ops::file::op_isolet_file_read_link,
        ops::file::op_isolet_file_times,
        ops::file::op_isolet_file_mode,
        ops::tool::op_isolet_import,
        ops::tool::op_isolet_tool_call,
        ops::tool::op_isolet_tool_block,
        ops::tool::op_isolet_tool_soon,
        ops::tool::op_isolet_tool_wait,
        ops::tool::op_isolet_tool_take,
        ops::tool::op_isolet_tool_cancel,
        ops::tool::op_isolet_submit,
        ops::wasm::op_isolet_wasm_compile,
    ],
    esm_entry_point = "ext:isolet/session.js",
    options = { state: State },
    state = |state, options| state.put(options.state),
);

/// Our Python half, in load order. It is part of the memory image.
pub(crate) const PYTHON_SOURCES: [(&str, &str); 20] = [
    ("errnos", include_str!("../../js/py/errnos.py")),
    ("values", include_str!("../../js/py/values.py")),
    ("errors", include_str!("../../js/py/errors.py")),
    ("waits", include_str!("../../js/py/waits.py")),
    ("additions", include_str!("../../js/py/additions.py")),
    ("zone", include_str!("../../js/py/zone.py")),
    ("locks", include_str!("../../js/py/locks.py")),
    ("tools", include_str!("../../js/py/tools.py")),
    ("thread_data", include_str!("../../js/py/thread_data.py")),
    ("threads", include_str!("../../js/py/threads.py")),
    ("variables", include_str!("../../js/py/variables.py")),
    ("completion", include_str!("../../js/py/completion.py")),
    ("exchange", include_str!("../../js/py/exchange.py")),
    ("framing", include_str!("../../js/py/framing.py")),
    ("sockets", include_str!("../../js/py/sockets.py")),
    ("clients", include_str!("../../js/py/clients.py")),
    ("packages", include_str!("../../js/py/packages.py")),
    ("files", include_str!("../../js/py/files.py")),
    ("programs", include_str!("../../js/py/programs.py")),
    ("session", include_str!("../../js/py/session.py")),
];

/// Files of `js/` as modules of the extension.
macro_rules! modules {
    ($($file:literal),* $(,)?) => {
        [$(ExtensionFileSource::new(
            concat!("ext:isolet/", $file),
            ascii_str_include!(concat!("../../js/", $file)),
        )),*]
    };
}

/// Our JavaScript. Imports decide the order in which the modules run, from `session.js` on; the
/// order of this list means nothing.
static MODULES: [ExtensionFileSource; 17] = modules![
    "buffers.js",
    "calls.js",
    "fetch.js",
    "file_space.js",
    "frames.js",
    "globals.js",
    "libraries.js",
    "linking.js",
    "local_time.js",
    "lockdown.js",
    "mounts.js",
    "parking.js",
    "pyodide.js",
    "session.js",
    "stdio.js",
    "suspension.js",
    "wasm.js",
];

/// Makes the extension for one isolate. Its JavaScript is part of the binary: `deno_core`'s own
/// list of files would be read from the checkout at run time.
pub(crate) fn extension(state: State) -> Extension {
    let mut extension = isolet::init(state);
    extension.esm_files = Cow::Borrowed(&MODULES);
    builtin_ops::replace(&mut extension);
    extension
}

/// Makes an extension of our ops alone.
#[cfg(test)]
pub(crate) fn only_ops(state: State) -> Extension {
    let mut extension = isolet::init(state);
    extension.esm_files = Cow::Borrowed(&[]);
    extension.esm_entry_point = None;
    extension
}

/// The names of our ops.
#[cfg(test)]
pub(crate) fn op_names() -> Vec<&'static str> {
    isolet::lazy_init().ops.iter().map(|op| op.name).collect()
}

/// Everything of ours that shapes the memory image.
pub(crate) fn glue_sources() -> impl Iterator<Item = Cow<'static, str>> {
    let ours = PYTHON_SOURCES.iter().map(|(_, source)| *source).chain([
        capture::WARM_UP,
        adapt::RECURSION,
        adapt::ERRNOS,
    ]);
    // Those that are not valid make no image.
    let patches = isolet_pyodide_assets::patches().into_iter().flatten();
    let ours = ours.chain(patches.flat_map(|patch| [patch.find(), patch.replace()]));
    ours.map(Cow::Borrowed).chain(javascript())
}

/// The texts of our JavaScript.
pub(crate) fn javascript() -> impl Iterator<Item = Cow<'static, str>> {
    let modules = MODULES.iter().filter_map(|module| module.load().ok());
    modules.map(|source| Cow::Owned(source.as_str().to_owned()))
}

/// What ops call the host through.
pub(crate) type HostHandle = Arc<dyn crate::protocol::Host>;
