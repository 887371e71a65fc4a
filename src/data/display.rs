//! What a guest displays: one object in several formats, a MIME bundle.

use std::fmt;
use std::sync::Arc;

use crate::data::value::{Value, marshal};

/// The maximum number of formats of one display.
pub(crate) const FORMATS: usize = 64;
/// The maximum length of the name of a format, in bytes.
pub(crate) const FORMAT_BYTES: usize = 255;

/// An object that a guest displayed, in one or several formats.
///
/// A guest displays objects with `display(...)`, with `plt.show()`, and by ending a cell with an
/// expression whose value has a rich form, such as a table of pandas. The formats are named as in
/// Jupyter: `text/plain`, `text/html`, `image/png`, `image/svg+xml`, `application/json` and others.
///
/// The bytes come from the guest. The host has checked neither that a picture is one, nor what a
/// page of HTML contains.
#[derive(Clone, PartialEq)]
pub struct Display(Arc<Bundle>);

#[derive(PartialEq)]
struct Bundle {
    formats: Vec<(String, MimeData)>,
    is_result: bool,
    stdout_bytes: u64,
    stderr_bytes: u64,
}

/// An object in one format.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MimeData {
    /// Text, such as HTML, SVG or JSON.
    Text(String),
    /// Bytes, such as those of a PNG picture.
    Bytes(Vec<u8>),
}

impl Display {
    /// Reads a display as the guest encodes it: `[is_result, {format: str or bytes}]`. The output
    /// before it had these sizes.
    pub(crate) fn decode(
        bytes: &[u8],
        max_bytes: u64,
        stdout_bytes: u64,
        stderr_bytes: u64,
    ) -> Option<Self> {
        let Value::List(parts) = marshal::decode_within(bytes, max_bytes).ok()? else {
            return None;
        };
        let [Value::Bool(is_result), Value::Dict(items)] = <[Value; 2]>::try_from(parts).ok()?
        else {
            return None;
        };
        if items.is_empty() || items.len() > FORMATS {
            return None;
        }
        let formats = items.into_iter().map(|(name, data)| match (name, data) {
            (Value::Str(name), Value::Str(text)) if is_format(&name) => {
                Some((name, MimeData::Text(text)))
            }
            (Value::Str(name), Value::Bytes(bytes)) if is_format(&name) => {
                Some((name, MimeData::Bytes(bytes)))
            }
            _ => None,
        });
        let formats = formats.collect::<Option<_>>()?;
        Some(Self(Arc::new(Bundle { formats, is_result, stdout_bytes, stderr_bytes })))
    }

    /// Returns the formats with their data, in the guest's order.
    #[must_use]
    pub fn formats(&self) -> impl ExactSizeIterator<Item = (&str, &MimeData)> {
        self.0.formats.iter().map(|(name, data)| (name.as_str(), data))
    }

    /// Returns the data in one format, such as `image/png`.
    #[must_use]
    pub fn get(&self, format: &str) -> Option<&MimeData> {
        self.formats().find(|(name, _)| *name == format).map(|(_, data)| data)
    }

    /// Returns `true` if this is the value of the cell's last expression.
    #[must_use]
    pub fn is_result(&self) -> bool {
        self.0.is_result
    }

    /// Returns how many bytes of standard output the run had written before, kept or not.
    #[must_use]
    pub fn stdout_bytes_before(&self) -> u64 {
        self.0.stdout_bytes
    }

    /// Returns how many bytes of standard error the run had written before, kept or not.
    #[must_use]
    pub fn stderr_bytes_before(&self) -> u64 {
        self.0.stderr_bytes
    }

    /// Returns the size of the data in all formats, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.formats().map(|(name, data)| name.len() + data.as_bytes().len()).sum()
    }
}

impl MimeData {
    /// Returns the text, or `None` for bytes.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Bytes(_) => None,
        }
    }

    /// Returns the bytes; those of a text are UTF-8.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl fmt::Debug for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.formats().map(|(name, data)| (name, data.as_bytes().len()));
        f.debug_map().entries(sizes).finish()
    }
}

/// Returns `true` for `TYPE/SUBTYPE` of the characters that RFC 6838 allows.
fn is_format(name: &str) -> bool {
    let is_token = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    name.len() <= FORMAT_BYTES
        && name.split_once('/').is_some_and(|(kind, name)| is_token(kind) && is_token(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(value: &Value) -> Vec<u8> {
        let mut bytes = Vec::new();
        marshal::encode(value, &mut bytes);
        bytes
    }

    fn decoded(formats: Vec<(Value, Value)>) -> Option<Display> {
        let value = Value::List(vec![true.into(), Value::Dict(formats)]);
        Display::decode(&encoded(&value), 1000, 3, 4)
    }

    #[test]
    fn a_bundle_is_read_with_text_and_bytes_in_its_order() {
        let display = decoded(vec![
            ("text/plain".into(), "x".into()),
            ("image/png".into(), Value::Bytes(vec![1, 2])),
        ]);
        let display = display.unwrap();
        let formats: Vec<_> = display.formats().map(|(name, _)| name).collect();
        assert_eq!(formats, ["text/plain", "image/png"]);
        assert_eq!(display.get("image/png"), Some(&MimeData::Bytes(vec![1, 2])));
        assert_eq!(display.get("text/plain").and_then(MimeData::as_str), Some("x"));
        assert!(display.is_result());
        assert_eq!((display.stdout_bytes_before(), display.stderr_bytes_before()), (3, 4));
        assert_eq!(display.size(), 22);
    }

    #[test]
    fn nothing_else_is_read() {
        for name in ["", "text", "text/", "/plain", "text/pl ain", "text/\u{1b}[2J", "a/b/c"] {
            assert_eq!(decoded(vec![(name.into(), "x".into())]), None, "{name}");
        }
        assert_eq!(decoded(vec![(format!("a/{}", "b".repeat(254)).into(), "x".into())]), None);
        assert_eq!(decoded(vec![("text/plain".into(), 1.into())]), None);
        assert_eq!(decoded(vec![(1.into(), "x".into())]), None);
        assert_eq!(decoded(Vec::new()), None);
        let many = |count: usize| {
            decoded((0..count).map(|at| (format!("a/{at}").into(), "".into())).collect())
        };
        assert_eq!(many(FORMATS + 1), None);
        for other in [Value::None, Value::List(Vec::new()), Value::dict([("text/plain", "x")])] {
            assert_eq!(Display::decode(&encoded(&other), 1000, 0, 0), None);
        }
        assert_eq!(Display::decode(b"\0", 1000, 0, 0), None);
        assert_eq!(decoded(vec![("text/plain".into(), "x".repeat(2000).into())]), None);
    }
}
