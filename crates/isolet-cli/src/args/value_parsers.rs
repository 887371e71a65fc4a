//! Parsers for values on the command line.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use isolet::{Limits, Mount, MountMode};

/// A directory to mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountArg {
    pub(crate) host: String,
    pub(crate) guest: String,
    pub(crate) mode: MountMode,
}

impl MountArg {
    pub(crate) fn open(&self) -> Result<Mount, isolet::Error> {
        match self.mode {
            MountMode::Overlay => Mount::overlay(&self.host),
            MountMode::ReadWrite => Mount::read_write(&self.host),
            _ => Mount::read_only(&self.host),
        }
    }
}

/// Parses `HOST:GUEST`, `HOST:GUEST:ro`, `HOST:GUEST:overlay` or `HOST:GUEST:rw`.
pub(crate) fn mount(text: &str) -> Result<MountArg, String> {
    let (rest, mode) = match text.rsplit_once(':') {
        Some((rest, "ro")) => (rest, MountMode::ReadOnly),
        Some((rest, "overlay")) => (rest, MountMode::Overlay),
        Some((rest, "rw")) => (rest, MountMode::ReadWrite),
        _ => (text, MountMode::ReadOnly),
    };
    match rest.rsplit_once(':') {
        Some((host, guest)) if !host.is_empty() && guest.starts_with('/') => {
            Ok(MountArg { host: host.to_owned(), guest: guest.to_owned(), mode })
        }
        _ => {
            Err(format!("`{text}` is not of the form HOST:/GUEST, or that with :ro, :overlay, :rw"))
        }
    }
}

/// Requirements that were given together.
pub(crate) type Packages = Vec<String>;

/// Splits requirements at commas: `numpy,pandas>=2,<3` are two. A comma that begins no name belongs
/// to the versions or extras before it.
#[expect(clippy::unnecessary_wraps, reason = "the engine says what is wrong with a requirement")]
pub(crate) fn packages(text: &str) -> Result<Packages, String> {
    let mut packages = vec![String::new()];
    let mut depth = 0;
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        depth += i32::from(character == '[') - i32::from(character == ']');
        let begins_name = || rest.as_str().trim_start().starts_with(|c: char| c.is_alphabetic());
        if character == ',' && depth == 0 && begins_name() {
            packages.push(String::new());
        } else if let Some(last) = packages.last_mut() {
            last.push(character);
        }
    }
    Ok(packages.iter().map(|package| package.trim().to_owned()).collect())
}

/// Parses `NAME=ADDRESS`.
pub(crate) fn resolution(text: &str) -> Result<(String, IpAddr), String> {
    let (name, address) = assignment(text)?;
    let address = address.parse().map_err(|_| format!("`{address}` is no IP address"))?;
    Ok((name, address))
}

/// Parses a time of day, such as `2026-07-01T12:00:00Z` or `2026-07-01`.
pub(crate) fn time(text: &str) -> Result<SystemTime, String> {
    let day = format!("{text}T00:00:00Z");
    let time = humantime::parse_rfc3339(text).or_else(|_| humantime::parse_rfc3339(&day));
    time.map_err(|_| format!("`{text}` is no time such as 2026-07-01T12:00:00Z"))
}

/// Parses a time limit: `500ms`, `10s`, `2m 30s`, a number of seconds, or `none`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text.trim() == "none" {
        return Ok(Limits::LONGEST_RUN_TIME);
    }
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("`{text}` is no number of seconds that a run can last"));
    }
    humantime::parse_duration(text)
        .map_err(|_| format!("`{text}` is no time, such as 500ms, 10s, 2m or none"))
}

/// Parses a size in bytes: `4096`, `64KiB`, `16MiB`, `1GB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        _ => return Err(format!("`{unit}` is no unit of size; use KiB, MiB or GiB")),
    };
    number
        .parse::<u64>()
        .ok()
        .and_then(|number| number.checked_mul(factor))
        .ok_or_else(|| format!("`{text}` is no size in bytes"))
}

/// Parses `NAME=VALUE`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_are_split_at_commas_before_names() {
        let split = |text| packages(text).unwrap().join(" | ");
        assert_eq!(split("numpy"), "numpy");
        assert_eq!(split("numpy,pandas, matplotlib"), "numpy | pandas | matplotlib");
        assert_eq!(split("rich>=14,<15,numpy"), "rich>=14,<15 | numpy");
        assert_eq!(split("a[x,y]>1,b"), "a[x,y]>1 | b");
        assert_eq!(split("a,,b"), "a, | b");
        assert_eq!(split(""), "");
    }

    #[test]
    fn durations_and_sizes_are_read_as_people_write_them() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m 1s"), Ok(Duration::from_secs(121)));
        assert_eq!(duration("none"), Ok(Limits::LONGEST_RUN_TIME));
        assert!(duration("-1").is_err() && duration("soon").is_err() && duration("nan").is_err());
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert_eq!(bytes("3 MB"), Ok(3_000_000));
        assert_eq!(bytes("12"), Ok(12));
        assert!(bytes("").is_err() && bytes("5 furlongs").is_err());
        assert!(bytes("99999999999GiB").is_err());
        assert_eq!(assignment("A=b=c"), Ok(("A".into(), "b=c".into())));
        assert!(assignment("=x").is_err());
    }
}
