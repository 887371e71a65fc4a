//! Host files and directories that are written after a run. They are opened before any guest code
//! runs.

use std::path::PathBuf;

use anyhow::Result;
use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{ExportDirectory, SessionState};

/// Files to copy to the guest and back, and directories for the exports of overlays.
pub(crate) struct HostFiles {
    copied: CopiedFiles,
    exports: Vec<(String, ExportDirectory)>,
}

impl HostFiles {
    /// Opens them, with a session that has not run anything yet.
    pub(crate) fn open(
        session: &mut Session,
        read: &[PathBuf],
        write: &[PathBuf],
        exports: &[(String, String)],
    ) -> Result<Self> {
        let files = |paths: &[PathBuf]| {
            paths.iter().filter(|path| !path.is_dir()).cloned().collect::<Vec<_>>()
        };
        let copied = CopiedFiles::new(files(read), files(write))?;
        let open = |(mount, directory): &(String, String)| {
            Ok((mount.clone(), session.files().open_export(mount, directory)?))
        };
        let exports = exports.iter().map(open).collect::<Result<_>>()?;
        Ok(Self { copied, exports })
    }

    /// Copies the files into a session.
    pub(crate) fn copy_in(&mut self, session: &mut Session) -> Result<()> {
        Ok(session.copy_in(&mut self.copied)?)
    }

    /// Writes back the changed files that are writable, unless the session has ended.
    pub(crate) fn write_back(&mut self, session: &mut Session) -> Result<()> {
        if session.state() == SessionState::Ready && !self.copied.is_empty() {
            session.copy_out(&mut self.copied)?;
        }
        Ok(())
    }

    /// Returns the files alone.
    pub(crate) fn without_exports(self) -> CopiedFiles {
        self.copied
    }

    /// Exports the changes in overlays.
    pub(crate) fn export(&self, session: &mut Session) -> Result<()> {
        for (mount, directory) in &self.exports {
            session.files().export_to(mount, directory)?;
        }
        Ok(())
    }
}
