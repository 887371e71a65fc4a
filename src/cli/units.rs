//! Parsers for what people write on a command line.

use std::time::Duration;

/// Reads a duration: `500ms`, `10s`, `2m 30s`, or a number of seconds.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.trim().parse::<f64>() {
        return Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("`{text}` is no number of seconds that a run can last"));
    }
    humantime::parse_duration(text).map_err(|error| format!("`{text}` is no duration: {error}"))
}

/// Reads a size in bytes: `4096`, `64KiB`, `16MiB`, `1GB`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
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

/// Reads `NAME=VALUE`.
pub(super) fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is not of the form NAME=VALUE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_sizes_are_read_as_people_write_them() {
        assert_eq!(duration("1s"), Ok(Duration::from_secs(1)));
        assert_eq!(duration("0.5"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("2m 1s"), Ok(Duration::from_secs(121)));
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
