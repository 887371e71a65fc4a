//! Checks renames in a host directory: no moved link may lead a program of the host out of the
//! mount.
//!
//! A link that the host made may be absolute or have `..` in its target. The guest cannot follow
//! such a link, but a program of the host can, if it writes to the path that the guest has moved it
//! to.

use std::path::{Component, Path};

use cap_fs_ext::DirExt;
use cap_std::fs::Dir;

use super::error::{Denial, FileError};
use super::limits::FileLimits;
use super::path::RelativePath;

/// Checks that a link with this target stays within the mount when it is moved to `to`.
pub(super) fn check_link(target: &Path, to: RelativePath<'_>) -> Result<(), FileError> {
    if stays(target, to.depth().saturating_sub(1)) {
        Ok(())
    } else {
        Err(Denial::LinkTarget.into())
    }
}

/// Checks that every link in a directory stays within that directory, wherever it is moved to, and
/// that its contents are not too deep at `to`.
pub(super) fn check_directory(
    directory: &Dir,
    to: RelativePath<'_>,
    limits: &FileLimits,
) -> Result<(), FileError> {
    Walk { limits, top: to.depth(), left: limits.list_entries }.check(directory, 0)
}

struct Walk<'a> {
    limits: &'a FileLimits,
    /// The depth of the moved directory at its new place.
    top: u64,
    /// How many more entries may be checked.
    left: u64,
}

impl Walk<'_> {
    /// Checks a directory that is `depth` levels beneath the moved one.
    fn check(&mut self, directory: &Dir, depth: u64) -> Result<(), FileError> {
        for entry in directory.entries()? {
            let limit = self.limits.list_entries;
            self.left = self.left.checked_sub(1).ok_or(FileError::TooManyEntries { limit })?;
            let entry = entry?;
            let (limit, needed) = (self.limits.depth, self.top + depth + 1);
            if needed > limit {
                return Err(FileError::TooDeep { limit, needed });
            }
            let kind = entry.file_type()?;
            if kind.is_dir() {
                self.check(&directory.open_dir_nofollow(entry.file_name())?, depth + 1)?;
            } else if kind.is_symlink() {
                let target = directory.read_link_contents(entry.file_name())?;
                if !stays(&target, depth) {
                    return Err(Denial::HoldsLink.into());
                }
            }
        }
        Ok(())
    }
}

/// Returns `true` if a link, in a directory `depth` levels beneath another one, stays beneath that
/// one. It must be relative, with at most `depth` leading `..`. After a name, `..` starts from
/// wherever a link of that name leads, so it is not allowed there.
fn stays(target: &Path, depth: u64) -> bool {
    let mut up = 0;
    let mut named = false;
    target.components().all(|component| match component {
        Component::CurDir => true,
        Component::Normal(_) => {
            named = true;
            true
        }
        Component::ParentDir => {
            up += 1;
            !named && up <= depth
        }
        Component::RootDir | Component::Prefix(_) => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_relative_targets_that_go_up_first_and_not_too_far_stay() {
        for (target, depth, expected) in [
            ("a", 0, true),
            ("./a//b", 0, true),
            (".", 0, true),
            ("../a", 1, true),
            ("../../a", 2, true),
            ("..", 1, true),
            ("..", 0, false),
            ("../../a", 1, false),
            ("a/../b", 5, false),
            (".././../a", 1, false),
            ("/a", 5, false),
        ] {
            assert_eq!(stays(Path::new(target), depth), expected, "{target} at {depth}");
        }
    }
}
