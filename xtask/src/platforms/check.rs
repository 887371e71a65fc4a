//! Compiles for other targets, as far as their standard libraries can be had: installed, or made
//! from their sources. V8 itself is not needed, because nothing is linked.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::{env, fs};

use anyhow::{Context, Result, bail, ensure};

use super::table::{How, PLATFORMS};
use crate::{glibc, process};

/// The library without V8.
const LIBRARY: &[&str] = &["--package", "isolet", "--no-default-features"];
/// All crates that run at users'. On Linux also their tests, which elsewhere are Linux's in part.
const ALL: &[&str] = &["--workspace", "--exclude", "isolet-models", "--exclude", "xtask"];

/// Where the standard library of a target comes from.
#[derive(Clone, Copy, PartialEq)]
enum Library {
    Installed,
    Sources,
}

pub(super) fn run(names: &[&str]) -> Result<ExitCode> {
    for name in names {
        ensure!(
            PLATFORMS.iter().any(|platform| platform.target == *name),
            "`{name}` is none of the targets that `cargo xtask platforms` names"
        );
    }
    let is_wanted = |target| names.is_empty() || names.contains(&target);
    for platform in PLATFORMS.iter().filter(|platform| is_wanted(platform.target)) {
        let target = platform.target;
        if platform.how == How::NotBuilt {
            eprintln!("{target}: does not compile, {}", platform.lacks.join("; "));
            continue;
        }
        match library(target)? {
            Some(library) => {
                let tests: &[&str] =
                    if target.contains("linux") { &["--all-targets"] } else { &[] };
                check(target, library, LIBRARY)?;
                check(target, library, &[ALL, tests].concat())?;
                eprintln!("{target}: compiles");
            }
            // Those that were asked for by name have to be checked.
            None if names.is_empty() => eprintln!(
                "{target}: not checked, there is neither its standard library nor the sources of \
                 one; `rustup target add {target}` installs it"
            ),
            None => bail!("there is no standard library for `{target}`, nor the sources of one"),
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Finds the standard library of a target.
fn library(target: &str) -> Result<Option<Library>> {
    let said = |args: &[&str]| {
        let said = Command::new("rustc").args(args).output().context("cannot run `rustc`")?;
        Ok::<_, anyhow::Error>(PathBuf::from(String::from_utf8_lossy(&said.stdout).trim()))
    };
    let installed = said(&["--print", "target-libdir", "--target", target])?;
    let is_library =
        |entry: fs::DirEntry| entry.file_name().to_string_lossy().starts_with("libstd-");
    if fs::read_dir(installed).is_ok_and(|entries| entries.flatten().any(is_library)) {
        return Ok(Some(Library::Installed));
    }
    let sources = said(&["--print", "sysroot"])?.join("lib/rustlib/src/rust/library/Cargo.lock");
    Ok(sources.is_file().then_some(Library::Sources))
}

fn check(target: &str, library: Library, build: &[&str]) -> Result<()> {
    let mut cargo = process::niced();
    cargo.args(["check", "--target", target, "--target-dir"]);
    cargo.arg(process::target_dir()?.join("platforms")).args(build);
    if library == Library::Sources {
        // Only nightly compilers have the option by themselves.
        cargo.env("RUSTC_BOOTSTRAP", "1").arg("-Zbuild-std=std,panic_unwind");
    }
    if target != host()? {
        let variable = |name: &str| format!("{name}_{}", target.replace('-', "_"));
        let tools = glibc::compiler_for(target)?;
        cargo.env(variable("CC"), tools.cc).env(variable("AR"), tools.ar);
        cargo.env("CRATE_CC_NO_DEFAULTS", "1");
        let archive = process::target_dir()?.join("platforms/no-v8");
        fs::create_dir_all(archive.parent().unwrap_or(Path::new("")))?;
        fs::write(&archive, "nothing is linked")?;
        cargo.env("RUSTY_V8_ARCHIVE", archive).env("RUSTFLAGS", "--deny=warnings");
    }
    process::check(&mut cargo)
}

fn host() -> Result<String> {
    let said = Command::new("rustc").arg("-vV").output().context("cannot run `rustc`")?;
    let said = String::from_utf8(said.stdout).context("rustc printed no UTF-8")?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).or_else(|| env::var("HOST").ok()).context("rustc names no host")
}
