//! `cargo xtask fuzz`: runs each fuzz target for a fixed time, without `cargo fuzz` and on the same
//! toolchain as everything else.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};

use crate::{compiler, process, side_by_side};

/// How long all targets run by default, side by side, in seconds.
const ALL_SECONDS: usize = 60;

/// The most seconds that a target runs by default.
const SECONDS: u32 = 10;

/// The compiler flags that `cargo fuzz` uses: code counts what it executes and exposes its
/// comparisons. The passes are LLVM's own, so the stable toolchain has them.
const FLAGS: [&str; 6] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The limits of an input: seconds until it counts as endless, and megabytes until it counts as too
/// large.
const LIMITS: [&str; 2] = ["-timeout=10", "-rss_limit_mb=1024"];

/// How the targets are built: the names of Cargo's profiles in `fuzz/Cargo.toml`.
#[derive(Clone, Copy)]
enum Profile {
    /// For hours of fuzzing.
    Release,
    /// Is built sooner, and executes half as many inputs a second.
    Quick,
}

impl Profile {
    fn name(self) -> &'static str {
        match self {
            Self::Release => "release",
            Self::Quick => "quick",
        }
    }
}

/// The options of the command line.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    /// How long each target runs.
    seconds: Option<u32>,
    /// A single input to run instead of searching for others.
    input: Option<PathBuf>,
    /// The targets to run; all if empty.
    targets: Vec<String>,
}

/// Builds the targets and runs them.
pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    let asked = Asked::parse(args)?;
    let all = targets()?;
    let targets = if asked.targets.is_empty() { &all } else { &asked.targets };
    if let Some(unknown) = targets.iter().find(|name| !all.contains(name)) {
        bail!("there is no fuzz target `{unknown}`; there are {}", all.join(", "));
    }
    let profile = if args.is_empty() { Profile::Quick } else { Profile::Release };
    let programs = build(process::cargo(), profile, targets)?;
    let failed = Mutex::new(Vec::new());
    let processors = side_by_side::processors();
    let seconds = asked.seconds.unwrap_or_else(|| share(targets.len(), processors));
    side_by_side::each(processors, targets, |_, target| {
        let program = programs.join(target).with_extension(std::env::consts::EXE_EXTENSION);
        let passed = match &asked.input {
            Some(input) => {
                process::status(Command::new(program).args(LIMITS).arg(input))?.success()
            }
            None => search(target, &program, seconds)?,
        };
        if !passed {
            failed.lock().unwrap_or_else(PoisonError::into_inner).push(target.as_str());
        }
        Ok(())
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if failed.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("fuzzing found something in {}", failed.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Returns how long each of this many targets runs, so that all of them together take a minute.
fn share(targets: usize, processors: usize) -> u32 {
    let share = ALL_SECONDS * processors / targets.max(1);
    u32::try_from(share).unwrap_or(SECONDS).clamp(1, SECONDS)
}

impl Asked {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut asked = Self { seconds: None, input: None, targets: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.to_str().unwrap_or_default() {
                "--seconds" => {
                    let value = args.next().context("`--seconds` needs a number")?;
                    let number = value.to_str().and_then(|value| value.parse().ok());
                    let number = number.filter(|seconds| *seconds > 0);
                    asked.seconds = Some(number.context("`--seconds` needs a number above 0")?);
                }
                "--input" => {
                    let file = args.next().context("`--input` needs a file")?;
                    let file = fs::canonicalize(file).context("the file of `--input` is gone")?;
                    asked.input = Some(file);
                }
                option if option.starts_with('-') => bail!("`{option}` is not an option of `fuzz`"),
                target => asked.targets.push(target.to_owned()),
            }
        }
        Ok(asked)
    }
}

/// Builds what [`run`] runs without arguments, with the time that other processes leave: what runs
/// beside it has limits of time.
pub(crate) fn build_beside() -> Result<()> {
    build(process::niced(), Profile::Quick, &targets()?).map(drop)
}

/// Returns the names of the targets, which are those of their files.
fn targets() -> Result<Vec<String>> {
    let dir = process::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&dir).context("cannot read `fuzz/fuzz_targets`")?;
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.context("cannot read `fuzz/fuzz_targets`")?.file_name();
        names.extend(name.to_string_lossy().strip_suffix(".rs").map(str::to_owned));
    }
    names.sort();
    Ok(names)
}

/// Returns a separate target directory for fuzzing. With a shared one, the different flags would
/// cause everything to be rebuilt.
fn target_dir() -> Result<PathBuf> {
    Ok(process::target_dir()?.join("fuzz"))
}

/// Builds targets by `cargo` and returns the directory that contains them. Clippy's compiler builds
/// them: `cargo clippy` would check all their dependencies first, which the build does again.
fn build(mut cargo: Command, profile: Profile, targets: &[String]) -> Result<PathBuf> {
    let triple = host()?;
    let target_dir = target_dir()?;
    cargo.args(["build", "--profile", profile.name(), "--manifest-path", "fuzz/Cargo.toml"]);
    cargo.args(["--target", &triple]);
    cargo.arg("--target-dir").arg(&target_dir);
    cargo.args(targets.iter().flat_map(|name| ["--bin", name]));
    // With `--target`, these flags do not apply to build scripts, which do not link libFuzzer.
    cargo.env("CARGO_ENCODED_RUSTFLAGS", FLAGS.join("\x1f"));
    cargo.env(compiler::WRAPPER, "clippy-driver").envs(compiler::DENY_WARNINGS);
    process::check(&mut cargo)?;
    Ok(target_dir.join(triple).join(profile.name()))
}

