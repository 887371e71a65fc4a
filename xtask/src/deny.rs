//! `cargo xtask deny`: what `deny.toml` requires of dependencies, checked by cargo-deny.
//!
//! cargo-deny is a program from its project's crate. It is compiled once, at the version that is
//! named here, into the target directory, without optimisation: that takes two minutes of processor
//! time, and each check takes a few seconds.
//!
//! Its check of advisories is left out: their database is a git repository, and CI reaches only the
//! registries of packages.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, ensure};

use crate::process;

const CARGO_DENY: &str = "0.20.2";

/// The packages that have a lock file.
const MANIFESTS: &[&str] = &["Cargo.toml", "fuzz/Cargo.toml"];

pub(crate) fn run() -> Result<ExitCode> {
    let program = cargo_deny()?;
    for manifest in MANIFESTS {
        let mut deny = Command::new(&program);
        deny.args(["--locked", "--config", "deny.toml", "--manifest-path", manifest]);
        deny.args(["check", "bans", "licenses", "sources"]);
        // Neither lock file has all packages that there are exceptions for.
        deny.args(["--allow", "license-exception-not-encountered"]);
        let code = process::status(deny.current_dir(process::root())).map(process::exit_code)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn cargo_deny() -> Result<PathBuf> {
    let dir = process::target_dir()?.join("deny");
    let program = dir.join("bin/cargo-deny").with_extension(std::env::consts::EXE_EXTENSION);
    if !process::is_version(&program, CARGO_DENY) {
        eprintln!("installing cargo-deny {CARGO_DENY} with cargo");
        let mut cargo = process::cargo();
        cargo.args(["install", "cargo-deny", "--version", CARGO_DENY, "--locked", "--debug"]);
        // Nobody debugs it, and information for that is a part of the time.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "false");
        process::check(cargo.args(["--quiet", "--force", "--root"]).arg(&dir))?;
        let is_here = process::is_version(&program, CARGO_DENY);
        ensure!(is_here, "cargo did not bring cargo-deny {CARGO_DENY}");
    }
    Ok(program)
}
