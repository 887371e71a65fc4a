//! Bodies of other services' clients, read as those services do: null means omitted, and numbers
//! may be strings.

use isolet::Value;
use serde::de::DeserializeOwned;

use super::body;
use super::problem::Problem;

/// Strings that mean an omitted number.
const NOTHING: [&str; 3] = ["", "null", "none"];

/// Deserialises an object whose fields in `numbers` are numbers.
pub(super) fn read<T: DeserializeOwned + Send>(
    given: Value,
    numbers: &[&str],
) -> Result<T, Problem> {
    let Value::Dict(fields) = given else { return body::read("the body", given) };
    let fields = fields.into_iter().filter_map(|(name, value)| {
        let is_number = name.as_str().is_some_and(|name| numbers.contains(&name));
        let value = match value {
            Value::None => return None,
            Value::Str(text) if is_number => number(text)?,
            value => value,
        };
        Some((name, value))
    });
    body::read("the body", Value::Dict(fields.collect()))
}

/// Converts a string to a number, if it is one; `None` for an omitted number.
fn number(text: String) -> Option<Value> {
    let bare = text.trim();
    if NOTHING.iter().any(|nothing| bare.eq_ignore_ascii_case(nothing)) {
        return None;
    }
    if let Ok(number) = bare.parse::<i64>() {
        return Some(number.into());
    }
    match bare.parse::<f64>() {
        Ok(number) if number.is_finite() => Some(number.into()),
        _ => Some(text.into()),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, PartialEq)]
    struct Wanted {
        code: String,
        #[serde(default = "ten")]
        timeout: f64,
    }

    fn ten() -> f64 {
        10.0
    }

    fn timeout(given: impl Into<Value>) -> Result<f64, String> {
        let given = [("code", "".into()), ("timeout", given.into()), ("other", Value::None)];
        let wanted: Result<Wanted, _> = read(Value::dict(given), &["timeout"]);
        wanted.map(|wanted| wanted.timeout).map_err(|problem| problem.text())
    }

    #[test]
    fn numbers_are_read_as_clients_send_them() {
        for (given, read) in [("10", 10.0), (" 2.5 ", 2.5), ("", 10.0), ("null", 10.0), ("0", 0.0)]
        {
            assert_eq!(timeout(given), Ok(read), "{given}");
        }
        assert_eq!(timeout(Value::None), Ok(10.0));
        assert_eq!(timeout(3), Ok(3.0));
        for wrong in ["ten", "inf", "1e999", "10 s"] {
            assert!(timeout(wrong).unwrap_err().contains("at ['timeout']"), "{wrong}");
        }
        let given: Result<Wanted, _> = read(Value::dict([("code", Value::None)]), &[]);
        assert!(given.unwrap_err().text().contains("missing field `code`"));
        assert!(read::<Wanted>(Value::None, &[]).is_err());
    }
}
