//! Reads and writes the guest's files on behalf of the session's owner.

use std::path::Path;
use std::sync::Arc;

use super::Session;
use super::shared::Shared;
use super::variables::{completed, unusable};
use crate::data::error::{Error, ErrorKind};
use crate::data::value::Value;
use crate::fs::{ExportDirectory, FileChange};
use crate::protocol::{Command, Report};

/// The files of a session, by guest path: its in-memory files and those beneath mount points.
///
/// The guest carries out these calls, under its own policy: a read-only mount stays read-only.
/// Every call is bounded by [`Limits::max_run_time`](crate::Limits::max_run_time) and
/// [`Limits::max_value_bytes`](crate::Limits::max_value_bytes).
///
/// ```no_run
/// # async fn example(session: &mut isolet::Session) -> Result<(), isolet::Error> {
/// session.files().put("/home/user/in.csv", "a,b\n1,2\n").await?;
/// session.run("open('out.csv', 'w').write(open('in.csv').read().upper())").await?;
/// assert_eq!(session.files().get("out.csv").await?, Some(b"A,B\n1,2\n".to_vec()));
/// # Ok(()) }
/// ```
pub struct Files<'a> {
    shared: Arc<Shared>,
    _session: std::marker::PhantomData<&'a mut Session>,
}

/// An entry in a directory of the guest: a file or a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileEntry {
    /// Its name.
    pub name: String,
    /// `true` if it is a directory.
    pub is_directory: bool,
    /// Its size in bytes.
    pub size: u64,
}

impl<'a> Files<'a> {
    pub(super) fn new(session: &'a mut Session) -> Self {
        Self { shared: Arc::clone(&session.shared), _session: std::marker::PhantomData }
    }

    /// Writes a file, and creates the directories above it if they are missing. An existing file is
    /// replaced.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`](crate::ErrorKind::Value) if the contents are too large or the guest
    /// cannot write the file, with Python's reason; the session stays usable. Otherwise as
    /// [`Session::run`].
    pub async fn put(&self, path: &str, contents: impl Into<Vec<u8>>) -> Result<(), Error> {
        let contents = contents.into();
        let limit = self.shared.limits.value_bytes();
        if contents.len() as u64 > limit {
            let size = contents.len();
            let message = format!(
                "the file `{path}` has {size} bytes, the limit is {limit} bytes \
                 (`Limits::max_value_bytes`)"
            );
            return Err(unusable(message));
        }
        let command = Command::PutFile { path: path.to_owned(), contents };
        let report = self.shared.quick(command).await?;
        completed(&report, &format!("the guest could not write `{path}`"))
    }

    /// Reads a file. Returns `None` if it does not exist.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub async fn get(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        let max_bytes = self.shared.limits.value_bytes();
        let command = Command::GetFile { path: path.to_owned(), max_bytes };
        let report = self.shared.quick(command).await?;
        completed(&report, &format!("the guest could not read `{path}`"))?;
        match report {
            Report { value_error: Some(reason), .. } => Err(unusable(reason)),
            Report { value: Some(Value::Bytes(bytes)), .. } => Ok(Some(bytes)),
            Report { flag: false, .. } => Ok(None),
            _ => Err(unusable(format!("the guest gave no bytes for `{path}`"))),
        }
    }

    /// Lists a directory, sorted by name.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub async fn list(&self, path: &str) -> Result<Vec<FileEntry>, Error> {
        let report = self.shared.quick(Command::ListFiles(path.to_owned())).await?;
        completed(&report, &format!("the guest could not list `{path}`"))?;
        let value = report.value.unwrap_or(Value::None);
        let entries = value.as_list().map(|entries| entries.iter().map(entry).collect());
        entries.flatten().ok_or_else(|| {
            Error::new(ErrorKind::Value, format!("the guest gave no listing of `{path}`"))
                .with_session_alive()
        })
    }

    /// Removes a file or an empty directory. Returns `true` if it existed.
    ///
    /// # Errors
    ///
    /// As [`put`](Self::put).
    pub async fn remove(&self, path: &str) -> Result<bool, Error> {
        let report = self.shared.quick(Command::DeleteFile(path.to_owned())).await?;
        completed(&report, &format!("the guest could not remove `{path}`"))?;
        Ok(report.flag)
    }
}

/// A change that the guest has made in an overlay, a mount whose writes stay in memory.
impl Files<'_> {
    /// Lists the guest's changes in the overlay at the guest path `mount`, sorted by path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no overlay is mounted there.
    pub fn changes(&self, mount: &str) -> Result<Vec<FileChange>, Error> {
        let index = self.overlay(mount)?;
        Ok(self.shared.host.files().changes(index))
    }

    /// Writes the files that the guest has created or changed in the overlay at the guest path
    /// `mount` to a directory of the host. The directory is created, or must be empty. Returns the
    /// number of files written.
    ///
    /// Files that the guest has removed are not exported; [`changes`](Self::changes) lists them.
    /// Only their owner can read and write the exported files.
    ///
    /// The host path is resolved now. If it leads through a directory that a guest may write to,
    /// call [`open_export`](Self::open_export) before the guest runs.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](crate::ErrorKind::Config) if no overlay is mounted there, or the
    /// directory cannot be used.
    pub fn export(&self, mount: &str, directory: impl AsRef<Path>) -> Result<u64, Error> {
        self.export_to(mount, &self.open_export(mount, directory)?)
    }

    /// Opens a directory of the host to which the overlay at the guest path `mount` can be
    /// exported. The directory is created, or must be empty.
    ///
    /// The host path is resolved now and never again. If this is called before guest code runs,
    /// nothing that the guest changes on the host through a writable mount can redirect the export.
    ///
    /// # Errors
    ///
    /// As [`export`](Self::export).
    pub fn open_export(
        &self,
        mount: &str,
        directory: impl AsRef<Path>,
    ) -> Result<ExportDirectory, Error> {
        let index = self.overlay(mount)?;
        self.shared.host.files().open_export(index, directory.as_ref())
    }

    /// Exports to a directory that was opened before, as [`export`](Self::export) does. The
    /// directory must still be empty.
    ///
    /// # Errors
    ///
    /// As [`export`](Self::export).
    pub fn export_to(&self, mount: &str, directory: &ExportDirectory) -> Result<u64, Error> {
        let index = self.overlay(mount)?;
        self.shared.host.files().export(index, directory)
    }

    fn overlay(&self, mount: &str) -> Result<usize, Error> {
        self.shared.host.overlay(mount).ok_or_else(|| {
            let message = format!("no overlay is mounted at `{}`", mount.escape_debug());
            Error::new(ErrorKind::Config, message).with_session_alive()
        })
    }
}

impl std::fmt::Debug for Files<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files").field("session", &self.shared.id).finish_non_exhaustive()
    }
}

fn entry(value: &Value) -> Option<FileEntry> {
    match value.as_list()? {
        [Value::Str(name), Value::Bool(is_directory), Value::Int(size)] => Some(FileEntry {
            name: name.clone(),
            is_directory: *is_directory,
            size: u64::try_from(*size).ok()?,
        }),
        _ => None,
    }
}
