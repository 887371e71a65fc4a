//! What is written on the host when a run has ended, opened before any of the guest's code ran.

use std::path::PathBuf;

use anyhow::Result;
use isolet::blocking::Session;
use isolet::profile::copied_files::CopiedFiles;
use isolet::{ExportDirectory, SessionState};

/// Files to copy to the guest and back, and directories to write the changes in overlays to.
pub(super) struct HostFiles {
    copied: CopiedFiles,
    exports: Vec<(String, ExportDirectory)>,
}

impl HostFiles {
    /// Opens them, with a session that has run nothing yet.
    pub(super) fn open(
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
            Ok((mount.clone(), session.open_export(mount, directory)?))
        };
        let exports = exports.iter().map(open).collect::<Result<_>>()?;
        Ok(Self { copied, exports })
    }

    /// Gives a session its copies.
    pub(super) fn copy_in(&mut self, session: &mut Session) -> Result<()> {
        Ok(session.copy_in(&mut self.copied)?)
    }

    /// Writes back what a run has changed, as far as it may be, unless the session has ended.
    pub(super) fn write_back(&mut self, session: &mut Session) -> Result<()> {
        if session.state() == SessionState::Ready && !self.copied.is_empty() {
            session.copy_out(&mut self.copied)?;
        }
        Ok(())
    }

    /// Writes the changes in overlays to where they are to be.
    pub(super) fn export(&self, session: &mut Session) -> Result<()> {
        for (mount, directory) in &self.exports {
            session.export_to(mount, directory)?;
        }
        Ok(())
    }
}
