//! `cargo xtask`: the development tasks of this repository. They need no installation.
//!
//! One file per command. Avoid adding dependencies, because everyone who clones the repository
//! waits for them.

#![expect(clippy::print_stderr, reason = "telling a person what happens is this program's job")]

mod assets;
mod bench;
mod book;
mod bounded;
mod bump;
mod cases;
mod ci;
mod compiler;
mod cpython_tests;
mod deny;
mod dist;
mod escape;
mod fuzz;
mod gallery;
mod generate;
mod glibc;
mod hosts;
mod installed;
mod junit;
mod licenses;
mod lint;
mod manifest;
mod mcpb;
mod npm;
mod packages;
mod pictures;
mod platform;
mod platforms;
mod process;
mod python;
mod release;
mod run;
mod science;
mod setup;
mod side_by_side;
mod steps;
mod survival;
mod test;
mod tidy;
mod uv;
mod vendored_v8;
mod wheel;

use std::env;
use std::ffi::OsString;
use std::process::ExitCode;

use dist::Build;

const HELP: &str = "\
Usage: cargo xtask COMMAND

  setup                 get V8 and Pyodide, build isolet and its memory image
  run SCRIPT [ARGS...]  setup, then `isolet run SCRIPT ARGS...`; its options work too
  run -- ARGS...        setup, then `isolet ARGS...`
  test [ARGS...]        setup, a Python environment with DSPy, then `cargo nextest run --workspace ARGS...` with
                        sessions in processes and on threads; without ARGS documentation and examples too
  test --science [ARGS...]
                        the tests with numpy, pandas, matplotlib and others, whose wheels it gets into target/science;
                        without ARGS the gallery too
  test --python [ARGS...]
                        the Python package: `cargo xtask wheel`, then its tests by `pytest ARGS...`, and pyright
  test --typescript [FILE...]
                        setup, the TypeScript package: its types, and its tests by `node --test FILE...`
  test --trl            the Python package with TRL's trainer; installs 6 GB
  fuzz [--seconds N] [TARGET...]
                        each fuzz target for N seconds, or all for a minute; `--input FILE` runs that
  bench [--rounds N] [--only NAME...] [--markdown FILE]
                        the same work on isolet and on its peers, as a table, 15 or N times: docs/performance.md
  bench mcp [--rounds N] [--latency MS...] [--isolet PROGRAM] [--markdown FILE]
                        tasks by direct calls of MCP servers and in code mode: docs/mcp-benchmark.md
  survival [--only SUBJECT...] [--kind KIND...]
                        programs that hurt, on isolet and on its peers: without options, writes docs/survival.md
  escape [--only PROGRAM...]
                        programs that try to escape, and native code in a worker: without options, writes docs/escape.md
  cpython-tests DIR [--jobs N] [--again] [MODULE...]
                        CPython's own tests from its `Lib/test` or a copy, each module in a session; those that
                        ran before are not run again. What is wrong has to be what the list of it says
  packages [NAME...]    real work with each package of tests/packages; without NAME, writes docs/concepts/packages.md
  gallery [--check]     the data tasks of examples/data, with the command that `ISOLET` names or the built one: writes
                        docs/guides/data.md, or compares what they do with it
  pictures [--check]    README's pictures, with the command that `ISOLET` names or the built one: writes
                        docs/pictures, or compares them
  cases DIR [WORD...]   the cases below DIR, or those whose name contains a WORD, with the command that `ISOLET`
                        names or the built one: xtask/src/cases/mod.rs says what a case is
  hosts [WORD...]       a few things that everybody does, on machines of many shapes, or those whose name contains
                        a WORD; as root, with the command that `ISOLET` names or the built one
  golden                write the lists in tests/golden, of what a guest can reach, and the help in
                        docs/reference/options.md anew
  assets fetch          the same as setup, which gets Pyodide's files into pyodide-assets/dist
  assets verify         check them
  dist                  make target/dist/isolet-VERSION-TARGET, a prefix: the stripped command, Pyodide, notices,
                        manual and completions
  wheel                 make target/wheels/isolet-VERSION-....whl: the Python package with the command and Pyodide
  wheel --science [--wheels DIR | --tested]
                        make target/science/dist: isolet-science, the packages that code imports without options,
                        as a wheel and as a tarball; with Pyodide's builds in DIR, or those that the tests use,
                        instead of the distribution
  npm                   make target/npm/isolet-VERSION.tgz, the TypeScript package, and isolet-PLATFORM-VERSION.tgz,
                        the command and Pyodide for it
  mcpb                  make target/mcpb/isolet-VERSION-PLATFORM.mcpb: the command and Pyodide, for Claude Desktop
  platforms             what is compiled for which target, and what is not; fails where that is not declared
  platforms --check [TARGET...]
                        compile for the targets whose standard library, or its source, is installed
  release               make target/release-files: every file of a release for this platform, in 18 minutes of a processor
  release --platform    only those that each platform has of its own
  release --index DIR   add to the files of all platforms in DIR the installers, SHA256SUMS and Homebrew's formula
  release --check       check what was made: digests, bills of materials, `cargo publish --dry-run`, the install
                        test, and a second packing
                        `--tested` makes and checks a release of the command that tests use, without its symbols,
                        `--tested-packages` one with guests' packages of the tests, not of Pyodide's distribution
  install-test [NAME...]
                        install target/release-files as people do, into empty roots and environments, as root
  licenses              write the notices that `isolet licenses` prints, from the packages' licence files
  tidy [--figures]      check the rules of the house that no compiler knows; or print how the crates are built
  lint                  look for mistakes in the JavaScript and the Python; installs linters into target/lint
  generate              write js/ops.d.ts, and the modules of the Python package that others for asyncio give
  book                  make target/book/html of docs/, with search; installs mdbook into target/mdbook
  deny                  check licences, bans and sources of the dependencies; installs cargo-deny into target/deny
  bump [deno_core|pyodide] [--to VERSION] [--dry-run]
                        what a move to the newest or that version changes, with `--dry-run` only that; then makes
                        the changes that need no judgement, and lists the others: docs/contributing/bump.md
  bump --check          whether the pinned versions are what isolet relies on, and whether there are newer ones
  ci                    everything that has to pass, then how long each step and the slowest tests took

