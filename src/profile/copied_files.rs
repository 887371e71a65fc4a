//! Files of the host as copies in the guest, at `/sandbox/NAME`, written back when they have changed:
//! how DSPy gives its code files.

use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};
use crate::session::Session;

/// The guest's directory of copied files.
pub const SANDBOX: &str = "/sandbox";

/// Files of the host that a guest gets copies of.
#[derive(Clone, Debug, Default)]
pub struct CopiedFiles {
    files: Vec<CopiedFile>,
}

#[derive(Clone, Debug)]
struct CopiedFile {
    host: PathBuf,
    guest: String,
    writes: bool,
    /// What the host's file holds, as far as we know; for files that are written back.
    contents: Option<Vec<u8>>,
}

impl CopiedFiles {
    /// Names the files to read and those to read and write. Nothing is read yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a path has no file name, or two have the same.
    pub fn new(
        read: impl IntoIterator<Item = PathBuf>,
        write: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, Error> {
        let mut files = Self::default();
        // A file that is in both is to be written.
        for path in write {
            files.add(path, true)?;
        }
        for path in read {
            if !files.files.iter().any(|file| file.host == path) {
                files.add(path, false)?;
            }
        }
        Ok(files)
    }

    fn add(&mut self, host: PathBuf, writes: bool) -> Result<(), Error> {
        let name = host.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
            let message = format!("`{}` names no file that a guest could see", host.display());
            Error::new(ErrorKind::Config, message)
        })?;
        let guest = format!("{SANDBOX}/{name}");
        if let Some(other) = self.files.iter().find(|file| file.guest == guest) {
            if other.host == host {
                return Ok(());
            }
            let (one, two) = (other.host.display(), host.display());
            let message = format!("`{one}` and `{two}` would both be `{guest}` in the guest");
            return Err(Error::new(ErrorKind::Config, message));
        }
        self.files.push(CopiedFile { host, guest, writes, contents: None });
        Ok(())
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns whether the guest gets a copy of this file, and where.
    #[must_use]
    pub fn guest_path(&self, host: &Path) -> Option<&str> {
        self.files.iter().find(|file| file.host == host).map(|file| file.guest.as_str())
    }

    /// Copies all of them into the session. A file to write that is not there is made, empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if one cannot be read; otherwise as
    /// [`Files::put`](crate::Files::put).
    pub async fn copy_in(&mut self, session: &mut Session) -> Result<(), Error> {
        for file in &mut self.files {
            let contents = match std::fs::read(&file.host) {
                Err(error) if file.writes && error.kind() == std::io::ErrorKind::NotFound => {
                    std::fs::write(&file.host, []).map(|()| Vec::new())
                }
                read => read,
            };
            let contents = contents.map_err(|error| {
                let message = format!("`{}` cannot be read: {error}", file.host.display());
                Error::new(ErrorKind::Config, message).with_session_alive()
            })?;
            if file.writes {
                file.contents = Some(contents.clone());
            }
            session.files().put(&file.guest, contents).await?;
        }
        Ok(())
    }

    /// Writes those back that the guest has changed and that it may. What it has removed stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if one cannot be written; otherwise as
    /// [`Files::get`](crate::Files::get).
    pub async fn copy_out(&mut self, session: &mut Session) -> Result<(), Error> {
        for file in self.files.iter_mut().filter(|file| file.writes) {
            let Some(contents) = session.files().get(&file.guest).await? else { continue };
            if file.contents.as_ref() == Some(&contents) {
                continue;
            }
            std::fs::write(&file.host, &contents).map_err(|error| {
                let message = format!("`{}` cannot be written: {error}", file.host.display());
                Error::new(ErrorKind::Config, message).with_session_alive()
            })?;
            file.contents = Some(contents);
        }
        Ok(())
    }
}
