//! What the host keeps of a session: packages and overlays. It grants nothing: a sandbox
//! that a session is restored into decides anew. It is read as hostile, because anyone may have
//! written the file: the lists are counted before they are read.

use serde::{Deserialize, Serialize};

use crate::data::counted::{Counted, within, within_bytes};
use crate::data::error::Error;
use crate::fs::{SavedLimits, SavedOverlay, no_overlay};

/// The maximum number of packages, of the image and loaded ones each.
pub(crate) const MAX_PACKAGES: u64 = 1_000;

/// The maximum length of the name of a package, and of its version, in bytes.
pub(crate) const MAX_NAME_BYTES: usize = 256;

/// The length of a digest in hexadecimal digits.
const SHA256_BYTES: usize = 64;

/// The maximum length of `NAME VERSION`, in bytes.
const SHOWN_BYTES: usize = 2 * MAX_NAME_BYTES + 1;

/// The maximum length of a mount point, in bytes; mounting knows a lower one.
const GUEST_BYTES: usize = 4096;

const PRELOADED: &str = "packages of the image";
const PACKAGES: &str = "loaded packages";
const PACKAGE: &str = "the name of a package";
const VERSION: &str = "the version of a package";
const SHA256: &str = "the sha256 of a package";

/// The host's part of a saved session.
#[derive(Debug, Default, PartialEq, Serialize)]
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

/// Why the host's part cannot be read.
#[derive(Debug)]
pub(crate) enum Unread {
    Invalid(String),
    /// The sandbox has no overlay at this mount point.
    NoOverlay(Error),
}

impl From<String> for Unread {
    fn from(reason: String) -> Self {
        Self::Invalid(reason)
    }
}

impl SavedState {
    /// Encodes it. Fails if [`read`](Self::read) would refuse it with the same limits.
    pub(crate) fn write(&self, limits: &SavedLimits) -> Result<Vec<u8>, String> {
        within(PRELOADED, self.preloaded.len() as u64, MAX_PACKAGES)?;
        within(PACKAGES, self.packages.len() as u64, MAX_PACKAGES)?;
        for name in &self.preloaded {
            within_bytes(PACKAGE, name, SHOWN_BYTES)?;
        }
        for SavedPackage { name, version, sha256 } in &self.packages {
            within_bytes(PACKAGE, name, MAX_NAME_BYTES)?;
            within_bytes(VERSION, version, MAX_NAME_BYTES)?;
            within_bytes(SHA256, sha256, SHA256_BYTES)?;
        }
        let elements = self.overlays.iter().map(|(_, overlay)| overlay.elements()).sum();
        within(SavedOverlay::ELEMENTS, elements, limits.elements)?;
        postcard::to_stdvec(self).map_err(|error| error.to_string())
    }

    /// Reads it for a sandbox with these limits.
    pub(crate) fn read(bytes: &[u8], limits: &SavedLimits) -> Result<Self, Unread> {
        let mut from = Counted::new(bytes, limits.elements);
        let preloaded =
            from.list(PRELOADED, MAX_PACKAGES, |from| from.text(PACKAGE, SHOWN_BYTES))?;
        let packages = from.list(PACKAGES, MAX_PACKAGES, SavedPackage::read)?;
        let mut overlays: Vec<(String, SavedOverlay)> = Vec::new();
        for _ in 0..from.value::<u64>()? {
            let guest = from.text("a mount point", GUEST_BYTES)?;
            if !limits.guests.contains(&guest) {
                return Err(Unread::NoOverlay(no_overlay(&guest)));
            }
            if overlays.iter().any(|(earlier, _)| *earlier == guest) {
                return Err(Unread::Invalid(format!("the overlay at `{guest}` is there twice")));
            }
            overlays.push((guest, SavedOverlay::read(&mut from)?));
        }
        match from.left() {
            0 => Ok(Self { preloaded, packages, overlays }),
            left => Err(Unread::Invalid(format!("{left} bytes are left"))),
        }
    }
}

