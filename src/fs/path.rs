//! Paths beneath a mount, as the guest spells them, and what may be the target of a link.

use super::error::{Denial, FileError};
use super::limits::FileLimits;

/// A path beneath a mount: names with `/` between them, none of them empty, `.` or `..`; empty for
/// the mount's root. A backslash, a percent sign or a trailing dot is a character as any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RelativePath<'a>(&'a str);

impl<'a> RelativePath<'a> {
    /// The mount itself.
    pub(crate) const ROOT: Self = Self("");

    /// Reads a path of the guest's.
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

    /// Takes a path that was put together from parsed ones.
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
        // `"".split` gives one empty name.
        self.0.split('/').skip(usize::from(self.is_root()))
    }

    pub(crate) fn depth(self) -> u64 {
        self.names().count() as u64
    }

    /// Splits off the last name; the root has none.
    pub(crate) fn split(self) -> Option<(Self, &'a str)> {
        match self.0.rsplit_once('/') {
            Some((parent, name)) => Some((Self(parent), name)),
            None if self.is_root() => None,
            None => Some((Self::ROOT, self.0)),
        }
    }

    /// Returns whether this is another path beneath `directory`.
    pub(crate) fn is_beneath(self, directory: Self) -> bool {
        rest_beneath(self.0, directory.0).is_some()
    }
}

/// Appends a name or a path to a path.
pub(crate) fn join(path: &str, name: &str) -> String {
    match (path.is_empty(), name.is_empty()) {
        (true, _) => name.to_owned(),
        (_, true) => path.to_owned(),
        _ => format!("{path}/{name}"),
    }
}

/// Returns what follows `directory` in `path`, if that is beneath it.
pub(crate) fn rest_beneath<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return (!path.is_empty()).then_some(path);
    }
    path.strip_prefix(directory)?.strip_prefix('/')
}

/// Checks a link's target: relative, and lexically inside the mount when seen from the link.
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

/// Returns whether a target has a `..`, whose meaning changes when the link is moved, or when a
/// name before it is a link.
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
