//! Detects whether two directories of the host share files, even under different names.

use std::path::{Path, PathBuf};

use super::kernel::mounts;
use super::root::Root;

/// The position of a directory on its device, independent of mounts.
#[derive(Debug, PartialEq, Eq)]
struct Origin {
    /// The device numbers, as text.
    device: String,
    path: PathBuf,
}

impl Root {
    /// Returns `true` if one directory is, or contains, the other. On Linux this also detects bind
    /// mounts.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        if self.identity() == other.identity() || nested(self.host(), other.host()) {
            return true;
        }
        overlapping(&mounts(), self.host(), other.host())
    }
}

impl Root {
    /// Returns `true` if the other directory is this one, or is in it. On Linux this also detects
    /// bind mounts.
    pub(crate) fn contains(&self, other: &Self) -> bool {
        if self.identity() == other.identity() || other.host().starts_with(self.host()) {
            return true;
        }
        let mounts = mounts();
        match (origin(&mounts, self.host()), origin(&mounts, other.host())) {
            (Some(own), Some(other)) => {
                own.device == other.device && other.path.starts_with(&own.path)
            }
            _ => false,
        }
    }
}

/// Returns `true` if two canonical paths name the same directory, or one contains the other,
/// according to a table of mounts.
pub(super) fn overlapping(mounts: &str, one: &Path, other: &Path) -> bool {
    match (origin(mounts, one), origin(mounts, other)) {
        (Some(one), Some(other)) => one.device == other.device && nested(&one.path, &other.path),
        _ => false,
    }
}

fn nested(one: &Path, two: &Path) -> bool {
    one.starts_with(two) || two.starts_with(one)
}

/// Finds a canonical path in a table of mounts: the last entry with the longest matching mount
/// point.
fn origin(mounts: &str, path: &Path) -> Option<Origin> {
    let mut found: Option<(usize, Origin)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(2);
        let (Some(device), Some(root), Some(point)) = (fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        let (root, point) = (unescape(root), unescape(point));
        let Ok(rest) = path.strip_prefix(&point) else {
            continue;
        };
        let length = point.len();
        if found.as_ref().is_none_or(|(longest, _)| length >= *longest) {
            let origin = Origin { device: device.to_owned(), path: Path::new(&root).join(rest) };
            found = Some((length, origin));
        }
    }
    found.map(|(_, origin)| origin)
}

/// Decodes the characters that the table encodes as octal numbers.
fn unescape(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (escaped, plain)| text.replace(escaped, plain))
}
