//! The Pyodide release that isolet runs: its files, their verification, and how to fetch them.
//!
//! `lock.toml` in this crate names one release of Pyodide and the size and sha256 of each file that
//! isolet uses. Nothing else is trusted: neither the registry, nor the network, nor the directory
//! of the files. `patches/` has the changes that isolet makes to that release.
//!
//! - [`lock`] is that list.
//! - [`patches`] returns those changes; the crate itself applies none.
//! - [`Assets::open`] reads the files of a directory and returns only bytes that match the lock.
//! - [`verify`] reports the state of a directory, file by file.
//! - `http` makes the client of what isolet itself requests.
//! - [`fetch`] fills a directory, by npm or over HTTPS, and does not touch correct files.
//!
//! # Features
//!
//! | name | what it adds | default |
//! |-|-|-|
//! | `fetch` | [`fetch`] | yes |
//! | `download` | `Downloader` and its client `http`, which [`fetch`] uses | with `fetch` |
//! | `progress` | `Bar`, a progress bar on standard error | no |

mod assets;
mod digest;
#[cfg(feature = "download")]
mod download;
mod error;
#[cfg(feature = "fetch")]
mod fetch;
#[cfg(feature = "download")]
pub mod http;
mod lock;
mod patches;
mod progress;
mod verify;

#[cfg(test)]
#[cfg(feature = "fetch")]
mod tests;

pub use crate::assets::Assets;
pub use crate::digest::Digest;
#[cfg(feature = "download")]
pub use crate::download::{DownloadError, Downloader, Wanted};
pub use crate::error::Error;
#[cfg(feature = "fetch")]
pub use crate::fetch::{FetchOptions, FetchReport, Npm, Origin, fetch};
#[cfg(feature = "download")]
pub use crate::http::{Authorities, Help};
pub use crate::lock::{Lock, LockedFile, Tarball, lock};
pub use crate::patches::{Patch, patches};
#[cfg(feature = "progress")]
pub use crate::progress::Bar;
pub use crate::progress::{Progress, Silent};
pub use crate::verify::{FileReport, Verification, verify};
