//! The error of conversions between values and Rust types.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};
use serde::ser;

use super::Value;
use super::marshal::MAX_DEPTH;
use crate::data::error::{Error, ErrorKind};

/// The maximum length of a text from the value in a message, in characters. The guest may have
/// chosen the text.
const MAX_TEXT_CHARS: usize = 40;

/// The maximum length of a path in a message, in characters.
const MAX_PATH_CHARS: usize = 160;

/// The error of both conversions. Private, because it is converted into an [`Error`].
#[derive(Debug)]
pub(super) struct Fault {
    message: String,
    /// The place in the value, as Python subscripts: `['a'][0]`.
    path: String,
}

impl Fault {
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), path: String::new() }
    }

    pub(super) fn depth() -> Self {
        Self::new(format!("a value nested deeper than {MAX_DEPTH} levels cannot be converted"))
    }

    pub(super) fn key(key: &Value) -> Self {
        Self::new(format!("a dict key has to be a scalar, not a {}", key.type_name()))
    }

    /// Adds `key` in front of the path.
    #[must_use]
    pub(super) fn at(mut self, key: &Value) -> Self {
        self.path.insert_str(0, &format!("[{key}]"));
        self
    }
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Self::new(ErrorKind::Value, fault.to_string())
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if self.path.is_empty() {
            return Ok(());
        }
        write!(f, ", at {}", cut(&self.path, MAX_PATH_CHARS))
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl de::Error for Fault {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid type: {}, expected {expected}", in_python(found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("invalid value: {}, expected {expected}", in_python(found)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let field = shortened(field);
        let known = |names: &[&str]| format!("`{}`", names.join("`, `"));
        Self::new(match (nearest(&field, expected), expected) {
            (Some(near), _) => format!("unknown field `{field}` (did you mean `{near}`?)"),
            (None, []) => format!("unknown field `{field}`, there are no fields"),
            (None, [only]) => format!("unknown field `{field}`, expected `{only}`"),
            (None, _) => format!("unknown field `{field}`, expected one of {}", known(expected)),
        })
    }
}

/// Returns the name that `given` was probably meant to be.
fn nearest(given: &str, names: &[&'static str]) -> Option<&'static str> {
    /// How alike names are by Jaro and Winkler's measure if one is a misspelling of the other.
    const ALIKE: f64 = 0.8;
    let alike = |name: &&'static str| (strsim::jaro_winkler(given, name), *name);
    let best = names.iter().map(alike).max_by(|one, other| one.0.total_cmp(&other.0));
    best.filter(|(alike, _)| *alike >= ALIKE).map(|(_, name)| name)
}

/// Returns what was found, with Python's type names.
fn in_python(found: Unexpected<'_>) -> String {
    let value = match found {
        Unexpected::Bool(flag) => Value::Bool(flag),
        Unexpected::Unsigned(number) => Value::from(number),
        Unexpected::Signed(number) => Value::Int(number),
        Unexpected::Float(number) => Value::Float(number),
        Unexpected::Char(character) => Value::Str(character.into()),
        Unexpected::Str(text) => Value::Str(shortened(text)),
        Unexpected::Unit => return "None".to_owned(),
        Unexpected::Bytes(_) => return "bytes".to_owned(),
        Unexpected::Seq => return "list".to_owned(),
        Unexpected::Map => return "dict".to_owned(),
        other => return other.to_string(),
    };
    format!("{} {value}", value.type_name())
}

/// Returns as much of `text` as a message shows.
pub(super) fn shortened(text: &str) -> String {
    cut(text, MAX_TEXT_CHARS)
}

fn cut(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text.to_owned(),
    }
}
