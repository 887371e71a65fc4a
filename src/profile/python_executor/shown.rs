//! The text that stands for a cell's value in the output: JSON, or the `repr`.

use crate::execution::Execution;
use crate::limits::Limits;
use crate::profile::json_dumps;
use crate::value::Value;

/// A value as output shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    /// What `json.dumps` makes of it, or its `repr` if that refuses it.
    pub(super) text: String,
    /// The text that it is, without quotes and escapes, if it is a `str`.
    pub(super) plain: Option<&'a str>,
}

/// Returns how the value of a run is shown, if it has one other than `None`.
pub(super) fn shown(execution: &Execution) -> Option<Shown<'_>> {
    let repr = execution.repr().unwrap_or_default();
    match execution.value() {
        Some(Value::None) => None,
        Some(value) if is_json(value, repr) => {
            Some(Shown { text: json_dumps(value), plain: value.as_str() })
        }
        None if execution.value_error().is_none() => None,
        Some(_) | None => Some(Shown { text: repr.to_owned(), plain: None }),
    }
}

/// Returns whether the value is what its `repr` looks like: nothing but the types that JSON has, and
/// tuples. Sets, dates, dataclasses and the like have become such types on their way to the host, but
/// `json.dumps` refuses them.
fn is_json(value: &Value, repr: &str) -> bool {
    // A repr may be cut. No whole one of these types ends so.
    let repr = repr.strip_suffix("...").unwrap_or(repr);
    // So many items are shortened in another way, and then dicts are sorted.
    let is_long = |items: usize| items > Limits::REPR_CHARS as usize;
    match value {
        Value::List(items) if is_long(items.len()) => repr.starts_with(['[', '(']),
        Value::Dict(items) if is_long(items.len()) => repr.starts_with('{'),
        _ => !matches!(after(value, repr), Err(Stop::Differs)),
    }
}

/// Why a repr is not followed to its end.
#[derive(Debug, PartialEq, Eq)]
enum Stop {
    /// It was cut here.
    Cut,
    /// It is that of another type.
    Differs,
}

/// Returns what follows the repr of `value`.
fn after<'a>(value: &Value, text: &'a str) -> Result<&'a str, Stop> {
    match value {
        Value::Str(_) => after_literal(text),
        Value::Bytes(_) => Err(Stop::Differs),
        Value::List(items) => {
            let (mut text, close) = match token(text, "[") {
                Err(Stop::Differs) => (token(text, "(")?, ")"),
                list => (list?, "]"),
            };
            for (at, item) in items.iter().enumerate() {
                text = after(item, if at > 0 { token(text, ", ")? } else { text })?;
            }
            if close == ")" && items.len() == 1 {
                text = token(text, ",")?;
            }
            token(text, close)
        }
        Value::Dict(items) => {
            let mut text = token(text, "{")?;
            for (at, (key, item)) in items.iter().enumerate() {
                text = after(key, if at > 0 { token(text, ", ")? } else { text })?;
                text = after(item, token(text, ": ")?)?;
            }
            token(text, "}")
        }
        scalar => token(text, &scalar.to_string()),
    }
}

fn token<'a>(text: &'a str, expected: &str) -> Result<&'a str, Stop> {
    let stop = if expected.starts_with(text) { Stop::Cut } else { Stop::Differs };
    text.strip_prefix(expected).ok_or(stop)
}

/// Returns what follows a string literal, whatever is in it.
fn after_literal(text: &str) -> Result<&str, Stop> {
    let mut characters = text.chars();
    let quote = match characters.next() {
        None => return Err(Stop::Cut),
        Some(quote @ ('\'' | '"')) => quote,
        Some(_) => return Err(Stop::Differs),
    };
    while let Some(character) = characters.next() {
        if character == '\\' {
            characters.next();
        } else if character == quote {
            return Ok(characters.as_str());
        }
    }
    Err(Stop::Cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(items: impl IntoIterator<Item = i64>) -> Value {
        items.into_iter().collect()
    }

    #[test]
    fn types_of_json_and_tuples_are_told_by_their_repr() {
        let nested = Value::dict([("it's", Value::List(vec![list([1, 2]), Value::Float(0.5)]))]);
        let cases = [
            (Value::Int(1), "1"),
            (Value::Bool(true), "True"),
            (Value::Float(f64::NAN), "nan"),
            (Value::from("a'\"\\\u{ad}"), r#"'a\'"\\\xad'"#),
            (list([]), "[]"),
            (list([]), "()"),
            (list([1]), "(1,)"),
            (list([1, 2]), "(1, 2)"),
            (Value::Dict(vec![]), "{}"),
            (nested.clone(), r#"{"it's": [(1, 2), 0.5]}"#),
            // Cut, wherever that was.
            (nested.clone(), r#"{"it..."#),
            (nested.clone(), r#"{"it's": ..."#),
            (nested, r#"{"it's": [(1, 2)..."#),
            (list([123]), "[12..."),
            (Value::from("abc"), "'ab..."),
        ];
        for (value, repr) in cases {
            assert!(is_json(&value, repr), "{repr}");
        }
    }

    #[test]
    fn other_types_are_told_at_any_depth() {
        let date = Value::from("2024-05-01");
        let cases = [
            (list([1, 2]), "{1, 2}"),
            (list([]), "set()"),
            (list([1]), "P(x=1)"),
            (list([0, 1]), "range(0, 2)"),
            (list([1]), "[<Color.RED: 1>]"),
            (Value::bytes(*b"a"), "b'a'"),
            (date.clone(), "datetime.date(2024, 5, 1)"),
            (Value::dict([("a", date)]), "{'a': datetime.date(2024, 5, 1)}"),
            (Value::dict([("x", 1)]), "P(x=1)"),
            (Value::List(vec![list([]), list([1, 2])]), "[[], {1, 2}]"),
            (list([1]), "(1)"),
        ];
        for (value, repr) in cases {
            assert!(!is_json(&value, repr), "{repr}");
        }
    }

    #[test]
    fn very_long_containers_are_told_by_their_brackets() {
        let many = i64::from(Limits::REPR_CHARS) + 1;
        assert!(is_json(&list(0..many), "[0, 1, 2, ...]"));
        assert!(!is_json(&list(0..many), "{0, 1, 2, ...}"));
        let pairs = Value::dict((0..many).map(|number| (many - number, 1)));
        assert!(is_json(&pairs, "{1: 1, 2: 1, ...}"));
        assert!(!is_json(&pairs, "Counter({1: 1, 2: 1, ...})"));
    }
}
