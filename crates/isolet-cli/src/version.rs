//! The output of `isolet --version`: the versions of the program and its parts.

use std::fmt::Write as _;
use std::sync::LazyLock;

/// The commit that the program was built from, if the build named it. `cargo xtask` does so in a
/// checkout. A build by cargo alone does not ask git and depends only on the sources.
const COMMIT: Option<&str> = option_env!("ISOLET_COMMIT");

/// Returns the text that `isolet --version` and `isolet version` print.
pub(crate) fn version() -> String {
    format!("isolet {}\n", long())
}

/// Returns the text after the program's name.
pub(crate) fn long() -> &'static str {
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
