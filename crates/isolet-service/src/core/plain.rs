//! Serialises values of guests and clients within messages, in the same way for every wire.

use isolet::Value;
use isolet::internals::plain::Form;
use serde::ser::{Serialize, Serializer};

/// A value of a guest or a client. Its JSON form is lossless, see `docs/reference/protocol.md`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plain(pub Value);

impl Serialize for Plain {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Form(&self.0).serialize(serializer)
    }
}

/// Serialises a value.
pub(crate) fn value<S: Serializer>(value: &Value, serializer: S) -> Result<S::Ok, S::Error> {
    Form(value).serialize(serializer)
}

/// Serialises an optional value.
#[expect(clippy::ref_option, reason = "serde passes a reference")]
pub(crate) fn optional<S: Serializer>(
    value: &Option<Value>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    value.as_ref().map(Form).serialize(serializer)
}

/// Serialises variables, or other named values, as a dict.
pub(crate) fn named<S: Serializer>(
    items: &[(String, Value)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(items.iter().map(|(name, value)| (name, Form(value))))
}
