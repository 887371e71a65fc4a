//! The compiler of `cargo xtask ci`: Clippy's, and rustdoc after it. What is built for the tests is
//! linted and documented in the same pass: `cargo clippy` and `cargo doc` would check all
//! dependencies again, which takes minutes.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

use crate::process;

/// Names the compiler to cargo, which calls it for the crates of this workspace only.
pub(crate) const WRAPPER: &str = "RUSTC_WORKSPACE_WRAPPER";

/// The directory of the documentation. Where it is not set, nothing is documented.
const DOCUMENTATION: &str = "ISOLET_DOCUMENTATION";

/// What `cargo clippy` passes to its compiler, which separates arguments by this word.
pub(crate) const DENY_WARNINGS: [(&str, &str); 1] =
    [("CLIPPY_ARGS", "-D__CLIPPY_HACKERY__warnings")];

/// Whether this is the compiler of what cargo builds.
pub(crate) fn is_set() -> bool {
    env::var_os(WRAPPER).is_some()
}

/// Has all that a command builds be linted, and documented.
pub(crate) fn set(command: &mut Command) -> Result<&mut Command> {
    command.env(WRAPPER, env::current_exe().context("cannot tell where `xtask` itself is")?);
    command.envs(DENY_WARNINGS);
    Ok(command.env(DOCUMENTATION, process::target_dir()?.join("documentation")))
}

/// Has what a command builds not be documented. Without some features, links lead nowhere.
pub(crate) fn undocumented(command: &mut Command) -> &mut Command {
    command.env_remove(DOCUMENTATION)
}

/// Whether cargo calls this program as the compiler: the path of its own comes first.
pub(crate) fn is_meant(args: &[OsString]) -> bool {
    args.first().is_some_and(|rustc| Path::new(rustc).file_stem() == Some(OsStr::new("rustc")))
}

/// Compiles a crate as `args` say, which begin with the compiler.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    // Cargo takes a program that it installs for a workspace of its own.
    let directory = env::var_os("CARGO_MANIFEST_DIR");
    if directory.is_some_and(|directory| !Path::new(&directory).starts_with(process::root())) {
        return process::replace_by(Command::new(&args[0]).args(&args[1..]));
    }
    let status = process::status(Command::new("clippy-driver").args(args))?;
    let Some(directory) = env::var_os(DOCUMENTATION).filter(|_| status.success()) else {
        return Ok(process::exit_code(status));
    };
    let is_program = env::var_os("CARGO_BIN_NAME").is_some();
    let Some(told) = documented(&args[1..], is_program) else { return Ok(ExitCode::SUCCESS) };
    // A library and a program of another package may have the same name.
    let package = env::var_os("CARGO_PKG_NAME").context("cargo does not say which package")?;
    let mut rustdoc = Command::new("rustdoc");
    rustdoc.args(told).args(["-D", "warnings", "--out-dir"]);
    rustdoc.arg(Path::new(&directory).join(package));
    process::status(&mut rustdoc).map(process::exit_code)
}

/// Returns what rustdoc is told of a crate that rustc compiles with these arguments, or `None` if
/// it is neither a library nor a program: a test, a benchmark, an example, a build script; or if
/// cargo only has a question.
fn documented(args: &[OsString], is_program: bool) -> Option<Vec<OsString>> {
    let mut told = Vec::new();
    let mut links = false;
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match &*arg.to_string_lossy() {
            "--test" => return None,
            "--crate-name" | "--crate-type" | "--cfg" | "--check-cfg" | "-L" | "--extern" => {
                let value = args.next()?;
                let of_none = ["___", "build_script_build"].iter().any(|name| value == name);
                if of_none || (value == "bin" && !is_program) {
                    return None;
                }
                told.extend([arg.clone(), value.clone()]);
            }
            "--out-dir" if Path::new(args.next()?).ends_with("examples") => return None,
            "-C" | "-A" | "-W" | "-D" | "--print" | "--cap-lints" => _ = args.next(),
            option if option.starts_with("--emit=") => links = option.contains("link"),
            option if option.starts_with("--edition=") || option.contains("=rustdoc::") => {
                told.push(arg.clone());
            }
            option if option.starts_with('-') => {}
            _ => told.push(arg.clone()),
        }
    }
    links.then_some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, is_program: bool) -> Option<String> {
        let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let told = documented(&args, is_program)?;
        Some(told.join(OsStr::new(" ")).into_string().unwrap())
    }

    #[test]
    fn rustdoc_is_told_what_a_library_needs_and_nothing_of_how_it_is_compiled() {
        let line = "--crate-name isolet --edition=2024 src/lib.rs --error-format=json \
                    --crate-type lib --emit=dep-info,metadata,link -C opt-level=0 \
                    --warn=clippy::all --deny=rustdoc::broken_intra_doc_links \
                    --cfg feature=\"a\" --out-dir target/deps -L dependency=deps \
                    --extern v8=deps/libv8.rmeta";
        let expected = "--crate-name isolet --edition=2024 src/lib.rs --crate-type lib \
                        --deny=rustdoc::broken_intra_doc_links --cfg feature=\"a\" \
                        -L dependency=deps --extern v8=deps/libv8.rmeta";
        assert_eq!(of(line, false).as_deref(), Some(expected));
    }

    #[test]
    fn only_libraries_and_programs_are_documented() {
        let program = "--crate-name main src/main.rs --crate-type bin --emit=dep-info,link";
        assert!(of(program, true).is_some());
        assert_eq!(of(program, false), None, "a benchmark");
        for line in [
            "--crate-name it tests/it/main.rs --emit=dep-info,link --test",
            "--crate-name hello examples/hello.rs --emit=dep-info,link --out-dir target/examples",
            "--crate-name build_script_build build.rs --crate-type bin --emit=dep-info,link",
            "--crate-name isolet src/lib.rs --emit=dep-info,metadata",
            "- --crate-name ___ --print=file-names",
            "-vV",
        ] {
            assert_eq!(of(line, true), None, "{line}");
        }
    }

    #[test]
    fn cargo_names_its_compiler_first() {
        let meant = |line: &str| is_meant(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(meant("/toolchain/bin/rustc -vV") && meant("rustc --crate-name x"));
        assert!(!meant("run rustc") && !meant("ci"));
    }
}
