//! Systems in directories: an empty Debian, and one with `busybox` and the C library alone.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::LIMIT;
use crate::bounded::{self, Ran};
use crate::process;

/// Runs a script in a root, in namespaces of its own, as a user who is not root.
const ENTER: &str = "\
mount -t proc proc \"$ROOT/proc\"
mount --rbind /dev \"$ROOT/dev\"
exec chroot --userspec=1000:1000 \"$ROOT\" /bin/sh -c \"$1\"
";

/// What the command needs: the C library of this machine, as it is divided in older ones, and the
/// compiler's, which a program for this machine alone needs.
const LIBRARIES: [&str; 5] =
    ["libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "libgcc_s.so.1"];
const LIBRARY: &str = "lib/x86_64-linux-gnu";
const LOADER: &str = "lib64/ld-linux-x86-64.so.2";

/// The home of the user.
pub(super) const HOME: &str = "/home/user";

/// A system. It is removed at the end.
pub(super) struct Root(PathBuf);

impl Root {
    /// An empty Debian, which is made once.
    pub(super) fn debian(name: &str) -> Result<Self> {
        let kept = process::target_dir()?.join("install-test/debian.tar");
        let dir = place(name)?;
        if kept.exists() {
            process::check(Command::new("tar").arg("-xf").arg(&kept).arg("-C").arg(&dir))?;
            return Self(dir).with_home();
        }
        println!("   making an empty Debian by debootstrap, once");
        let mut make = Command::new("debootstrap");
        process::check(make.args(["--variant=minbase", "bookworm"]).arg(&dir))
            .context("cannot make an empty Debian; `apt-get install debootstrap`, and be root")?;
        // What its own installation has left.
        for left in ["var/cache/apt", "var/lib/apt/lists", "var/log"] {
            super::super::empty(&dir.join(left))?;
        }
        let part = kept.with_extension("part");
        process::check(Command::new("tar").arg("-cf").arg(&part).arg("-C").arg(&dir).arg("."))?;
        fs::rename(&part, &kept).context("cannot keep the system")?;
        Self(dir).with_home()
    }

    /// Only `busybox`, and the C library if `library`.
    pub(super) fn bare(name: &str, library: bool) -> Result<Self> {
        let root = Self(place(name)?);
        for made in ["bin", "dev", "proc", "tmp", "lib64", LIBRARY] {
            fs::create_dir_all(root.0.join(made)).context("cannot make a root")?;
        }
        let busybox = root.0.join("bin/busybox");
        fs::copy("/bin/busybox", &busybox)
            .context("there is no `/bin/busybox`; `apt-get install busybox-static` has it")?;
        let mut install = Command::new(&busybox);
        let links = install.arg("--list").output().context("BusyBox does not run")?;
        for applet in String::from_utf8_lossy(&links.stdout).lines() {
            let link = root.0.join("bin").join(applet);
            if !link.exists() {
                std::os::unix::fs::symlink("busybox", &link).context("cannot make a link")?;
            }
        }
        if library {
            fs::copy(Path::new("/").join(LOADER), root.0.join(LOADER))
                .with_context(|| format!("this machine has no `/{LOADER}`"))?;
            for name in LIBRARIES {
                let library = Path::new(LIBRARY).join(name);
                fs::copy(Path::new("/").join(&library), root.0.join(&library))
                    .with_context(|| format!("this machine has no `/{}`", library.display()))?;
            }
        }
        root.with_home()
    }

    fn with_home(self) -> Result<Self> {
        let home = self.0.join(HOME.trim_start_matches('/'));
        fs::create_dir_all(&home).context("cannot make a home")?;
        std::os::unix::fs::chown(&home, Some(1000), Some(1000)).context("cannot give the home")?;
        fs::copy(process::root().join("install.sh"), self.0.join("install.sh"))
            .context("cannot copy the installer")?;
        Ok(self)
    }

    /// Runs a script there, and returns what it says.
    pub(super) fn run(&self, release: &str, script: &str) -> Result<Ran> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", ENTER, "sh"]);
        command.arg(script).env_clear().env("ROOT", &self.0).env("HOME", HOME);
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").env("ISOLET_RELEASE", release);
        let logs = self.0.with_extension("logs");
        fs::create_dir_all(&logs).context("cannot make a directory")?;
        bounded::run(&mut command, LIMIT, &logs)
    }

    /// Runs a script that has to succeed, and returns its standard output.
    pub(super) fn succeeds(&self, release: &str, script: &str) -> Result<String> {
        let ran = self.run(release, script)?;
        let Some(status) = ran.status else {
            bail!("not ended after {} s: {}", LIMIT.as_secs(), ran.stderr)
        };
        ensure!(status.success(), "`{script}` ended with {status}: {}{}", ran.stdout, ran.stderr);
        for line in ran.stderr.lines() {
            println!("   | {line}");
        }
        Ok(ran.stdout)
    }

    /// Runs a script that has to fail and to say something.
    pub(super) fn fails(&self, release: &str, script: &str, words: &str) -> Result<()> {
        let ran = self.run(release, script)?;
        let failed = ran.status.is_some_and(|status| !status.success());
        ensure!(failed && ran.stderr.contains(words), "{:?}: {}", ran.status, ran.stderr);
        for line in ran.stderr.lines() {
            println!("   | {line}");
        }
        Ok(())
    }

    /// Returns every path in it.
    pub(super) fn paths(&self) -> Result<BTreeSet<PathBuf>> {
        paths(&self.0)
    }

    /// Returns whether there is such a path, also if it is a link that leads nowhere.
    pub(super) fn has(&self, path: &str) -> bool {
        self.0.join(path.trim_start_matches('/')).symlink_metadata().is_ok()
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_dir_all(self.0.with_extension("logs"));
    }
}

/// Makes an empty directory for a root.
pub(super) fn place(name: &str) -> Result<PathBuf> {
    let dir = process::target_dir()?.join("install-test").join(name);
    super::super::empty(&dir)?;
    Ok(dir)
}

/// Returns every path below a directory.
pub(super) fn paths(dir: &Path) -> Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut next = vec![dir.to_owned()];
    while let Some(here) = next.pop() {
        for entry in fs::read_dir(&here).with_context(|| format!("`{}`", here.display()))? {
            let entry = entry.context("cannot read a directory")?;
            let kind = entry.file_type().context("cannot read a directory")?;
            if kind.is_dir() {
                next.push(entry.path());
            }
            found.insert(entry.path().strip_prefix(dir).unwrap_or(&here).to_owned());
        }
    }
    Ok(found)
}
