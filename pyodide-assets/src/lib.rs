//! The Pyodide release that isolet runs: what it consists of, whether it is intact, and how to get
//! it.
//!
//! `lock.toml` beside this crate names one release of Pyodide and the size and sha256 of each file
//! that isolet uses. Nothing else is believed: not the registry, not the network, not the directory
//! the files lie in. `patches/` beside it has what isolet changes in that release.
//!
//! - [`lock`] is that list.
//! - [`patches`] are those changes; the crate hands them out and applies none.
//! - [`Assets::open`] reads the files of a directory and returns only bytes that match it.
//! - [`verify`] says what is wrong with a directory, file by file.
//! - [`fetch`] fills a directory, by npm or over HTTPS, and touches nothing that is right already.
//!
//! # Features
//!
//! | name | what it adds | default |
//! |-|-|-|
//! | `fetch` | [`fetch`] and its HTTP client | yes |
//! | `progress` | `Bar`, a progress bar on standard error | no |

mod assets;
mod digest;
mod error;
#[cfg(feature = "fetch")]
mod fetch;
mod lock;
mod patches;
mod progress;
mod verify;

#[cfg(test)]
#[cfg(feature = "fetch")]
mod tests;

pub use crate::assets::Assets;
pub use crate::digest::Digest;
pub use crate::error::Error;
#[cfg(feature = "fetch")]
pub use crate::fetch::{FetchOptions, FetchReport, Npm, Origin, fetch};
pub use crate::lock::{Lock, LockedFile, Tarball, lock};
pub use crate::patches::{Patch, patches};
#[cfg(feature = "progress")]
pub use crate::progress::Bar;
pub use crate::progress::{Progress, Silent};
pub use crate::verify::{FileReport, Verification, verify};
