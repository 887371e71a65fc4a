//! The parts that the command contains or fetches and that are not Rust crates. Their texts are
//! copies from the packages that README.md in `third_party/licenses` names.

use anyhow::{Context, Result};

use super::{Component, Origin, text};
use crate::process;

/// Where the version of a part is found.
enum Version {
    /// The version of the `v8` crate, whose sources contain the part.
    OfV8,
    /// Pyodide's version, because the part belongs to it.
    OfPyodide,
    /// This version; the part's files are in `third_party/python`.
    Is(&'static str),
}

/// A part that is not a Rust crate.
pub(super) struct Part {
    name: &'static str,
    version: Version,
    license: &'static str,
    note: &'static str,
    texts: &'static [&'static str],
}

const fn of_v8(
    name: &'static str,
    license: &'static str,
    note: &'static str,
    texts: &'static [&'static str],
) -> Part {
    Part { name, version: Version::OfV8, license, note, texts }
}

const fn of_pyodide(
    name: &'static str,
    license: &'static str,
    note: &'static str,
    texts: &'static [&'static str],
) -> Part {
    Part { name, version: Version::OfPyodide, license, note, texts }
}

/// The parts, in the order in which they are listed.
pub(super) const PARTS: &[Part] = &[
    of_v8("V8", "BSD-3-Clause", "", &["v8.txt"]),
    of_v8("ICU", "Unicode-3.0 and others", "", &["icu.txt"]),
    of_v8("Abseil", "Apache-2.0", "Copyright the Abseil Authors", &["apache-2.0.txt"]),
    of_v8("dragonbox", "Apache-2.0 WITH LLVM-exception", "", &["dragonbox.txt", "apache-2.0.txt"]),
    of_v8("fast_float", "MIT OR Apache-2.0", "", &["fast_float.txt"]),
    of_v8("FP16", "MIT", "", &["fp16.txt"]),
    of_v8("Highway", "Apache-2.0", "", &["highway.txt", "apache-2.0.txt"]),
    of_v8("inspector_protocol", "BSD-3-Clause", "", &["inspector_protocol.txt"]),
    of_v8("libc++ and libc++abi", "Apache-2.0 WITH LLVM-exception", "", &["libcxx.txt"]),
    of_v8("simdutf", "MIT OR Apache-2.0", "", &["simdutf.txt"]),
    of_v8("SipHash", "CC0-1.0", "", &["siphash.txt"]),
    of_pyodide("Pyodide", "MPL-2.0", "", &["mpl-2.0.txt"]),
    of_pyodide("CPython", "PSF-2.0", "", &["cpython.txt", "cpython-incorporated.txt"]),
    of_pyodide("bzip2", "bzip2-1.0.6", "", &["bzip2.txt"]),
    of_pyodide("Emscripten", "MIT", "", &["emscripten.txt"]),
    of_pyodide("expat", "MIT", "", &["expat.txt"]),
    of_pyodide("libffi", "MIT", "", &["libffi.txt"]),
    of_pyodide("musl", "MIT", "", &["musl.txt"]),
    of_pyodide("SQLite", "public domain", "", &["sqlite.txt"]),
    of_pyodide("xz", "public domain", "", &["xz.txt"]),
    of_pyodide("zlib", "Zlib", "", &["zlib.txt"]),
    of_pyodide("zstd", "BSD-3-Clause", "", &["zstd.txt"]),
    Part {
        name: "tzdata",
        version: Version::Is("2026.6"),
        license: "Apache-2.0",
        note: "Copyright (c) 2020, Paul Ganssle (Google); Copyright (c) 2026, Stan Ulbrych; the data are in the public domain",
        texts: &["apache-2.0.txt"],
    },
];

impl Part {
    pub(super) fn component(&self) -> Result<Component> {
        let origin = match self.version {
            Version::OfV8 => Origin::V8,
            Version::OfPyodide => Origin::Pyodide,
            Version::Is(_) => Origin::Guest,
        };
        let version = match self.version {
            Version::OfV8 => {
                let lock = std::fs::read_to_string(process::root().join("Cargo.lock"));
                let lock = lock.context("cannot read `Cargo.lock`")?;
                let v8 = crate::vendored_v8::locked_version(&lock, "v8");
                format!("as in v8 {}", v8.context("`Cargo.lock` has no `v8`")?)
            }
            Version::Is(version) => version.to_owned(),
            Version::OfPyodide => {
                format!("as in Pyodide {}", isolet_pyodide_assets::lock()?.version())
            }
        };
        Ok(Component {
            name: self.name.to_owned(),
            version,
            license: self.license.to_owned(),
            origin,
            note: self.note.to_owned(),
            texts: self.texts.iter().map(|name| text(name)).collect::<Result<_>>()?,
        })
    }
}
