//! `cargo xtask tidy`: checks the rules of this repository that no compiler checks.
//!
//! A rule is a function from the files of the repository to a list of complaints. The same rules
//! run as a test, so `cargo test` finds what this command finds.

mod features;
mod figures;
mod floors;
mod lists;
pub(crate) mod ops;
mod paths;
mod registry;
mod rules;
mod rust_blocks;
mod shell;
#[cfg(test)]
mod tests;

use std::fs;
use std::io::{self, Write};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::process;
pub(crate) use rules::locked;

/// The permitted entries at the top level of the repository. Adding one needs a reason.
const TOP_LEVEL: &[&str] = &[
    ".cargo",
    ".ci",
    ".config",
    ".gitattributes",
    ".github", // where GitHub looks for workflows
    ".gitignore",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "SECURITY.md",
    "benches",
    "build.rs",
    "clippy.toml",
    "crates", // servers and the command, above the library in `src`
    "deny.toml",
    "deploy",
    "docs",
    "escape", // programs that try to escape, which are neither tests nor measurements
    "examples",
    "fuzz",
    "guest-packages",
    "install.ps1", // each release has both, and nothing else is needed to install it
    "install.sh",
    "js",
    "pyodide-assets",
    "python",
    "rust-toolchain.toml",
    "rustfmt.toml",
    "server.json", // where the tool that publishes to the MCP registry looks for it
    "shell",       // the shell of guests, which is built for another target, by another compiler
    "src",
    "tests",
    "third_party",
    "typescript",
    "xtask",
];

/// The only files with unsafe code. The first lines of each give the reason.
const UNSAFE_FILES: &[&str] = &[
    "crates/isolet-cli/src/kit/heap.rs",
    "crates/isolet-cli/src/kit/signal_mask.rs",
    "shell/src/executor.rs",
    "shell/src/files.rs",
    "shell/src/host.rs",
    "shell/src/lib.rs",
    "shell/src/memory.rs",
    "src/isolate/allocator.rs",
    "src/isolate/native_code.rs",
    "src/isolate/restore/linux.rs",
    "src/support/free_memory.rs",
    "src/support/shared_file.rs",
    "src/support/shared_words.rs",
    "src/support/signals.rs",
    "src/worker/child/copying.rs",
    "src/worker/child/fork_server.rs",
    "src/worker/child/guardian.rs",
    "src/worker/child/lockdown/namespaces.rs",
    "src/worker/child/lockdown/process.rs",
    "src/worker/child/lockdown/supervision.rs",
    "src/worker/child/lockdown/tests/mod.rs",
    "src/worker/child/lockdown/tests/probes.rs",
    "src/worker/child/readable.rs",
    "src/worker/child/serve/taken_over/system.rs",
    "src/worker/child/session_fork.rs",
    "src/worker/child/template_memory.rs",
    "src/worker/parent/event_loop.rs",
    "src/worker/parent/process.rs",
    "src/worker/wire/notifications.rs",
];

/// The only directory that may name the JavaScript engine.
const ENGINE: &str = "src/isolate/";

/// The starts of the paths that name the engine to move to another version of it, or to list it.
/// They use nothing of it.
const MOVES: [&str; 3] = ["xtask/src/bump/", "xtask/src/main.rs", "xtask/src/release/sbom.rs"];

/// The maximum length of a file, in lines. Longer files must be split.
const MAX_LINES: usize = 600;

/// The maximum width of a line, in characters. rustfmt has the same limit, but leaves a long text
/// and the code around it as they are.
const MAX_COLUMNS: usize = 100;

/// The starts of the paths of files in which `MAX_COLUMNS` applies to every line, and not only to
/// comments and Markdown.
const NARROW: &[&str] = &["crates/", "src/", "js/", "docs/", "README.md", "CONTRIBUTING.md"];

/// The directories with generated files, which texts may name although git has no such path.
const GENERATED: &[&str] = &["pyodide-assets/dist", "fuzz/artifacts/"];

/// A file of the repository.
struct SourceFile {
    /// Relative to the repository, with `/` between its parts.
    path: String,
    /// The content; empty if it is not UTF-8.
    text: String,
}

type Rule = fn(&[SourceFile]) -> Vec<String>;

/// Checks every file that git tracks or would add.
pub(crate) fn run() -> Result<()> {
    let mut complaints = complaints(&files()?);
    complaints.extend(features::crates_are_compiled_once()?);
    complaints.extend(shell::the_shell_is_built_of_its_sources(&process::root())?);
    for complaint in &complaints {
        eprintln!("{complaint}");
    }
    ensure!(complaints.is_empty(), "tidy: {} problems found", complaints.len());
    Ok(())
}

/// Prints figures of the structure: crates, rooms, floors, arrows.
pub(crate) fn figures() -> Result<()> {
    let text = figures::of(&files()?);
    io::stdout().write_all(text.as_bytes()).context("standard output is closed")
}

fn complaints(files: &[SourceFile]) -> Vec<String> {
    let rules: [Rule; 18] = [
        rules::files_say_what_they_are_for,
        rules::files_are_short,
        rules::lines_are_narrow,
        rules::only_the_engine_names_the_engine,
        floors::only_the_command_names_its_options,
        floors::folders_name_what_is_below_them,
        rules::only_listed_files_are_unsafe,
        rules::no_leftovers,
        rules::what_is_fuzzed_is_what_is_built,
        rules::top_level_is_known,
        lists::the_guests_files_are_listed,
        lists::ops_are_declared,
        lists::tables_have_heads,
        paths::references_exist,
        registry::the_registry_entry_is_right,
        rust_blocks::rust_blocks_are_compiled,
        rust_blocks::rust_blocks_hide_no_lines,
        registry::the_installer_is_of_this_version,
    ];
    rules.iter().flat_map(|rule| rule(files)).collect()
}

fn files() -> Result<Vec<SourceFile>> {
    let root = process::root();
    let mut git = Command::new("git");
    git.args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(&root);
    let output = git.output().context("cannot run `git ls-files`")?;
    ensure!(output.status.success(), "`git ls-files` ended with {}", output.status);
    let list = String::from_utf8(output.stdout).context("a file name is not UTF-8")?;
    let mut files = Vec::new();
    for path in list.split_terminator('\0') {
        // A file may be deleted and not yet committed.
        let Ok(bytes) = fs::read(root.join(path)) else {
            continue;
        };
        let text = String::from_utf8(bytes).unwrap_or_default();
        files.push(SourceFile { path: path.to_owned(), text });
    }
    Ok(files)
}
