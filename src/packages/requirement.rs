//! Requirements: a package's name, extras and versions.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifiers};

use super::error::{PackageError, shown};
use super::marker;

/// The maximum length of a requirement, in bytes.
const MAX_BYTES: usize = 4096;

/// A distribution and its acceptable versions: `name[extra]>=1,<2`.
///
/// pip gets its text. It begins with a letter or a digit and contains no path and no URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Requirement {
    name: String,
    extras: BTreeSet<String>,
    specifiers: VersionSpecifiers,
}

/// A requirement that may apply only in some environments.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) requirement: Requirement,
    marker: Option<String>,
}

impl Requirement {
    /// Returns the normalised name of the distribution.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the normalised names of its extras.
    pub(crate) fn extras(&self) -> &BTreeSet<String> {
        &self.extras
    }

    /// Returns the acceptable versions.
    pub(crate) fn specifiers(&self) -> &VersionSpecifiers {
        &self.specifiers
    }

    /// Makes a requirement of exactly this version.
    pub(crate) fn exactly(name: &str, version: &Version) -> Self {
        let exact = pep440_rs::VersionSpecifier::equals_version(version.clone());
        Self { name: normalised(name), extras: BTreeSet::new(), specifiers: exact.into() }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if !self.extras.is_empty() {
            let extras: Vec<&str> = self.extras.iter().map(String::as_str).collect();
            write!(f, "[{}]", extras.join(","))?;
        }
        for (index, specifier) in self.specifiers.iter().enumerate() {
            write!(f, "{}{specifier}", if index == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl FromStr for Requirement {
    type Err = PackageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dependency: Dependency = text.parse()?;
        match dependency.marker {
            None => Ok(dependency.requirement),
            Some(_) => Err(refused(text, "environment markers are not supported here")),
        }
    }
}

impl FromStr for Dependency {
    type Err = PackageError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.len() > MAX_BYTES {
            let reason = format!("limit {MAX_BYTES} bytes, has {}", text.len());
            return Err(refused(text, &reason));
        }
        let (wanted, marker) = match text.split_once(';') {
            Some((wanted, marker)) => (wanted.trim(), Some(marker.trim().to_owned())),
            None => (text.trim(), None),
        };
        let requirement = parse(wanted).map_err(|reason| refused(text, &reason))?;
        Ok(Self { requirement, marker })
    }
}

impl Dependency {
    /// Returns `true` if the dependency applies to the guest when its package is requested with
    /// these extras.
    ///
    /// # Errors
    ///
    /// Fails if the marker cannot be parsed.
    pub(crate) fn applies(&self, extras: &BTreeSet<String>) -> Result<bool, PackageError> {
        let Some(marker) = &self.marker else {
            return Ok(true);
        };
        let unreadable =
            |reason: String| refused(&format!("{};{marker}", self.requirement), &reason);
        for extra in std::iter::once("").chain(extras.iter().map(String::as_str)) {
            if marker::holds(marker, extra).map_err(unreadable)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns the normal form of a distribution's name, which all spellings share.
pub(crate) fn normalised(name: &str) -> String {
    let mut normal = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '-' | '_' | '.' if normal.ends_with('-') => {}
            '-' | '_' | '.' => normal.push('-'),
            _ => normal.push(c.to_ascii_lowercase()),
        }
    }
    normal
}

/// Returns `true` if the text is a valid name of a distribution or an extra.
pub(crate) fn is_name(text: &str) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    edge(text.chars().next()) && edge(text.chars().next_back()) && text.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn parse(text: &str) -> Result<Requirement, String> {
    if !text.is_ascii() {
        return Err("it has characters that are not ASCII".to_owned());
    }
    let end = text.find(|c| !is_name_char(c)).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    if name.starts_with('-') {
        return Err("options are not allowed".to_owned());
    }
    if name.starts_with('.') || rest.starts_with(['/', '\\', ':']) {
        return Err("paths and URLs are not allowed".to_owned());
    }
    if !is_name(name) {
        return Err("it does not begin with the name of a package".to_owned());
    }
    let (extras, rest) = parse_extras(rest.trim_start())?;
    if rest.starts_with('@') {
        return Err("paths and URLs are not allowed".to_owned());
    }
    let unwrapped = rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let specifiers = unwrapped.unwrap_or(rest).trim();
    let specifiers = VersionSpecifiers::from_str(specifiers)
        .map_err(|_| format!("`{}` is not a list of versions like `>=1,<2`", shown(specifiers)))?;
    Ok(Requirement { name: normalised(name), extras, specifiers })
}

fn parse_extras(text: &str) -> Result<(BTreeSet<String>, &str), String> {
    let Some(list) = text.strip_prefix('[') else {
        return Ok((BTreeSet::new(), text));
    };
    let (list, rest) = list.split_once(']').ok_or("`[` is not closed")?;
    let extras = list.split(',').map(str::trim).filter(|extra| !extra.is_empty());
    let extras: Vec<&str> = extras.collect();
    match extras.iter().find(|extra| !is_name(extra)) {
        Some(bad) => Err(format!("`{}` is not the name of an extra", shown(bad))),
        None => Ok((extras.into_iter().map(normalised).collect(), rest.trim_start())),
    }
}

fn refused(text: &str, reason: &str) -> PackageError {
    PackageError::Requirement { text: shown(text), reason: reason.to_owned() }
}
