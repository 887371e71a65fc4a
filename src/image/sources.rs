//! The glue that an image is made with: our JavaScript and our Python, as text.

macro_rules! modules {
    ($($file:literal,)*) => {
        [$((concat!("ext:isolet/", $file), include_str!(concat!("../../js/", $file)))),*]
    };
}

macro_rules! python {
    ($($name:literal,)*) => {
        [$(($name, include_str!(concat!("../../js/py/", $name, ".py")))),*]
    };
}

/// Our JavaScript, by specifier, in load order.
pub(crate) const JAVASCRIPT: [(&str, &str); 17] = modules![
    "10_globals.js",
    "20_stdio.js",
    "30_mounts.js",
    "35_space.js",
    "36_local_time.js",
    "40_fetch.js",
    "45_buffers.js",
    "50_wasm.js",
    "55_calls.js",
    "58_linking.js",
    "59_libraries.js",
    "60_pyodide.js",
    "70_suspension.js",
    "71_frames.js",
    "72_parking.js",
    "80_session.js",
    "99_lockdown.js",
];

/// Our Python half, by module name, in load order. It is part of the image's memory.
pub(crate) const PYTHON: [(&str, &str); 20] = python![
    "errnos",
    "values",
    "errors",
    "waits",
    "additions",
    "zone",
    "locks",
    "tools",
    "thread_data",
    "threads",
    "variables",
    "completion",
    "exchange",
    "framing",
    "sockets",
    "clients",
    "packages",
    "files",
    "programs",
    "session",
];

/// What an interpreter runs while its image is made, so that V8 sees what is worth optimizing.
pub(crate) const WARM_UP: &str = include_str!("../../js/py/warm_up.py");
