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

/// Our JavaScript, by specifier. The entry point is `session.js`; its imports say the order.
pub(crate) const JAVASCRIPT: [(&str, &str); 30] = modules![
    "turns.js",
    "globals.js",
    "stdio.js",
    "mounts.js",
    "file_space.js",
    "paths.js",
    "local_time.js",
    "fetch.js",
    "buffers.js",
    "wasm.js",
    "calls.js",
    "foreign_calls.js",
    "table_functions.js",
    "foreign_memory.js",
    "linking.js",
    "libraries.js",
    "dict_entry.js",
    "text_output.js",
    "objects.js",
    "saved_files.js",
    "saving.js",
    "pyodide.js",
    "suspension.js",
    "frames.js",
    "parking.js",
    "written_files.js",
    "shell.js",
    "stop_line.js",
    "session.js",
    "lockdown.js",
];

/// Our Python half, by module name, in load order. It is part of the image's memory.
pub(crate) const PYTHON: [(&str, &str); 62] = python![
    "errnos",
    "arrays",
    "frames",
    "values",
    "errors",
    "waits",
    "additions",
    "strftime",
    "zone",
    "locks",
    "failures",
    "tools",
    "thread_data",
    "threads",
    "displays",
    "deferred",
    "awaits",
    "returns",
    "commands",
    "cells",
    "interactive_shell",
    "variables",
    "completion",
    "charts",
    "tables",
    "capture",
    "ipython",
    "alarms",
    "exchange",
    "framing",
    "sockets",
    "imports",
    "foreign",
    "absent",
    "integers",
    "linear",
    "modules",
    "forks",
    "transports",
    "clients",
    "packages",
    "figures",
    "fonts",
    "immortals",
    "timing",
    "inspect",
    "programs",
    "shell_web",
    "shell_commands",
    "shell",
    "shell_cells",
    "shell_magics",
    "magics",
    "kernel",
    "files",
    "saving",
    "looking_back",
    "endings",
    "processes",
    "async_processes",
    "reserve",
    "session",
];

/// What an interpreter runs while its image is made, so that V8 sees what is worth optimizing.
pub(crate) const WARM_UP: &str = include_str!("../../js/py/warm_up.py");

/// The same for an image with packages.
pub(crate) const WARM_UP_PACKAGES: &str = include_str!("../../js/py/warm_up_packages.py");
