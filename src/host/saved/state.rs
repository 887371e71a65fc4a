//! What the host keeps of a session: packages and overlays. It grants nothing: a sandbox
//! that a session is restored into decides anew. It is read as hostile, because anyone may have
//! written the file.

use serde::{Deserialize, Serialize};

use crate::fs::SavedOverlay;

/// The host's part of a saved session.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedState {
    /// The packages of the image that it started from, each as `NAME VERSION`.
    pub(crate) preloaded: Vec<String>,
    /// The packages that it has loaded.
    pub(crate) packages: Vec<SavedPackage>,
    /// What the guest has changed in each overlay, by guest path.
    pub(crate) overlays: Vec<(String, SavedOverlay)>,
}

/// A package of a saved session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SavedPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Of the wheel, in hexadecimal digits.
    pub(crate) sha256: String,
}
