//! Runs DSPy's own `PythonInterpreter`, unmodified from PyPI, on isolet: each Python module of
//! `tests/dspy/`, with both ways of plugging isolet in.

// One of the ways needs a symbolic link.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use isolet_test_support::{Scratch, assets_dir, program, root};

/// How DSPy starts isolet.
#[derive(Clone, Copy)]
enum Mode {
    /// `PythonInterpreter(deno_command=["isolet", "dspy"])`.
    Command,
    /// `PythonInterpreter()`, with isolet as `deno` first on `PATH`.
    Shim,
}

/// Runs all tests of a file in `tests/dspy/`.
fn passes(module: &str, mode: Mode) {
    let isolet = program();
    let (name, scratch) = match mode {
        Mode::Command => ("command", Scratch::new(&format!("dspy-command-{module}"))),
        Mode::Shim => ("shim", Scratch::new(&format!("dspy-shim-{module}"))),
    };
    let mut command = Command::new(python());
    command
        .args(["-W", "ignore::ResourceWarning", "-m", "unittest", "-v", module])
        .current_dir(root().join("tests/dspy"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("PYTHONUTF8", "1")
        .env("ISOLET_DSPY_MODE", name)
        .env("ISOLET_BIN", &isolet)
        .env(isolet_test_support::ASSETS_VARIABLE, assets_dir())
        // DSPy caches answers of language models on disk, and downloads their prices.
        .env("DSPY_CACHEDIR", scratch.path().join("cache"))
        .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        .env_remove("DENO_DIR")
        .stdin(Stdio::null());
    if let Mode::Shim = mode {
        command.env("PATH", path_with_deno(scratch.path(), &isolet));
    }
    let python = command.get_program().to_owned();
    let output = command.output().unwrap_or_else(|error| {
        let python = python.display();
        panic!("the tests need Python with DSPy, and `{python}` does not start: {error}; run `cargo xtask test`")
    });
    let report = String::from_utf8_lossy(&output.stderr);
    // The report must end in `OK` alone: a skipped test shows nothing, and neither does a module
    // without tests.
    let all = report.lines().last() == Some("OK") && !report.contains("\nRan 0 tests");
    assert!(
        output.status.success() && all,
        "`{module}` ended with {}\n{}{report}",
        output.status,
        String::from_utf8_lossy(&output.stdout)
    );
}

/// Returns the Python that `cargo xtask test` names, or the one that it made before.
fn python() -> PathBuf {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let named = std::env::var_os("ISOLET_TEST_PYTHON").filter(|python| !python.is_empty());
    named.map_or_else(
        || {
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
            let python = target.join("python/bin/python");
            assert!(
                python.exists(),
                "the tests need Python with DSPy in `{}`; run `cargo xtask test`, which puts it there",
                python.display()
            );
            python
        },
        PathBuf::from,
    )
}

/// Returns the caller's `PATH` after a directory in which isolet is called `deno`.
fn path_with_deno(scratch: &Path, isolet: &str) -> std::ffi::OsString {
    let dir = scratch.join("bin");
    fs::create_dir(&dir).unwrap();
    std::os::unix::fs::symlink(isolet, dir.join("deno")).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the programs of the machine stay in reach")]
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::iter::once(dir).chain(std::env::split_paths(&rest));
    std::env::join_paths(dirs).unwrap()
}

/// Hundreds of megabytes in Python, in the pipe and in the guest: tens of seconds. How isolet was
/// started makes no difference to them, so one way is enough.
const LARGE: &str = "test_large";

#[test]
fn large() {
    passes(LARGE, Mode::Command);
}

macro_rules! modules {
    ($($name:ident: $module:literal)*) => {
        const MODULES: &[&str] = &[$($module),*];
        $(
            mod $name {
                use super::{Mode, passes};

                #[test]
                fn as_its_command() {
                    passes($module, Mode::Command);
                }

                #[test]
                fn as_deno_on_the_path() {
                    passes($module, Mode::Shim);
                }
            }
        )*
    };
}

modules! {
    calls: "test_calls"
    errors: "test_errors"
    hostile: "test_hostile"
    permissions: "test_permissions"
    protocol: "test_protocol"
    rlm_like: "test_rlm_like"
    rlm_real: "test_rlm_real"
    session: "test_session"
    submit: "test_submit"
    tools: "test_tools"
    values: "test_values"
}

#[test]
fn every_module_is_listed() {
    let entries = fs::read_dir(root().join("tests/dspy")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".py").map(str::to_owned)).collect();
    names.retain(|name| name != "interpreter");
    names.sort_unstable();
    let mut listed = [MODULES, &[LARGE]].concat();
    listed.sort_unstable();
    assert_eq!(names, listed);
}
