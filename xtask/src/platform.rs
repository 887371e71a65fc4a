//! What JavaScript calls the platforms that isolet is built for.

use std::env::consts;

/// A system and a processor, by the names that Node.js has.
pub(crate) struct Platform {
    pub(crate) system: &'static str,
    pub(crate) processor: String,
}

impl Platform {
    /// Returns that of Rust's names.
    pub(crate) fn of(system: &str, processor: &str) -> Self {
        let system = match system {
            "macos" => "darwin",
            "windows" => "win32",
            _ => "linux",
        };
        let processor = match processor {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        Self { system, processor: processor.to_owned() }
    }

    /// Returns the name of both, such as `linux-x64`.
    pub(crate) fn name(&self) -> String {
        format!("{}-{}", self.system, self.processor)
    }

    /// Returns what names of programs end with.
    pub(crate) fn suffix(&self) -> &'static str {
        if self.system == "win32" { ".exe" } else { "" }
    }
}

/// Returns Rust's name of the platform that this program runs on, for which it builds.
pub(crate) fn triple() -> String {
    let system = match consts::OS {
        "macos" => "apple-darwin",
        "windows" => "pc-windows-msvc",
        _ if cfg!(target_env = "musl") => "unknown-linux-musl",
        _ => "unknown-linux-gnu",
    };
    format!("{}-{system}", consts::ARCH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_platform_has_the_name_that_clients_have() {
        let name = |system, processor| Platform::of(system, processor).name();
        assert_eq!(name("linux", "x86_64"), "linux-x64");
        assert_eq!(name("macos", "aarch64"), "darwin-arm64");
        assert_eq!(Platform::of("windows", "x86_64").suffix(), ".exe");
    }
}
