//! Fetches with npm: the user's own client, with its registry and proxy settings, packs the
//! release.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use tar::Archive;

use super::{Failure, place};
use crate::download::place::wrong_digest;
use crate::error::plain;
use crate::lock::{Lock, LockedFile};
use crate::{Digest, Error, Progress};

/// The time limit of the npm client.
const TIMEOUT: Duration = Duration::from_mins(10);
/// How much of the client's standard error is read, and how much of it is shown.
const MAX_COMPLAINT_BYTES: u64 = 64 << 10;
const MAX_COMPLAINT_CHARS: usize = 200;
/// The maximum size of the unpacked files, in bytes. The archive's own digest is checked before.
const MAX_UNPACKED_BYTES: u64 = 512 << 20;

/// Extracts `files` from the release's npm package into `dir`.
pub(super) fn fetch_files(
    lock: &Lock,
    files: &[&LockedFile],
    dir: &Path,
    npm: &OsStr,
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let temporary = TemporaryDir::create(dir.join(".npm"))?;
    let archive = pack(lock, &temporary.0, npm, progress)?;
    unpack(&archive, files, dir, progress)
}

/// Makes npm download the package into `dir`. Checks the archive and returns it.
fn pack(
    lock: &Lock,
    dir: &Path,
    npm: &OsStr,
    progress: &mut dyn Progress,
) -> Result<Vec<u8>, Failure> {
    let tarball = lock.tarball();
    progress.start(&format!("{} from npm", tarball.name()), 0);
    let child = Command::new(npm)
        .arg("pack")
        .arg(format!("{}@{}", tarball.package(), lock.version()))
        .args(["--pack-destination", ".", "--ignore-scripts", "--loglevel=error"])
        .args(["--no-progress", "--no-update-notifier", "--fetch-timeout=60000"])
        .args([
            "--fetch-retries=1",
            "--fetch-retry-mintimeout=500",
            "--fetch-retry-maxtimeout=2000",
        ])
        .current_dir(dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            Failure::Remote(match error.kind() {
                io::ErrorKind::NotFound => "npm is not on the `PATH`".to_owned(),
                _ => format!("npm does not start ({})", plain(&error)),
            })
        })?;
    let (status, complaint) = finish(child).map_err(Failure::Remote)?;
    if !status.success() {
        return Err(Failure::Remote(format!("npm said `{}`", one_line(&complaint, status))));
    }
    progress.finish();
    let mut archive = Vec::new();
    File::open(dir.join(tarball.name()))
        .and_then(|file| file.take(tarball.size() + 1).read_to_end(&mut archive))
        .map_err(|error| Failure::Remote(format!("npm's archive: {}", plain(&error))))?;
    let got = Digest::of(&archive);
    if got != tarball.sha256() {
        let name = format!("`{}`", tarball.name());
        let wrong = wrong_digest(&name, tarball.sha256(), got);
        return Err(Failure::Remote(format!("npm's {wrong}")));
    }
    Ok(archive)
}

/// Waits for the client and reads its standard error.
fn finish(mut child: Child) -> Result<(ExitStatus, String), String> {
    let lost = |error: io::Error| format!("npm is lost ({})", plain(&error));
    let mut complaint = Vec::new();
    let stderr = child.stderr.take();
    let status = thread::scope(|scope| {
        scope.spawn(|| {
            if let Some(mut stderr) = stderr {
                // If reading fails, only the message is shorter. The rest must be drained.
                let _ = (&mut stderr).take(MAX_COMPLAINT_BYTES).read_to_end(&mut complaint);
                let _ = io::copy(&mut stderr, &mut io::sink());
            }
        });
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = child.try_wait().map_err(lost)? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                child.kill().and_then(|()| child.wait()).map_err(lost)?;
                return Err(format!("npm was not done after {} seconds", TIMEOUT.as_secs()));
            }
            thread::sleep(Duration::from_millis(20));
        }
    })?;
    Ok((status, String::from_utf8_lossy(&complaint).into_owned()))
}

/// Returns the most informative line of npm's standard error, shortened for a sentence.
fn one_line(complaint: &str, status: ExitStatus) -> String {
    let lines = complaint.lines().map(|line| {
        let line = line.trim();
        line.strip_prefix("npm error").or(line.strip_prefix("npm ERR!")).unwrap_or(line).trim()
    });
    let lines: Vec<_> = lines.filter(|line| !line.is_empty()).collect();
    let detail = |line: &&&str| {
        let first = line.split_whitespace().next();
        !["code", "syscall", "errno", "path", "dest", "at"].contains(&first.unwrap_or_default())
    };
    let reason = lines.iter().find(|line| line.contains("reason:"));
    let line = reason.or(lines.iter().find(detail)).or(lines.first());
    let text = line.map_or_else(|| status.to_string(), |line| line.replace('`', "'"));
    match text.char_indices().nth(MAX_COMPLAINT_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Writes `files` from the archive into `dir`.
fn unpack(
    archive: &[u8],
    files: &[&LockedFile],
    dir: &Path,
    progress: &mut dyn Progress,
) -> Result<(), Failure> {
    let broken = |error: io::Error| Failure::Remote(format!("npm's archive: {}", plain(&error)));
    let mut missing = files.to_vec();
    progress.start("unpacking", files.iter().map(|file| file.size()).sum());
    let mut archive = Archive::new(GzDecoder::new(archive).take(MAX_UNPACKED_BYTES));
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path_bytes();
        let Some(name) = path.strip_prefix(b"package/") else {
            continue;
        };
        let Some(at) = missing.iter().position(|file| file.name().as_bytes() == name) else {
            continue;
        };
        let file = missing.swap_remove(at);
        place::write(&mut entry, dir, file, progress)?;
    }
    if let Some(file) = missing.first() {
        return Err(Failure::Remote(format!("npm's archive has no `{}`", file.name())));
    }
    progress.finish();
    Ok(())
}

/// A directory that is removed with all its contents. If an earlier process left one, it is emptied
/// first.
struct TemporaryDir(PathBuf);

impl TemporaryDir {
    fn create(path: PathBuf) -> Result<Self, Error> {
        let dir = Self(path);
        dir.remove();
        fs::create_dir(&dir.0).map_err(|cause| Error::write(&dir.0, cause))?;
        Ok(dir)
    }

    fn remove(&self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl Drop for TemporaryDir {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[track_caller]
    fn check(complaint: &str, expected: &str) {
        assert_eq!(one_line(complaint, ExitStatus::from_raw(256)), expected);
    }

    #[test]
    fn complaint_becomes_its_most_telling_line() {
        check(
            "npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error errno ECONNREFUSED\n\
             npm error FetchError: request to http://127.0.0.1:9/x failed, reason: connect refused\n\
             npm error     at ClientRequest.<anonymous> (index.js:130:14)\n",
            "FetchError: request to http://127.0.0.1:9/x failed, reason: connect refused",
        );
        check(
            "npm error code ETARGET\nnpm error notarget No matching version found for pyodide@9.\n",
            "notarget No matching version found for pyodide@9.",
        );
        check("npm error code EX\n", "code EX");
        check("env: `node`: No such file or directory\n", "env: 'node': No such file or directory");
        check("", "exit status: 1");
        check(&"ä".repeat(300), &format!("{}…", "ä".repeat(200)));
    }
}
