//! The files of a release, and of releases that are old, damaged or do not run, behind a server on
//! loopback.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};
use isolet_pyodide_assets::Digest;

use super::super::{SUMS, directory, pack};
use crate::{dist, process};

/// Says the address on which it serves a directory: one that was free.
const SERVER: &str = "\
import functools, http.server, sys
class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(
    ('127.0.0.1', 0), functools.partial(Quiet, directory=sys.argv[1]))
print(f'http://127.0.0.1:{server.server_port}', flush=True)
server.serve_forever()
";

/// The version of the release that is older.
pub(super) const OLD: &str = "0.0.9";

/// A page of the manual that only the older one has.
pub(super) const GONE: &str = "share/man/man1/isolet-gone.1";

/// The server, and what it serves. Both are ended and removed at the end.
pub(super) struct Served {
    dir: PathBuf,
    server: Child,
    address: String,
}

impl Served {
    pub(super) fn start() -> Result<Self> {
        let dir = process::target_dir()?.join("install-test/served");
        super::super::empty(&dir)?;
        let files = directory()?;
        let version = dist::version()?;
        let new = dir.join("new");
        fs::create_dir(&new).context("cannot make the directory that is served")?;
        for entry in fs::read_dir(&files).with_context(|| {
            format!("there is no `{}`; `cargo xtask release` makes it", files.display())
        })? {
            let path = entry.context("cannot read the release")?.path();
            link(&path, &new.join(path.file_name().context("a file has no name")?))?;
        }
        let name = dist::name(&version);
        let unpacked = dir.join("unpacked");
        fs::create_dir(&unpacked).context("cannot make a directory")?;
        let archive = format!("{name}.tar.gz");
        let mut tar = Command::new("tar");
        process::check(tar.arg("-xzf").arg(new.join(&archive)).arg("-C").arg(&unpacked))?;

        let old = unpacked.join(dist::name(OLD));
        fs::rename(unpacked.join(&name), &old).context("cannot rename what was unpacked")?;
        fs::write(old.join(GONE), ".TH GONE 1\n").context("cannot write a page")?;
        release(&dir.join("old"), &old)?;
        fs::write(old.join("bin/isolet"), "#!/bin/sh\necho 'no such C library' >&2\nexit 127\n")
            .context("cannot write a program")?;
        let broken = unpacked.join(&name);
        fs::rename(&old, &broken).context("cannot rename what was unpacked")?;
        release(&dir.join("broken"), &broken)?;
        fs::remove_dir_all(&unpacked).context("cannot remove what was unpacked")?;

        let damaged = dir.join("damaged");
        fs::create_dir(&damaged).context("cannot make a directory")?;
        link(&new.join(SUMS), &damaged.join(SUMS))?;
        let bytes = fs::read(new.join(&archive)).context("cannot read the archive")?;
        fs::write(damaged.join(&archive), &bytes[..bytes.len() / 2])
            .context("cannot write an archive")?;

        let mut python = Command::new("python3");
        python.args(["-c", SERVER]).arg(&dir).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = process::spawn(&mut python)?;
        let mut address = String::new();
        let said = child.stdout.take().context("the server has no output")?;
        let read = BufReader::new(said).read_line(&mut address);
        let served = Self { dir, server: child, address: address.trim().to_owned() };
        read.context("the server said no address")?;
        Ok(served)
    }

    /// Returns the address of one of the releases.
    pub(super) fn address(&self, release: &str) -> String {
        format!("{}/{release}", self.address)
    }

    /// Returns the file of the release whose name begins and ends so.
    pub(super) fn file(&self, start: &str, end: &str) -> Result<PathBuf> {
        let entries = fs::read_dir(self.dir.join("new")).context("cannot read the release")?;
        let mut paths = entries.flatten().map(|entry| entry.path());
        let found = paths.find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(start) && name.ends_with(end)
        });
        found.with_context(|| format!("the release has no `{start}*{end}`"))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // Both may be gone already.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Makes a release of one archive.
fn release(dir: &Path, content: &Path) -> Result<()> {
    fs::create_dir(dir).context("cannot make a directory")?;
    let name = content.file_name().context("a directory has no name")?.to_string_lossy();
    let archive = dir.join(format!("{name}.tar.gz"));
    pack(content, &archive)?;
    let digest = Digest::of(&fs::read(&archive).context("cannot read what was packed")?);
    fs::write(dir.join(SUMS), format!("{digest}  {name}.tar.gz\n")).context("cannot write digests")
}

/// Has a second name for a file, without another copy of it.
fn link(from: &Path, to: &Path) -> Result<()> {
    fs::hard_link(from, to).with_context(|| format!("cannot link `{}`", from.display()))
}
