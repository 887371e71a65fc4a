//! Copies host files into the guest, at `/sandbox/NAME`, and writes changed ones back, as DSPy
//! does.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::host_path::HostPath;
use crate::api::session::Session;
use crate::data::error::{Error, ErrorKind};

/// The guest's directory for copied files.
pub const SANDBOX: &str = "/sandbox";

/// Host files that a guest gets copies of.
///
/// Make it before guest code runs: that is when the paths are resolved. Changes that the guest
/// later makes on the host, through a writable mount, then cannot redirect the copies
/// ([`HostPath`]).
#[derive(Clone, Debug, Default)]
pub struct CopiedFiles {
    files: Vec<CopiedFile>,
}

#[derive(Clone, Debug)]
struct CopiedFile {
    host: PathBuf,
    source: Source,
    guest: String,
    writes: bool,
    /// The last known contents of the host file. Only kept for files that are written back.
    contents: Option<Vec<u8>>,
}

/// The source of a file's contents.
#[derive(Clone, Debug)]
enum Source {
    Path(Arc<HostPath>),
    /// A pipe or device, which can be read only once.
    Stream(Arc<File>),
}

impl CopiedFiles {
    /// Takes the paths of the files to read and of those to read and write, and opens their
    /// directories. Reads no file yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a path has no file name, two files have the same name, or a
    /// directory cannot be opened.
    pub fn new(
        read: impl IntoIterator<Item = PathBuf>,
        write: impl IntoIterator<Item = PathBuf>,
    ) -> Result<Self, Error> {
        let mut files = Self::default();
        // A file in both lists is writable.
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
        let source = Source::open(&host, writes).map_err(|error| {
            let message = format!("`{}` cannot be opened: {error}", host.display());
            Error::new(ErrorKind::Config, message).with_source(error)
        })?;
        self.files.push(CopiedFile { host, source, guest, writes, contents: None });
        Ok(())
    }

    /// Returns `true` if there are no files to copy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns the guest path of this file's copy; `None` if the file is not copied.
    #[must_use]
    pub fn guest_path(&self, host: &Path) -> Option<&str> {
        self.files.iter().find(|file| file.host == host).map(|file| file.guest.as_str())
    }

    /// Copies all files into the session. A writable file that does not exist is created empty.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a file cannot be read; otherwise as
    /// [`Files::put`](crate::Files::put).
    pub async fn copy_in(&mut self, session: &mut Session) -> Result<(), Error> {
        for file in &mut self.files {
            let contents = file.source.read(file.writes).map_err(|error| {
                let message = format!("`{}` cannot be read: {error}", file.host.display());
                Error::new(ErrorKind::Config, message).with_session_alive().with_source(error)
            })?;
            if file.writes {
                file.contents = Some(contents.clone());
            }
            session.files().put(&file.guest, contents).await?;
        }
        Ok(())
    }

    /// Writes the writable files that the guest has changed back to the host. Files that the guest
    /// has removed stay on the host.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if a file cannot be written; otherwise as
    /// [`Files::get`](crate::Files::get).
    pub async fn copy_out(&mut self, session: &mut Session) -> Result<(), Error> {
        for file in self.files.iter_mut().filter(|file| file.writes) {
            let Some(contents) = session.files().get(&file.guest).await? else { continue };
            if file.contents.as_ref() == Some(&contents) {
                continue;
            }
            file.source.write(&contents).map_err(|error| {
                let message = format!("`{}` cannot be written: {error}", file.host.display());
                Error::new(ErrorKind::Config, message).with_session_alive().with_source(error)
            })?;
            file.contents = Some(contents);
        }
        Ok(())
    }
}

impl Source {
    fn open(host: &Path, writes: bool) -> io::Result<Self> {
        let is_stream = |file_type: std::fs::FileType| !file_type.is_file() && !file_type.is_dir();
        if !writes && host.metadata().is_ok_and(|metadata| is_stream(metadata.file_type())) {
            return Ok(Self::Stream(Arc::new(File::open(host)?)));
        }
        Ok(Self::Path(Arc::new(HostPath::open(host)?)))
    }

    /// Reads the whole file. If `writes` is set, a missing file is created.
    fn read(&self, writes: bool) -> io::Result<Vec<u8>> {
        match self {
            Self::Path(path) => match path.read() {
                Err(error) if writes && error.kind() == io::ErrorKind::NotFound => {
                    path.write(&[]).map(|()| Vec::new())
                }
                read => read,
            },
            Self::Stream(file) => {
                let mut contents = Vec::new();
                (&**file).read_to_end(&mut contents).map(|_| contents)
            }
        }
    }

    fn write(&self, contents: &[u8]) -> io::Result<()> {
        match self {
            Self::Path(path) => path.write(contents),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
