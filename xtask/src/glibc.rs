//! The C library that published commands need: one that is as old as V8 and Rust allow, whichever
//! is on this machine. zig links them, because it has the symbols of every version of glibc.
//!
//! Only the last step differs from other builds, so that everything that they have compiled is
//! used again. If something compiled here needs a newer symbol, that step fails and names it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, ensure};

use crate::process;

/// The version that published commands need. V8 calls `memfd_create` and `pkey_mprotect`, which
/// 2.27 has, and Rust's library calls `statx` where there is one, which 2.28 has.
pub(crate) const OLDEST: Version = Version(2, 28);

/// What links. cargo-zigbuild translates what rustc asks for to what zig understands.
const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];

/// A version of glibc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Version(u32, u32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Returns what rustc gets to link a command that needs [`OLDEST`]; nothing on systems without
/// glibc.
pub(crate) fn link_args() -> Result<Vec<String>> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Ok(Vec::new());
    }
    let linker = linker()?;
    let linker = linker.to_str().context("the target directory's name is not UTF-8")?;
    let mut args = vec!["-C".to_owned(), format!("linker={linker}")];
    if cfg!(target_arch = "x86_64") {
        // There rustc has a linker of its own, which zig need not be told of.
        args.extend(["-C", "linker-features=-lld"].map(str::to_owned));
    }
    Ok(args)
}

/// Returns what maturin names a wheel's platform by, which it then checks the command against.
pub(crate) fn wheel_platform() -> Option<String> {
    cfg!(all(target_os = "linux", target_env = "gnu"))
        .then(|| format!("manylinux_{}_{}", OLDEST.0, OLDEST.1))
}

/// Checks that a command needs no newer glibc than [`OLDEST`].
pub(crate) fn check(program: &Path) -> Result<()> {
    if !cfg!(all(target_os = "linux", target_env = "gnu")) {
        return Ok(());
    }
    let bytes =
        fs::read(program).with_context(|| format!("cannot read `{}`", program.display()))?;
    let newest = newest(&bytes).context("the command names no version of glibc")?;
    ensure!(
        newest <= OLDEST,
        "`{}` needs glibc {newest}, and published commands need {OLDEST} at most: \
         `objdump -T` shows the symbols",
        program.display()
    );
    Ok(())
}

/// Returns the newest version of glibc that a program names, among its dynamic symbols' versions.
fn newest(program: &[u8]) -> Option<Version> {
    const NAME: &[u8] = b"\0GLIBC_";
    let after = |at: usize| {
        let rest = program.get(at + NAME.len()..)?;
        let end = rest.iter().take(12).position(|byte| *byte == 0)?;
        let mut numbers = std::str::from_utf8(rest.get(..end)?).ok()?.split('.');
        let version = Version(numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?);
        Some(version)
    };
    let places = program.windows(NAME.len()).enumerate().filter(|(_, bytes)| *bytes == NAME);
    places.filter_map(|(at, _)| after(at)).max()
}

/// Programs that compile C for a target.
pub(crate) struct Tools {
    pub(crate) cc: PathBuf,
    pub(crate) ar: PathBuf,
}

/// Returns what compiles C for another target.
pub(crate) fn compiler_for(target: &str) -> Result<Tools> {
    let (processor, system) = target.split_once('-').context("a target has a system")?;
    let system = match system {
        "unknown-linux-gnu" => format!("linux-gnu.{OLDEST}"),
        "unknown-linux-musl" => "linux-musl".to_owned(),
        "apple-darwin" => "macos".to_owned(),
        other => anyhow::bail!("zig is not known to compile for `{other}`"),
    };
    let home = install()?;
    let (cc, ar) = (home.join(format!("cc-{target}")), home.join("ar"));
    write_program(&home, &cc, &format!("cc -- -target {processor}-{system}"))?;
    write_program(&home, &ar, "ar --")?;
    Ok(Tools { cc, ar })
}

/// Returns a program that links with zig.
fn linker() -> Result<PathBuf> {
    let home = install()?;
    let linker = home.join("cc");
    let processor = env::consts::ARCH;
    write_program(&home, &linker, &format!("cc -- -target {processor}-linux-gnu.{OLDEST}"))?;
    Ok(linker)
}

/// Writes a program that calls zig with these words and its own arguments.
fn write_program(home: &Path, path: &Path, words: &str) -> Result<()> {
    let (zig, cache) = (quoted(&home.join("zig")), quoted(&home.join("cache")));
    let script = format!(
        "#!/bin/sh\n\
         export CARGO_ZIGBUILD_ZIG_PATH={zig} ZIG_GLOBAL_CACHE_DIR={cache} \
         ZIG_LOCAL_CACHE_DIR={cache}\n\
         exec {} zig {words} \"$@\"\n",
        quoted(&home.join("bin/cargo-zigbuild")),
    );
    if fs::read_to_string(path).is_ok_and(|there| there == script) {
        return Ok(());
    }
    fs::write(path, script).with_context(|| format!("cannot write `{}`", path.display()))?;
    process::check(Command::new("chmod").arg("+x").arg(path))
}

/// Installs zig into `target/zig`, once.
fn install() -> Result<PathBuf> {
    let home = process::target_dir()?.join("zig");
    let (zig, list) = (home.join("zig"), home.join("packages"));
    let wanted = PACKAGES.join("\n");
    if fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) && zig.exists() {
        return Ok(home);
    }
    eprintln!("installing {} with pip", PACKAGES.join(" and "));
    process::check(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&home))?;
    let mut pip = Command::new(home.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
    process::check(pip.args(PACKAGES))?;
    let find = "import os, ziglang; print(os.path.dirname(ziglang.__file__))";
    let found = Command::new(home.join("bin/python")).args(["-c", find]).output();
    let found = found.context("cannot ask where zig is")?;
    let found = String::from_utf8(found.stdout).context("where zig is is not UTF-8")?;
    let found = Path::new(found.trim()).join("zig");
    ensure!(found.is_file(), "pip did not bring zig: there is no `{}`", found.display());
    std::os::unix::fs::symlink(&found, &zig)
        .with_context(|| format!("cannot make `{}`", zig.display()))?;
    fs::write(&list, &wanted).with_context(|| format!("cannot write `{}`", list.display()))?;
    Ok(home)
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_that_a_program_names_is_found() {
        let program = b"\0libc.so.6\0GLIBC_2.9\0GLIBC_2.28\0GLIBC_2.2.5\0GLIBC_PRIVATE\0GLIBC_2.3";
        assert_eq!(newest(program), Some(Version(2, 28)));
        assert_eq!(newest(b"\0GLIBC_2.34\0GLIBC_2.28\0"), Some(Version(2, 34)));
        assert_eq!(newest(b"no program; GLIBC_2.99 is no symbol's version"), None);
    }

    #[test]
    fn a_command_that_needs_a_newer_one_is_refused_by_name() {
        if !cfg!(all(target_os = "linux", target_env = "gnu")) {
            return;
        }
        let path = env::temp_dir().join(format!("isolet-xtask-glibc-{}", std::process::id()));
        fs::write(&path, b"\0GLIBC_2.28\0").unwrap();
        check(&path).unwrap();
        fs::write(&path, b"\0GLIBC_2.34\0").unwrap();
        let error = check(&path).unwrap_err().to_string();
        assert!(error.contains("needs glibc 2.34, and published commands need 2.28"), "{error}");
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        assert_eq!(quoted(Path::new("/a b/it's")), r"'/a b/it'\''s'");
    }
}
