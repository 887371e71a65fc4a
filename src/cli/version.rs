//! What `isolet --version` tells: what this program is made of.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// The commit that the program was built from, if whoever built it said so. `cargo xtask` does, in
/// a checkout; a build by cargo alone asks no git and depends on the sources only.
const COMMIT: Option<&str> = option_env!("ISOLET_COMMIT");

/// The text after the program's name.
pub(super) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(|| {
        let mut text = env!("CARGO_PKG_VERSION").to_owned();
        let pyodide = isolet_pyodide_assets::lock().map_or("unknown", |lock| lock.version());
        let parts = [
            ("commit", COMMIT.filter(|commit| !commit.is_empty()).unwrap_or("unknown")),
            ("V8", isolet::v8_version()),
            ("Pyodide", pyodide),
            ("Python", isolet::python_version()),
        ];
        for (name, version) in parts {
            // Writing to a `String` cannot fail.
            let _ = write!(text, "\n{name:<8} {version}");
        }
        text
    });
    LONG.as_str()
}
