//! A file of configuration on the disk: read whole, kept as a backup, and replaced at once.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The maximum size of a file, in bytes. Claude Code keeps its histories in its own.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The most backups of one file.
const MAX_BACKUPS: u32 = 1000;

/// The mark that some editors put before a text.
const MARK: &str = "\u{feff}";

/// A file, as it was read.
pub(super) struct File {
    /// The path that was asked for.
    path: PathBuf,
    /// The file itself, past all links.
    real: PathBuf,
    /// The content; `None` if there is no file.
    content: Option<String>,
}

impl File {
    /// Reads a file, which need not exist.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let path = path.to_owned();
        let real = match fs::canonicalize(&path) {
            Ok(real) => real,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Ok(target) = fs::read_link(&path) {
                    bail!("`{shown}` is a link to `{}`, which does not exist", target.display());
                }
                return Ok(Self { real: path.clone(), path, content: None });
            }
            Err(error) => return Err(error).context(format!("cannot read `{shown}`")),
        };
        let metadata = fs::metadata(&real).with_context(|| format!("cannot read `{shown}`"))?;
        if !metadata.is_file() {
            bail!("`{shown}` is no file, it has to be one");
        }
        let bytes = metadata.len();
        if bytes > MAX_BYTES {
            bail!("`{shown}` has {bytes} bytes, the limit is {MAX_BYTES}");
        }
        let content = fs::read(&real).with_context(|| format!("cannot read `{shown}`"))?;
        let content = String::from_utf8(content)
            .map_err(|_| anyhow::anyhow!("`{shown}` is not UTF-8, save it as that"))?;
        Ok(Self { path, real, content: Some(content) })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns `true` if it is the same file as another.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.real == other.real
    }

    /// Returns `true` if the file was there.
    pub(super) fn exists(&self) -> bool {
        self.content.is_some()
    }

    /// Returns the text, without the mark before it.
    pub(super) fn text(&self) -> &str {
        let content = self.content.as_deref().unwrap_or_default();
        content.strip_prefix(MARK).unwrap_or(content)
    }

    /// Replaces the text. The file as it was is kept beside it; returns the path of that.
    pub(super) fn replace(&self, text: &str) -> Result<Option<PathBuf>> {
        let shown = self.path.display();
        let backup = match &self.content {
            Some(content) => Some(self.back_up(content)?),
            None => None,
        };
        let mark =
            if self.content.as_ref().is_some_and(|old| old.starts_with(MARK)) { MARK } else { "" };
        self.write(&[mark, text].concat()).with_context(|| format!("cannot write `{shown}`"))?;
        Ok(backup)
    }

    fn write(&self, content: &str) -> io::Result<()> {
        let directory =
            self.real.parent().ok_or_else(|| io::Error::other("it has no directory"))?;
        fs::create_dir_all(directory)?;
        let temporary = directory.join(format!(".isolet-{:016x}", getrandom::u64()?));
        let written = (|| {
            let mut file = private(&temporary)?;
            file.write_all(content.as_bytes())?;
            if self.content.is_some() {
                file.set_permissions(fs::metadata(&self.real)?.permissions())?;
            }
            file.sync_all()?;
            // The client may be running, and writes this file too.
            let now = match fs::read(&self.real) {
                Ok(now) => Some(now),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            if now.as_deref() != self.content.as_deref().map(str::as_bytes) {
                return Err(io::Error::other(
                    "another program has changed it in this moment, try again",
                ));
            }
            fs::rename(&temporary, &self.real)
        })();
        if written.is_err() {
            // A file that remains only takes space.
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// Writes a copy that does not exist yet, or finds one with the same content.
    fn back_up(&self, content: &str) -> Result<PathBuf> {
        for number in 1..=MAX_BACKUPS {
            let mut name = self.path.clone().into_os_string();
            name.push(".isolet-backup");
            if number > 1 {
                name.push(format!("-{number}"));
            }
            let path = PathBuf::from(name);
            let made = private(&path).and_then(|mut file| {
                file.write_all(content.as_bytes())?;
                file.set_permissions(fs::metadata(&self.real)?.permissions())
            });
            match made {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if fs::read(&path).is_ok_and(|there| there == content.as_bytes()) {
                        return Ok(path);
                    }
                }
                Err(error) => {
                    return Err(error).context(format!("cannot write `{}`", path.display()));
                }
            }
        }
        bail!("`{}` has {MAX_BACKUPS} backups already, remove some", self.path.display())
    }
}

/// Makes a file that only its owner may read.
fn private(path: &Path) -> io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
