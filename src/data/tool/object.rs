//! The types of dicts with known keys.

use std::collections::{HashMap, HashSet};

use super::hint::TypeHint;
use super::name;
use crate::data::value::Value;

/// A `dict` with known keys: `typing.TypedDict` in the guest, `object` in a JSON schema.
///
/// ```
/// use isolet::{ObjectHint, TypeHint, Value};
///
/// let page = ObjectHint::new("Page")
///     .required("title", TypeHint::Str)
///     .optional("tags", TypeHint::List(Box::new(TypeHint::Str)))
///     .closed();
/// assert_eq!(TypeHint::Object(page).to_string(), "Page");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct ObjectHint {
    pub(super) title: String,
    pub(super) fields: Vec<Field>,
    /// The type of the values of other keys; `None` if there must be none.
    pub(super) rest: Option<Box<TypeHint>>,
}

/// A key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) hint: TypeHint,
    pub(super) presence: Presence,
}

/// Whether a key has to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    Required,
    Optional,
}

impl ObjectHint {
    /// Starts a type without keys, which allows all others. It is shown by its title, or as `dict`
    /// if the title is no Python identifier.
    pub fn new(title: impl Into<String>) -> Self {
        let title: String = title.into();
        let title = if name::is_identifier(&title) { title } else { String::new() };
        Self { title, fields: Vec::new(), rest: Some(Box::default()) }
    }

    /// Adds a key that has to be there, or changes it.
    pub fn required(self, name: impl Into<String>, hint: TypeHint) -> Self {
        self.field(Field { name: name.into(), hint, presence: Presence::Required })
    }

    /// Adds a key that may be missing, or changes it.
    pub fn optional(self, name: impl Into<String>, hint: TypeHint) -> Self {
        self.field(Field { name: name.into(), hint, presence: Presence::Optional })
    }

    /// Rejects all other keys.
    pub fn closed(mut self) -> Self {
        self.rest = None;
        self
    }

    pub(super) fn field(mut self, field: Field) -> Self {
        match self.fields.iter_mut().find(|known| known.name == field.name) {
            Some(known) => *known = field,
            None => self.fields.push(field),
        }
        self
    }

    /// Returns the name that annotations show.
    pub(super) fn shown(&self) -> &str {
        if self.title.is_empty() { "dict" } else { &self.title }
    }

    /// Returns `true` if a dict is of this type.
    pub(super) fn accepts(&self, items: &[(Value, Value)]) -> bool {
        let is_fitting = |key: &Value, value: &Value, fields: &HashMap<&str, &Field>| {
            let Some(name) = key.as_str() else { return false };
            match fields.get(name) {
                Some(field) => field.hint.accepts(value),
                None => self.rest.as_ref().is_some_and(|hint| hint.accepts(value)),
            }
        };
        let fields = self.by_name();
        items.iter().all(|(key, value)| is_fitting(key, value, &fields))
            && self.missing(items).is_none()
    }

    /// Says what is wrong with a dict, if anything.
    pub(super) fn fault(&self, items: &[(Value, Value)]) -> Option<String> {
        if let Some(field) = self.missing(items) {
            return Some(format!("{} is missing", Value::from(field.name.as_str())));
        }
        let fields = self.by_name();
        items.iter().find_map(|(key, value)| {
            let Some(name) = key.as_str() else {
                return Some(format!("the key {key} is no str"));
            };
            let known = fields.get(name).map(|field| &field.hint);
            let Some(hint) = known.or(self.rest.as_deref()) else {
                return Some(format!("it must not have {key}"));
            };
            // Looks for the reason only where there is one: each look costs as much as the check.
            (!hint.accepts(value)).then(|| {
                let reason = hint.check(value).err();
                format!("{key} {}", reason.unwrap_or_default())
            })
        })
    }

    fn by_name(&self) -> HashMap<&str, &Field> {
        self.fields.iter().map(|field| (field.name.as_str(), field)).collect()
    }

    /// Returns a key that has to be there and is not.
    fn missing(&self, items: &[(Value, Value)]) -> Option<&Field> {
        let is_required = |field: &&Field| field.presence == Presence::Required;
        let mut required = self.fields.iter().filter(is_required).peekable();
        required.peek()?;
        let names: HashSet<&str> = items.iter().filter_map(|(key, _)| key.as_str()).collect();
        required.find(|field| !names.contains(field.name.as_str()))
    }

    /// Returns what follows the kind in the tree for the guest's glue.
    pub(super) fn to_values(&self) -> Vec<Value> {
        let field = |field: &Field| {
            let is_required = field.presence == Presence::Required;
            let name = field.name.as_str().into();
            Value::List(vec![name, field.hint.to_value(), is_required.into()])
        };
        let fields = self.fields.iter().map(field).collect();
        vec![self.shown().into(), Value::List(fields)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> ObjectHint {
        let tags = ObjectHint::new("").required("n", TypeHint::Int);
        ObjectHint::new("Page")
            .required("title", TypeHint::Str)
            .optional("tags", TypeHint::List(Box::new(TypeHint::Object(tags))))
    }

    fn fault(hint: ObjectHint, value: &Value) -> String {
        TypeHint::Object(hint).check(value).unwrap_err()
    }

    #[test]
    fn what_is_wrong_with_a_key_is_said() {
        let title = || ("title", Value::from("x"));
        assert_eq!(fault(page(), &3.into()), "must be Page, not int");
        assert_eq!(fault(page(), &Value::dict([("a", 1)])), "must be Page, but 'title' is missing");
        assert_eq!(
            fault(page(), &Value::dict([("title", 1)])),
            "must be Page, but 'title' must be str, not int"
        );
        let tags = Value::List(vec![Value::dict([("n", "x")])]);
        assert_eq!(
            fault(page(), &Value::dict([title(), ("tags", tags)])),
            "must be Page, but 'tags' must be list[dict], but item 0 must be dict, but 'n' must \
             be int, not str"
        );
        let other = Value::dict([title(), ("other", 1.into())]);
        assert!(TypeHint::Object(page()).check(&other).is_ok());
        assert_eq!(fault(page().closed(), &other), "must be Page, but it must not have 'other'");
        let odd = Value::Dict(vec![("title".into(), "x".into()), (1.into(), 2.into())]);
        assert_eq!(fault(page(), &odd), "must be Page, but the key 1 is no str");
    }

    #[test]
    fn a_title_that_is_no_name_is_not_shown() {
        let hint = ObjectHint::new("a): import os").required("x", TypeHint::Int);
        let hint = hint.optional("x", TypeHint::Str);
        assert_eq!((hint.shown(), hint.fields.len()), ("dict", 1));
    }
}