Environment:
  ISOLET_ASSETS         the directory of Pyodide's files, for `run` and `test`
  ISOLET_ASSETS_URL     where to download them from, instead of npm and the public CDN
  ISOLET_BENCH_DENO_RUNNER
                        a copy of DSPy's runner.js, for `bench`, that Deno can load without a network
  ISOLET_BENCH_PYTHON   a Python of 3.12 or newer, for the peers in `bench` and `survival` that need one
  ISOLET_TEST_PYTHON    a Python with DSPy, for `test`, instead of the one it makes in target/python
  CI                    when set, no progress bar
";

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(args: &[OsString]) -> anyhow::Result<ExitCode> {
    if compiler::is_meant(args) {
        return compiler::run(args);
    }
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    match words[..] {
        ["setup"] => setup::with_commit().map(|()| ExitCode::SUCCESS),
        ["platforms", ..] => platforms::run(&words[1..]),
        ["run", "--", ..] => run::command(&args[2..]),
        ["run", _, ..] => run::script(&args[1..]),
        ["test", "--science", ..] => test::science(&args[2..]),
        ["test", "--python", ..] => test::python_package(&args[2..]),
        ["test", "--typescript", ..] => test::prepare().and_then(|_| test::typescript(&args[2..])),
        ["test", "--trl"] => test::trl(),
        ["test", ..] => test::run(&args[1..]),
        ["fuzz", ..] => fuzz::run(&args[1..]),
        ["bench", "mcp", ..] => bench::mcp::run(&args[2..]),
        ["bench", ..] => bench::run(&args[1..]),
        ["survival", ..] => survival::run(&args[1..]),
        ["escape", ..] => escape::run(&args[1..]),
        ["cpython-tests", ..] => cpython_tests::run(&args[1..]),
        ["packages", ..] => packages::run(&args[1..]),
        ["gallery", ..] => gallery::run(&args[1..]),
        ["pictures", ..] => pictures::run(&args[1..]),
        ["cases", ..] => cases::run(&args[1..]),
        ["hosts", ..] => hosts::run(&args[1..]),
        ["golden"] => test::golden(),
        ["assets", "fetch"] => setup::run().map(|()| ExitCode::SUCCESS),
        ["assets", "verify"] => assets::verify(),
        ["dist"] => dist::run(Build::Optimized).map(|_| ExitCode::SUCCESS),
        ["npm"] => npm::run(Build::Optimized).map(|_| ExitCode::SUCCESS),
        ["mcpb"] => mcpb::run(Build::Optimized).map(|_| ExitCode::SUCCESS),
        ["wheel", "--science", ..] => {
            let source = science::Source::parse(&words[2..])?;
            science::wheel(&source).map(|_| ExitCode::SUCCESS)
        }
        ["wheel"] => {
            wheel::run(wheel::Purpose::Publishing(Build::Optimized)).map(|_| ExitCode::SUCCESS)
        }
        ["release", ..] => release::run(&words[1..]),
        ["install-test", ..] => release::install_test::run(&words[1..]),
        ["licenses"] => licenses::write().map(|()| ExitCode::SUCCESS),
        ["tidy"] => tidy::run().and_then(|()| licenses::check()).map(|()| ExitCode::SUCCESS),
        ["tidy", "--figures"] => tidy::figures().map(|()| ExitCode::SUCCESS),
        ["lint"] => lint::run(),
        ["generate"] => generate::run(),
        ["deny"] => deny::run(),
        ["bump", "--check"] => bump::check(),
        ["bump", ..] => bump::run(&words[1..]),
        ["book"] => book::run(),
        ["ci"] => ci::run(),
        [] | ["help" | "--help" | "-h"] => {
            eprint!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        _ => {
            let said = words.join(" ");
            anyhow::bail!("`cargo xtask {said}` is not a command\n\n{}", HELP.trim_end())
        }
    }
}