/// Returns the compiler's name for this machine's platform.
fn host() -> Result<String> {
    let mut rustc = Command::new("rustc");
    let output = rustc.arg("-vV").current_dir(process::root()).output();
    let output = output.context("cannot run `rustc -vV`")?;
    let text = String::from_utf8(output.stdout).context("`rustc -vV` is not UTF-8")?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("`rustc -vV` names no host")
}

/// Runs a target for `seconds` seconds. Prints a summary, and returns `true` if it found nothing.
fn search(target: &str, program: &Path, seconds: u32) -> Result<bool> {
    let root = process::root();
    let found = target_dir()?.join("corpus").join(target);
    let artifacts = root.join("fuzz/artifacts").join(target);
    for dir in [&found, &artifacts] {
        fs::create_dir_all(dir).with_context(|| format!("cannot make `{}`", dir.display()))?;
    }
    let mut prefix = OsString::from("-artifact_prefix=");
    prefix.push(artifacts.join(""));
    let mut command = Command::new(program);
    command.args(LIMITS).arg(format!("-max_total_time={seconds}")).arg(prefix);
    // New inputs go to the first directory, so that the seeds do not change.
    command.arg(found).arg(root.join("fuzz/corpus").join(target));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    eprintln!("fuzz {target}: {seconds} s");
    let output = command.output().with_context(|| format!("cannot run the target `{target}`"))?;
    let log = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        let summary = summary(&log).with_context(|| format!("`{target}` said nothing"))?;
        eprintln!("fuzz {target}: {summary}");
        return Ok(true);
    }
    eprint!("{}", tail(&log));
    match log.lines().find_map(|line| line.split_once("Test unit written to ")) {
        Some((_, path)) => {
            eprintln!("fuzz {target}: {} with `{path}`", output.status);
            eprintln!("again: cargo xtask fuzz --input {path} {target}");
        }
        None => eprintln!("fuzz {target}: {}", output.status),
    }
    Ok(false)
}

/// Returns the summary of a run in libFuzzer's last line.
fn summary(log: &str) -> Option<String> {
    let line = log.lines().rev().find(|line| line.starts_with('#') && line.contains("DONE"))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let after = |name| words.iter().skip_while(|word| **word != name).nth(1).copied();
    let runs = words.first()?.strip_prefix('#')?;
    let (edges, inputs, rate) = (after("cov:")?, after("corp:")?, after("exec/s:")?);
    let inputs = inputs.split('/').next().unwrap_or(inputs);
    Some(format!("{runs} executions, {rate} a second, {edges} edges covered by {inputs} inputs"))
}

/// Returns the end of a failed run's log, as much as a person reads.
fn tail(log: &str) -> String {
    const LINES: usize = 60;
    let lines: Vec<&str> = log.lines().collect();
    let start = lines.len().saturating_sub(LINES);
    lines.iter().skip(start).flat_map(|line| [*line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_in_any_order_and_targets_are_all_by_default() {
        let parse = |line: &str| {
            Asked::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
        };
        let none = Asked { seconds: None, input: None, targets: Vec::new() };
        assert_eq!(parse("").unwrap(), none);
        let targets = vec!["value".into(), "wheel".into()];
        let two = Asked { seconds: Some(3), input: None, targets };
        assert_eq!(parse("value --seconds 3 wheel").unwrap(), two);
        for wrong in ["--seconds", "--seconds x", "--seconds 0", "--fast", "--input"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn all_targets_take_a_minute_and_a_few_ten_seconds_each() {
        assert_eq!((share(27, 2), share(2, 2), share(1000, 2)), (4, 10, 1));
    }

    #[test]
    fn every_target_has_its_program_and_its_seeds() {
        let manifest = fs::read_to_string(process::root().join("fuzz/Cargo.toml")).unwrap();
        for target in targets().unwrap() {
            assert!(manifest.contains(&format!("[[bin]]\nname = \"{target}\"\n")), "{target}");
            let seeds = fs::read_dir(process::root().join("fuzz/corpus").join(&target)).unwrap();
            assert!((5..).contains(&seeds.count()), "{target} has too few seeds");
        }
    }

    #[test]
    fn the_last_line_of_libfuzzer_is_told_in_words() {
        let log = "#0\tREAD units: 5\n#1048576\tDONE   cov: 377 ft: 4 corp: 12/3Kb lim: 64 \
                   exec/s: 524288 rss: 29Mb\nDone 1048576 runs in 2 second(s)\n";
        assert_eq!(
            summary(log).unwrap(),
            "1048576 executions, 524288 a second, 377 edges covered by 12 inputs"
        );
        assert_eq!(summary("#3 INITED cov: 1\n"), None);
    }
}
