//! The one extension: our ops and our JavaScript, in load order.

use std::sync::Arc;

use super::isolate::State;
use super::ops;

deno_core::extension!(
    isolet,
    ops = [
        ops::stdio::op_isolet_write,
        ops::stdio::op_isolet_stdin,
        ops::stdio::op_isolet_console,
        ops::time::op_isolet_now,
        ops::time::op_isolet_wall_clock,
        ops::time::op_isolet_tick,
        ops::entropy::op_isolet_entropy,
        ops::text::op_isolet_utf8_encode,
        ops::text::op_isolet_utf8_encode_into,
        ops::text::op_isolet_utf8_decode,
        ops::boot::op_isolet_entry_points,
        ops::boot::op_isolet_wasm_module,
        ops::boot::op_isolet_stdlib,
        ops::boot::op_isolet_python_source,
        ops::boot::op_isolet_image_length,
        ops::boot::op_isolet_image_config,
        ops::boot::op_isolet_image_restore,
        ops::boot::op_isolet_image_save,
        ops::run::op_isolet_frame_take,
        ops::run::op_isolet_reply,
        ops::run::op_isolet_exited,
        ops::run::op_isolet_interrupted,
    ],
    esm_entry_point = "ext:isolet/80_session.js",
    esm = [
        dir "js",
        "10_globals.js",
        "20_stdio.js",
        "60_pyodide.js",
        "70_suspension.js",
        "80_session.js",
        "99_lockdown.js",
    ],
    options = { state: State },
    state = |state, options| state.put(options.state),
);

/// Our Python half, which is part of the memory image.
pub(crate) const PYTHON_SOURCE: &str = include_str!("../../js/py/session.py");

/// Everything of ours that shapes the memory image.
pub(crate) fn glue_sources() -> [&'static str; 7] {
    [
        PYTHON_SOURCE,
        include_str!("../../js/10_globals.js"),
        include_str!("../../js/20_stdio.js"),
        include_str!("../../js/60_pyodide.js"),
        include_str!("../../js/70_suspension.js"),
        include_str!("../../js/80_session.js"),
        include_str!("../../js/99_lockdown.js"),
    ]
}

/// Makes the extension for one isolate.
pub(crate) fn extension(state: State) -> deno_core::Extension {
    isolet::init(state)
}

/// What ops call the host through.
pub(crate) type HostHandle = Arc<dyn crate::waist::Host>;
