//! The text that represents a cell's value in the output: JSON, or the `repr`.

use crate::data::execution::Execution;
use crate::data::value::Value;
use crate::profile::json_dumps;

/// A value as the output shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Shown<'a> {
    /// The value as `json.dumps` gives it, or its `repr` if `json.dumps` rejects it.
    pub(super) text: String,
    /// The text without quotes and escapes, if the value is a `str`.
    pub(super) plain: Option<&'a str>,
}

/// Returns the text for a run's value, if it has one other than `None`.
pub(super) fn shown(execution: &Execution) -> Option<Shown<'_>> {
    let repr = execution.repr().unwrap_or_default();
    match execution.value() {
        Some(Value::None) => None,
        Some(value) if execution.is_json => {
            Some(Shown { text: json_dumps(value), plain: value.as_str() })
        }
        None if execution.value_error().is_none() => None,
        Some(_) | None => Some(Shown { text: repr.to_owned(), plain: None }),
    }
}
