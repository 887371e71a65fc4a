//! `cargo xtask test`: runs every test, and the examples.

mod nextest;
mod package;
mod science;
mod typescript;

use std::ffi::OsString;
use std::fs;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

pub(crate) use self::package::{environments, run as python_package, trl};
pub(crate) use self::science::{digests as science_digests, wheels as science_wheels};
pub(crate) use self::typescript::{
    build as build_typescript, directory as typescript_directory,
    environment as typescript_environment, run as typescript,
};
use crate::process::{self, Profile};
use crate::science::own;
use crate::steps::{Step, Times};
use crate::{compiler, gallery, pictures, python, setup};

/// What the tests need: a Python with DSPy, the command and Pyodide.
pub(crate) const PREPARATION: [Step; 1] = [("set-up", prepare)];

/// Every test that cargo knows, and the examples.
pub(crate) const ALL: [Step; 5] = [
    ("tests, sessions in processes", || in_isolation("process", &[])),
    ("tests, sessions on threads", || in_isolation("thread", &[])),
    ("tests of documentation", documentation),
    ("tests without the feature `engine`", without_engine),
    ("examples", examples),
];

pub(crate) fn prepare() -> Result<ExitCode> {
    python::ensure()?;
    setup::run()?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the tests that cargo-nextest chooses by `args`, with both isolations. Without `args`, runs
/// all of them, the tests of documentation, and each example.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let mut times = Times::default();
    if args.is_empty() {
        let steps: Vec<Step> = PREPARATION.into_iter().chain(ALL).collect();
        let code = times.run(&steps)?;
        eprint!("{}", times.table());
        return Ok(code);
    }
    prepare()?;
    let code = in_isolation("process", args)?;
    if code != ExitCode::SUCCESS {
        return Ok(code);
    }
    in_isolation("thread", args)
}

/// Runs tests with one isolation, by the profile of that name.
fn in_isolation(isolation: &str, args: &[OsString]) -> Result<ExitCode> {
    let mut nextest = nextest::run(isolation)?;
    nextest::with_args(nextest.arg("--workspace"), args);
    finish(nextest.env("ISOLET_ISOLATION", isolation))
}

/// Runs the tests with numpy, pandas and others, in both isolations. Without `args`, compares the
/// gallery with its page, too.
pub(crate) fn science(args: &[OsString]) -> Result<ExitCode> {
    prepare()?;
    science::wheels()?;
    own::directory()?;
    for isolation in ["thread", "process"] {
        eprintln!("science, isolation {isolation}");
        let mut nextest = nextest::run(&format!("science-{isolation}"))?;
        nextest.args(["--workspace", "--test", "it", "--run-ignored", "only"]);
        nextest::with_args(nextest.args(["--filterset", "test(/^science::/)"]), args);
        let code = finish(nextest.env("ISOLET_ISOLATION", isolation))?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    if args.is_empty() { gallery::check() } else { Ok(ExitCode::SUCCESS) }
}

fn documentation() -> Result<ExitCode> {
    let mut cargo = process::cargo();
    // `--doc` asks for every library, also for the models, whose files are the library's.
    cargo.args(["test", "--workspace", "--exclude", "isolet-models", "--doc"]);
    finish(cargo.args(["--profile", Profile::FastBuild.name()]))
}

/// The rooms of the library whose code is the same with and without the feature `engine`, and whose
/// tests have run with it.
const ALIKE: [&str; 4] = ["data", "net", "packages", "protocol"];

fn without_engine() -> Result<ExitCode> {
    let mut nextest = nextest::run("without-engine")?;
    // The other package is built, which lints it, and has no tests of its own for this.
    nextest.args(["--package", "isolet", "--package", "isolet-mcp", "--no-default-features"]);
    nextest.args(["--lib", "--test", "without_engine", "--filterset"]);
    nextest.arg(format!("package(isolet) - test(/^({})::/)", ALIKE.join("|")));
    compiler::undocumented(&mut nextest);
    finish(nextest.env("ISOLET_TEST_WORKER", Profile::FastBuild.built("isolet")?))
}

/// Runs the examples, which cargo has built with the tests, and compares README's pictures.
fn examples() -> Result<ExitCode> {
    for name in names_of_examples()? {
        eprintln!("example {name}");
        let mut example = Command::new(Profile::FastBuild.built(&format!("examples/{name}"))?);
        process::check(process::with_assets(example.current_dir(process::root())))?;
    }
    eprintln!("example dspy_drop_in.py");
    let mut example = Command::new(python::program()?);
    example.arg("examples/dspy_drop_in.py").env("ISOLET_BIN", Profile::FastBuild.built("isolet")?);
    process::check(process::with_assets(example.current_dir(process::root())))?;
    pictures::check()
}

fn finish(command: &mut Command) -> Result<ExitCode> {
    let command = python::with_python(process::with_assets(command))?;
    process::status(command).map(process::exit_code)
}

/// Rewrites the lists in `tests/golden` of what a guest can reach, for a person to review, and the
/// help in the page of the command.
pub(crate) fn golden() -> Result<ExitCode> {
    setup::run()?;
    let mut nextest = nextest::run("process")?;
    nextest.args(["--workspace", "--lib", "--test", "it", "--test", "command"]);
    nextest.args(["golden_list", "the_page_of_the_command"]);
    finish(nextest.env("ISOLET_GOLDEN", "1"))
}

/// Returns the names of the Rust examples.
fn names_of_examples() -> Result<Vec<String>> {
    let dir = process::root().join("examples");
    let entries = fs::read_dir(&dir).context("cannot read `examples`")?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.context("cannot read `examples`")?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Whether a file below a directory names the feature.
    fn names_the_feature(dir: &Path) -> bool {
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
            if path.is_dir() {
                return names_the_feature(&path);
            }
            fs::read_to_string(&path).unwrap().contains("feature = \"engine\"")
        })
    }

    #[test]
    fn what_is_not_tested_without_the_engine_does_not_depend_on_it() {
        for room in ALIKE {
            assert!(!names_the_feature(&process::root().join("src").join(room)), "{room}");
        }
        assert!(names_the_feature(&process::root().join("src/worker")), "it finds nothing");
    }
}
