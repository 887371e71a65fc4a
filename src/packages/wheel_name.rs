//! Parses the file name of a wheel.

use std::str::FromStr;

use pep440_rs::Version;

use super::error::PackageError;
use super::interpreter;
use super::requirement::{is_name, normalised};

/// The parts of a wheel's file name.
#[derive(Clone, Debug)]
pub(crate) struct WheelName {
    /// The normalised name of the distribution.
    pub(crate) name: String,
    pub(crate) version: Version,
    /// How well the wheel matches the guest; higher is better. `None` if it cannot be loaded.
    pub(crate) rank: Option<u32>,
}

impl FromStr for WheelName {
    type Err = PackageError;

    fn from_str(file: &str) -> Result<Self, Self::Err> {
        parse(file).ok_or_else(|| {
            let form = "its name is not like `name-1.0-py3-none-any.whl`";
            PackageError::wheel(file, form)
        })
    }
}

fn parse(file: &str) -> Option<WheelName> {
    const MAX_BYTES: usize = 255;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '!');
    if file.len() > MAX_BYTES || !file.chars().all(is_plain) {
        return None;
    }
    let mut parts = file.strip_suffix(".whl")?.rsplitn(4, '-');
    let (platform, abi, python) = (parts.next()?, parts.next()?, parts.next()?);
    let mut parts = parts.next()?.split('-');
    let (name, version) = (parts.next()?, parts.next()?);
    if parts.next().is_some_and(|build| !build.starts_with(|c: char| c.is_ascii_digit())) {
        return None;
    }
    if parts.next().is_some() || !is_name(name) {
        return None;
    }
    Some(WheelName {
        name: normalised(name),
        version: Version::from_str(&version.replace('_', "-")).ok()?,
        rank: interpreter::rank(python, abi, platform),
    })
}