impl SavedPackage {
    fn read(from: &mut Counted<'_>) -> Result<Self, String> {
        Ok(Self {
            name: from.text(PACKAGE, MAX_NAME_BYTES)?,
            version: from.text(VERSION, MAX_NAME_BYTES)?,
            sha256: from.text(SHA256, SHA256_BYTES)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: String) -> SavedPackage {
        SavedPackage { name, version: "1".to_owned(), sha256: "0".repeat(SHA256_BYTES) }
    }

    fn state(preloaded: usize, packages: usize) -> SavedState {
        let preloaded = (0..preloaded).map(|nth| format!("p{nth} 1")).collect();
        let packages = (0..packages).map(|nth| package(format!("q{nth}"))).collect();
        SavedState { preloaded, packages, overlays: Vec::new() }
    }

    fn invalid(read: Result<SavedState, Unread>) -> String {
        match read.unwrap_err() {
            Unread::Invalid(reason) => reason,
            Unread::NoOverlay(error) => panic!("{error}"),
        }
    }

    /// What a writer refuses, a reader refuses with the same words, and the other way round.
    #[test]
    fn a_state_is_written_if_it_can_be_read_and_only_then() {
        let limits = SavedLimits::default();
        for whole in [state(0, 0), state(3, 2), state(1000, 1000)] {
            let bytes = whole.write(&limits).unwrap();
            assert_eq!(SavedState::read(&bytes, &limits).unwrap(), whole);
        }
        let (mut long, mut version, mut digest, mut shown) =
            (state(0, 1), state(0, 1), state(0, 1), state(1, 0));
        long.packages[0].name = "n".repeat(257);
        version.packages[0].version = "1".repeat(257);
        digest.packages[0].sha256.push('0');
        shown.preloaded[0] = "n".repeat(514);
        for (refused, expected) in [
            (state(1001, 0), "packages of the image: limit 1000, needed 1001"),
            (state(0, 1001), "loaded packages: limit 1000, needed 1001"),
            (long, "the name of a package: limit 256 bytes, needed 257"),
            (version, "the version of a package: limit 256 bytes, needed 257"),
            (digest, "the sha256 of a package: limit 64 bytes, needed 65"),
            (shown, "the name of a package: limit 513 bytes, needed 514"),
        ] {
            assert_eq!(refused.write(&limits).unwrap_err(), expected);
            let bytes = postcard::to_stdvec(&refused).unwrap();
            assert_eq!(invalid(SavedState::read(&bytes, &limits)), expected);
        }
    }

    #[test]
    fn elements_of_all_overlays_count_together_and_each_overlay_is_mounted_once() {
        let mut limits = SavedLimits::default();
        for guest in ["/a", "/b"] {
            limits.add(guest.to_owned(), 0, 0);
        }
        limits.elements = 5;
        // Entries that are removed, after the four attributes of the directory.
        let removed = |count: u8| {
            let entries = (0..count).flat_map(|nth| [1, b'a' + nth, 4]);
            [0, 0, 0, 0, count].into_iter().chain(entries).collect::<Vec<u8>>()
        };
        let overlay = |guest: &str, count| [&[2], guest.as_bytes(), &removed(count)].concat();
        let state = |overlays: &[Vec<u8>]| {
            [vec![0, 0, u8::try_from(overlays.len()).unwrap()], overlays.concat()].concat()
        };
        let bytes = state(&[overlay("/a", 3), overlay("/b", 2)]);
        let read = SavedState::read(&bytes, &limits).unwrap();
        assert_eq!((read.overlays.len(), read.write(&limits).unwrap()), (2, bytes.clone()));
        limits.elements = 4;
        let expected = format!("{}: limit 4, needed 5", SavedOverlay::ELEMENTS);
        assert_eq!(invalid(SavedState::read(&bytes, &limits)), expected);
        assert_eq!(read.write(&limits).unwrap_err(), expected);
        let twice = state(&[overlay("/a", 1), overlay("/a", 1)]);
        assert!(invalid(SavedState::read(&twice, &limits)).contains("`/a` is there twice"));
        let other = SavedState::read(&state(&[overlay("/c", 1)]), &limits);
        assert!(matches!(other, Err(Unread::NoOverlay(error)) if error.to_string().contains("/c")));
        let longer = [bytes, vec![0]].concat();
        limits.elements = 5;
        assert_eq!(invalid(SavedState::read(&longer, &limits)), "1 bytes are left");
    }

    #[test]
    fn counts_without_their_elements_are_refused() {
        let mut limits = SavedLimits::default();
        limits.add("/a".to_owned(), u64::MAX, u64::MAX);
        let huge = postcard::to_stdvec(&u64::MAX).unwrap();
        let invalid = |parts: &[&[u8]]| invalid(SavedState::read(&parts.concat(), &limits));
        assert!(invalid(&[&huge]).contains("packages of the image: limit 1000"));
        assert!(invalid(&[&[0], &huge]).contains("loaded packages: limit 1000"));
        assert!(!invalid(&[&[0, 0], &huge]).is_empty());
        let overlay: &[u8] = &[0, 0, 1, 2, b'/', b'a', 0, 0, 0, 0];
        assert!(invalid(&[overlay, &huge]).contains("elements in 0 bytes"));
        let file: &[u8] = &[1, 1, b'f', 1, 0];
        assert!(invalid(&[overlay, file, &huge]).contains("elements in 0 bytes"));
    }
}
