//! Versions of crates and npm packages, in the order in which they follow one another.

use std::fmt;

use anyhow::{Context, Result};

/// A version such as `0.413.0` or `315.0.0-alpha.2`.
///
/// The fields are in the order of their weight. A pre-release is before its release; among
/// pre-releases, the order of their texts is enough here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version {
    numbers: [u64; 3],
    is_release: bool,
    pre_release: String,
}

impl Version {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let wrong = || format!("`{text}` is not a version such as `1.2.3`");
        let (numbers, pre_release) = text.split_once('-').unwrap_or((text, ""));
        let parts: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        let numbers: Option<[u64; 3]> = parts.and_then(|parts| parts.try_into().ok());
        let numbers = numbers.with_context(wrong)?;
        Ok(Self {
            numbers,
            is_release: pre_release.is_empty(),
            pre_release: pre_release.to_owned(),
        })
    }

    pub(super) fn is_release(&self) -> bool {
        self.is_release
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [major, minor, patch] = self.numbers;
        write!(f, "{major}.{minor}.{patch}")?;
        if self.is_release { Ok(()) } else { write!(f, "-{}", self.pre_release) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_follow_one_another_by_their_numbers() {
        let order = ["0.29.5", "0.413.0", "314.0.0-alpha.2", "314.0.0", "314.0.10", "315.0.0-a.1"];
        let parsed: Vec<Version> = order.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(parsed.is_sorted());
        let shown: Vec<String> = parsed.iter().map(ToString::to_string).collect();
        assert_eq!(shown, order);
    }

    #[test]
    fn what_is_no_version_is_refused() {
        for text in ["", "1.2", "1.2.3.4", "latest", "1.2.x"] {
            let error = Version::parse(text).unwrap_err().to_string();
            assert_eq!(error, format!("`{text}` is not a version such as `1.2.3`"));
        }
    }
}
