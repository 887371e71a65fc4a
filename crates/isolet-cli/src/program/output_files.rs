//! Writes the files that a run has made to a directory of the host: `--files-dir`.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use isolet::blocking::Session;
use isolet::{Execution, Limits, SessionState};

use crate::args::permissions::PermissionArgs;
use crate::show::directory;
use crate::show::terminal;

/// Directories of the guest whose files get their names beneath them. Others keep the whole path.
const HOMES: [&str; 2] = ["/home/user/", "/here/"];
/// The most files that a note names.
const NAMED: usize = 3;

/// The directory that receives the files.
pub(crate) struct OutputFiles {
    path: PathBuf,
    directory: Dir,
}

impl OutputFiles {
    /// Opens the directory. It is created, but not its parents.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Ok(Self { path: path.to_owned(), directory: directory::open(path, "--files-dir")? })
    }

    /// Writes the files that these runs have made, except for those that are on the host already.
    /// Existing files of the same names are replaced.
    pub(crate) fn write(
        &self,
        session: &mut Session,
        runs: &[&Execution],
        permissions: &PermissionArgs,
    ) -> Result<()> {
        let mut failures = Vec::new();
        let mut names = BTreeSet::new();
        for path in paths(runs, permissions) {
            let name = name(path);
            let written = if names.insert(name) {
                self.copy(session, path, name)
            } else {
                Err(anyhow!("another file has the name `{name}`"))
            };
            failures.extend(written.err().map(|error| (path, error)));
        }
        let directory = self.path.display();
        if let Some((path, error)) = failures.first() {
            let others = match failures.len() - 1 {
                0 => String::new(),
                others => format!(", nor were {others} others"),
            };
            return Err(failure(format!(
                "`{path}` was not written to `{directory}`: {error}{others}"
            )));
        }
        let unlisted: u64 = runs.iter().map(|run| run.truncated().files).sum();
        if unlisted > 0 {
            return Err(failure(format!(
                "{unlisted} files were not written to `{directory}`: a run lists at most {}",
                Limits::DEFAULT_FILES
            )));
        }
        Ok(())
    }

    fn copy(&self, session: &mut Session, path: &str, name: &str) -> Result<()> {
        if session.state() != SessionState::Ready {
            bail!("it is lost, as the session has ended");
        }
        let contents = session.files().get(path)?;
        let contents = contents.ok_or_else(|| anyhow!("it is not there"))?;
        if name.chars().any(char::is_control) {
            bail!("its name has control characters");
        }
        let mut directory = self.directory.try_clone()?;
        let mut names = name.split('/').peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                directory::replace(&directory, name, &contents)?;
                break;
            }
            match directory.create_dir(name) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(error.into());
                }
                _ => directory = directory.open_dir_nofollow(name)?,
            }
        }
        Ok(())
    }
}

/// Says on a terminal which files a run has made that are gone with it.
pub(crate) fn report_lost(runs: &[&Execution], permissions: &PermissionArgs) -> io::Result<()> {
    let mut stderr = io::stderr();
    let lost: Vec<&str> = paths(runs, permissions)
        .into_iter()
        .filter(|path| HOMES.iter().any(|home| path.starts_with(home)))
        .collect();
    if lost.is_empty() || !stderr.is_terminal() {
        return Ok(());
    }
    let named = lost.iter().take(NAMED).map(|path| format!("`{path}`")).collect::<Vec<_>>();
    let more = if lost.len() > NAMED { ", ..." } else { "" };
    let note = format!(
        "the guest has written {}{more} in its memory; `--files-dir DIR` keeps such files",
        named.join(", ")
    );
    writeln!(stderr, "note: {}", terminal::for_stderr(&note))
}

/// Makes an error about files.
fn failure(message: String) -> anyhow::Error {
    io::Error::other(message).into()
}

/// Returns the guest paths of the files that these runs have made, without those on the host.
fn paths<'a>(runs: &[&'a Execution], permissions: &PermissionArgs) -> BTreeSet<&'a str> {
    let files = runs.iter().flat_map(|run| run.files()).map(|file| file.path.as_str());
    files.filter(|path| !permissions.is_written_on_host(path)).collect()
}

/// Returns the name of a guest's file in the directory. The library gives absolute paths without
/// `.` and `..`.
fn name(path: &str) -> &str {
    let beneath = HOMES.iter().find_map(|home| path.strip_prefix(home));
    beneath.unwrap_or_else(|| path.trim_start_matches('/'))
}
