//! The only extension: our ops and our JavaScript.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use deno_core::{Extension, ExtensionFileSource, FastStaticString};

use super::state::State;
use super::{builtin_ops, ops};
use crate::image::JAVASCRIPT;

deno_core::extension!(
    isolet,
    ops = [
        ops::stdio::op_isolet_write,
        ops::stdio::op_isolet_write_line,
        ops::stdio::op_isolet_write_part,
        ops::stdio::op_isolet_display,
        ops::stdio::op_isolet_stdin,
        ops::stdio::op_isolet_console,
        ops::time::op_isolet_now,
        ops::time::op_isolet_wall_clock,
        ops::time::op_isolet_tick,
        ops::time::op_isolet_timer,
        ops::time::op_isolet_order,
        ops::time::op_isolet_order_state,
        ops::time::op_isolet_order_resume,
        ops::time::op_isolet_order_steps,
        ops::time::op_isolet_order_expect,
        ops::entropy::op_isolet_entropy,
        ops::text::op_isolet_utf8_length,
        ops::text::op_isolet_utf8_encode,
        ops::text::op_isolet_utf8_encode_into,
        ops::text::op_isolet_decode,
        ops::boot::op_isolet_entry_points,
        ops::boot::op_isolet_wasm_module,
        ops::boot::op_isolet_exports,
        ops::boot::op_isolet_preloaded,
        ops::boot::op_isolet_confine,
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
        ops::shell::op_isolet_shell_module,
        ops::shell::op_isolet_watch_shell,
        ops::shell::op_isolet_shell_interrupted,
        ops::run::op_isolet_frame_take,
        ops::run::op_isolet_report,
        ops::run::op_isolet_exited,
        ops::run::op_isolet_died,
        ops::run::op_isolet_interrupted,
        ops::run::op_isolet_looked_back,
        ops::run::op_isolet_stop_line,
        ops::run::op_isolet_end_look_back,
        ops::run::op_isolet_alarm_set,
        ops::run::op_isolet_alarm_take,
        ops::saved::op_isolet_save_begin,
        ops::saved::op_isolet_save_bytes,
        ops::saved::op_isolet_save_memory,
        ops::saved::op_isolet_save_refused,
        ops::saved::op_isolet_saved_description,
        ops::saved::op_isolet_saved_bytes,
        ops::saved::op_isolet_saved_library,
        ops::saved::op_isolet_saved_memory,
        ops::saved::op_isolet_is_stdlib,
        ops::net::op_isolet_net_check,
        ops::net::op_isolet_net_connect,
        ops::net::op_isolet_net_start,
        ops::net::op_isolet_net_send,
        ops::net::op_isolet_net_read,
        ops::net::op_isolet_net_close,
        ops::net::op_isolet_net_head,
        ops::net::op_isolet_net_chunk,
        ops::net::op_isolet_fetch,
        ops::file::op_isolet_mount_points,
        ops::file::op_isolet_paths,
        ops::file::op_isolet_file_stat_at,
        ops::file::op_isolet_file_stat,
        ops::file::op_isolet_file_open,
        ops::file::op_isolet_file_close,
        ops::file::op_isolet_file_read,
        ops::file::op_isolet_file_write,
        ops::file::op_isolet_file_written,
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

/// Our JavaScript. V8 reads it in place, from the binary.
static MODULES: LazyLock<Vec<ExtensionFileSource>> = LazyLock::new(|| {
    let module = |(specifier, text): (&'static str, &'static str)| {
        let text = FastStaticString::create_external_onebyte_const(text.as_bytes());
        // V8 refers to it for as long as the process lives.
        ExtensionFileSource::new(specifier, FastStaticString::new(Box::leak(Box::new(text))))
    };
    JAVASCRIPT.into_iter().map(module).collect()
});

/// Makes the extension for one isolate. Its JavaScript is part of the binary, because `deno_core`'s
/// own list of files would be read from the checkout at run time.
pub(crate) fn extension(state: State) -> Extension {
    let mut extension = isolet::init(state);
    extension.esm_files = Cow::Borrowed(&MODULES[..]);
    builtin_ops::replace(&mut extension);
    extension
}

/// Makes an extension with our ops only.
#[cfg(test)]
pub(crate) fn only_ops(state: State) -> Extension {
    let mut extension = isolet::init(state);
    extension.esm_files = Cow::Borrowed(&[]);
    extension.esm_entry_point = None;
    extension
}

/// Returns the names of our ops.
#[cfg(test)]
pub(crate) fn op_names() -> Vec<&'static str> {
    isolet::lazy_init().ops.iter().map(|op| op.name).collect()
}

/// The handle through which ops call the host.
pub(crate) type HostHandle = Arc<dyn crate::protocol::Host>;
