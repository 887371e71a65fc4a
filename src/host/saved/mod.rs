//! Saved sessions as the host keeps them: a file with the host's state, and with what the isolate
//! writes, which the host does not look into.

mod file;
mod state;

use std::sync::{Arc, Mutex};

#[cfg(all(test, target_os = "linux"))]
pub(crate) use self::file::STATE_BYTES;
pub(crate) use self::file::{SavedFile, SavedWriter};
#[cfg(all(test, target_os = "linux"))]
pub(crate) use self::state::{MAX_NAME_BYTES, MAX_PACKAGES};
pub(crate) use self::state::{SavedPackage, SavedState};
use crate::fs::SavedLimits;
use crate::support::lock::lock;

/// What a session's host saves to, and restores from.
#[derive(Default)]
pub(crate) struct Saving {
    to: Mutex<Target>,
    from: Mutex<Option<Arc<SavedFile>>>,
}

/// The file that a session is saved to.
#[derive(Default)]
enum Target {
    /// The session is not being saved.
    #[default]
    None,
    Open(Box<SavedWriter>),
    /// The session cannot be saved, for this reason.
    Refused(String),
}

impl Saving {
    /// From here on the isolate's pieces go to this file.
    pub(crate) fn begin(&self, file: Box<SavedWriter>) {
        *lock(&self.to) = Target::Open(file);
    }

    /// Takes a piece from the isolate. The state of the host is written before the first one.
    pub(super) fn write(
        &self,
        piece: &[u8],
        limits: &SavedLimits,
        state: impl FnOnce() -> SavedState,
    ) -> Result<(), String> {
        let mut to = lock(&self.to);
        let Target::Open(file) = &mut *to else {
            return Err("the session is not being saved".to_owned());
        };
        let begun = if file.has_begun() { Ok(()) } else { file.begin(&state(), limits) };
        let written = begun.and_then(|()| file.write(piece));
        if let Err(reason) = &written {
            *to = Target::Refused(reason.clone());
        }
        written
    }

    /// Takes the isolate's reason why it cannot be saved. The first one counts.
    pub(super) fn refuse(&self, reason: &str) {
        let mut to = lock(&self.to);
        if let Target::Open(_) = &*to {
            *to = Target::Refused(crate::protocol::codec::tail(reason));
        }
    }

    /// Returns the file with everything that the isolate has written.
    pub(crate) fn end(&self) -> Result<Box<SavedWriter>, String> {
        match std::mem::take(&mut *lock(&self.to)) {
            Target::Open(file) if file.has_begun() => Ok(file),
            Target::Open(_) | Target::None => Err("the guest has saved nothing".to_owned()),
            Target::Refused(reason) => Err(reason),
        }
    }

    /// From here on the isolate may read this file.
    pub(crate) fn read_from(&self, file: Arc<SavedFile>) {
        *lock(&self.from) = Some(file);
    }

    /// The isolate has become the saved session, and reads no more. Returns what it has read.
    pub(crate) fn forget(&self) -> Option<Arc<SavedFile>> {
        lock(&self.from).take()
    }

    /// Returns a piece of the isolate's part.
    pub(super) fn read(&self, offset: u64, max: u32) -> Result<Vec<u8>, String> {
        match &*lock(&self.from) {
            Some(file) => file.read(offset, max),
            None => Err("no saved session is being restored".to_owned()),
        }
    }
}
