//! Parses paths beneath a mount, as the guest writes them, and checks link targets.

use super::error::{Denial, FileError};
use super::limits::FileLimits;

/// A path beneath a mount: names separated by `/`, none of them empty, `.` or `..`. Empty for the
/// mount's root. Backslashes, percent signs and trailing dots have no special meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelativePath<'a>(&'a str);

impl<'a> RelativePath<'a> {
    /// The mount itself.
    pub(crate) const ROOT: Self = Self("");

    /// Parses a path from the guest.
    pub(crate) fn parse(text: &'a str, limits: &FileLimits) -> Result<Self, FileError> {
        let path = Self(text);
        within(length(text), limits.path_bytes)?;
        let mut depth = 0;
        for name in path.names() {
            depth += 1;
            check_name(name, limits)?;
        }
        if depth > limits.depth {
            return Err(FileError::TooDeep { limit: limits.depth, needed: depth });
        }
        Ok(path)
    }

    /// Wraps a path that was joined from parsed ones.
    pub(crate) fn joined(text: &'a str) -> Self {
        Self(text)
    }

    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }

    pub(crate) fn is_root(self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn names(self) -> impl Iterator<Item = &'a str> {
        // `"".split` yields one empty name.
        self.0.split('/').skip(usize::from(self.is_root()))
    }

    pub(crate) fn depth(self) -> u64 {
        self.names().count() as u64
    }

    /// Splits off the last name. Returns `None` for the root.
    pub(crate) fn split(self) -> Option<(Self, &'a str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent), name)),
            None if self.is_root() => None,
            None => Some((Self::ROOT, self.0)),
        }
    }

    /// Returns `true` if the path is beneath `directory` and not equal to it.
    pub(crate) fn is_beneath(self, directory: Self) -> bool {
        rest_beneath(self.0, directory.0).is_some()
    }
}

/// Joins a path and a name or another path.
pub(crate) fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}/{name}"),
    }
}

/// Returns the rest of `path` after `directory`, if it is beneath it.
pub(crate) fn rest_beneath<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return (!path.is_empty()).then_some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// Checks a link's target: relative, and lexically within the mount as seen from the link.
pub(crate) fn check_target(
    link: RelativePath<'_>,
    target: &str,
    limits: &FileLimits,
) -> Result<(), FileError> {
    if target.is_empty() || target.contains('\0') {
        return Err(FileError::Invalid);
    }
    within(length(target), limits.path_bytes)?;
    if target.starts_with('/') {
        return Err(Denial::LinkTarget.into());
    }
    let mut depth = link.depth().saturating_sub(1);
    for name in target.split('/') {
        depth = match name {
            "" | "." => depth,
            ".." => depth.checked_sub(1).ok_or(Denial::LinkTarget)?,
            _ => depth + 1,
        };
    }
    Ok(())
}

/// Returns `true` if a target contains `..`. Its meaning changes when the link is moved, or when a
/// name before the `..` is a link.
pub(crate) fn climbs(target: &str) -> bool {
    target.split('/').any(|name| name == "..")
}

fn check_name(name: &str, limits: &FileLimits) -> Result<(), FileError> {
    if matches!(name, "" | "." | "..") || name.contains('\0') {
        return Err(FileError::Invalid);
    }
    within(length(name), limits.name_bytes)
}

fn within(needed: u64, limit: u64) -> Result<(), FileError> {
    if needed > limit { Err(FileError::NameTooLong { limit, needed }) } else { Ok(()) }
}

fn length(text: &str) -> u64 {
    text.len() as u64
}
