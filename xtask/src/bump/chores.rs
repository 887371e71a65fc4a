//! What a person does in a move, with the command for it and the time that it takes. The page
//! `docs/contributing/bump.md` has a row for each, which a test compares.

/// A step of a move that needs judgement, or hours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Chore {
    BuildV8,
    TakeV8,
    NativeCode,
    CompileEngine,
    SecondSource,
    Patches,
    Loader,
    Wheels,
    Mentions,
    CompilePyodide,
    Golden,
    CpythonTests,
    Packages,
    Ci,
}

impl Chore {
    #[cfg(test)]
    const ALL: [Self; 14] = [
        Self::BuildV8,
        Self::TakeV8,
        Self::NativeCode,
        Self::CompileEngine,
        Self::SecondSource,
        Self::Patches,
        Self::Loader,
        Self::Wheels,
        Self::Mentions,
        Self::CompilePyodide,
        Self::Golden,
        Self::CpythonTests,
        Self::Packages,
        Self::Ci,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::BuildV8 => "build V8's archive",
            Self::TakeV8 => "take the archive into the repository",
            Self::NativeCode => "check what isolet uses of V8's internals",
            Self::CompileEngine => "compile isolet with the new engine",
            Self::SecondSource => "compare Pyodide's files with a second source",
            Self::Patches => "look at the patches of Pyodide's module",
            Self::Loader => "look at the changes of Pyodide's loader",
            Self::Wheels => "look at the patches of wheels",
            Self::Mentions => "look at the texts that name the old version",
            Self::CompilePyodide => "make an image of the new Pyodide",
            Self::Golden => "review what a guest can reach",
            Self::CpythonTests => "run CPython's own tests",
            Self::Packages => "try the packages that people use",
            Self::Ci => "run everything that has to pass",
        }
    }

    pub(super) fn command(self) -> &'static str {
        match self {
            Self::BuildV8 => "third_party/v8/build-v8.sh target/v8",
            Self::TakeV8 => "$EDITOR xtask/src/vendored_v8.rs third_party/v8/README.md",
            Self::NativeCode => "$EDITOR src/isolate/native_code.rs",
            Self::CompileEngine | Self::CompilePyodide => "cargo xtask setup",
            Self::SecondSource => "curl -fsSO ADDRESS && sha256sum FILE",
            Self::Patches => "$EDITOR pyodide-assets/patches/*/pyodide.asm.mjs.toml",
            Self::Loader => "diff OLD/pyodide.mjs NEW/pyodide.mjs",
            Self::Wheels => "$EDITOR src/packages/patches/numpy.toml",
            Self::Mentions => "git grep -nF OLD -- '*.md'",
            Self::Golden => "cargo xtask golden && git diff tests/golden",
            Self::CpythonTests => "cargo xtask cpython-tests DIR",
            Self::Packages => "cargo xtask packages",
            Self::Ci => "cargo xtask ci",
        }
    }

    /// Returns how long it takes on 2 cores.
    pub(super) fn takes(self) -> &'static str {
        match self {
            Self::BuildV8 => "72 minutes, and 10 GB",
            Self::TakeV8 | Self::SecondSource | Self::Mentions => "minutes",
            Self::NativeCode => "minutes if no header differs, else hours",
            Self::CompileEngine => "4 minutes, until it compiles",
            Self::Patches => "minutes for each that fits, an hour for one that does not",
            Self::Loader => "an hour",
            Self::Wheels => "a day for another numpy",
            Self::CompilePyodide => "2 minutes, until it starts",
            Self::Golden => "2 minutes, and the review",
            Self::CpythonTests => "15 minutes",
            Self::Packages => "5 minutes",
            Self::Ci => "37 minutes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process;

    #[test]
    fn the_page_has_the_command_and_the_time_of_each_chore() {
        let path = process::root().join("docs/contributing/bump.md");
        let page = std::fs::read_to_string(path).unwrap();
        for chore in Chore::ALL {
            let (title, command, takes) = (chore.title(), chore.command(), chore.takes());
            let row = format!("| {title} | `{command}` | {takes} |");
            assert!(page.lines().any(|line| line == row), "the page lacks {row}");
        }
    }
}
