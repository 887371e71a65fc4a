//! Takes the fields of a guest's report one after the other. A guest may report anything.

use isolet::Value;

use super::messages::events::SourceRange;
use super::messages::values::{Pair, Uuid};

/// The size of an identity, in bytes.
const IDENTITY: usize = 16;

/// The fields that were not taken yet.
pub(super) struct Fields(std::vec::IntoIter<Value>);

impl Fields {
    pub(super) fn new(fields: Vec<Value>) -> Self {
        Self(fields.into_iter())
    }

    pub(super) fn value(&mut self) -> Result<Value, String> {
        self.0.next().ok_or_else(|| "a field is missing".to_owned())
    }

    pub(super) fn text(&mut self) -> Result<String, String> {
        match self.value()? {
            Value::Str(text) => Ok(text),
            other => Err(wrong(&other, "a str")),
        }
    }

    pub(super) fn optional_text(&mut self) -> Result<Option<String>, String> {
        match self.value()? {
            Value::None => Ok(None),
            Value::Str(text) => Ok(Some(text)),
            other => Err(wrong(&other, "a str or None")),
        }
    }

    pub(super) fn texts(&mut self) -> Result<Vec<String>, String> {
        let mut texts = Self::new(self.list()?);
        let mut all = Vec::with_capacity(texts.0.len());
        while texts.0.len() > 0 {
            all.push(texts.text()?);
        }
        Ok(all)
    }

    pub(super) fn list(&mut self) -> Result<Vec<Value>, String> {
        match self.value()? {
            Value::List(items) => Ok(items),
            other => Err(wrong(&other, "a list")),
        }
    }

    pub(super) fn bytes(&mut self) -> Result<Vec<u8>, String> {
        match self.value()? {
            Value::Bytes(bytes) => Ok(bytes),
            other => Err(wrong(&other, "bytes")),
        }
    }

    pub(super) fn bool(&mut self) -> Result<bool, String> {
        let value = self.value()?;
        value.as_bool().ok_or_else(|| wrong(&value, "a bool"))
    }

    pub(super) fn int<T: TryFrom<i64>>(&mut self) -> Result<T, String> {
        let value = self.value()?;
        int(&value)
    }

    pub(super) fn optional_int<T: TryFrom<i64>>(&mut self) -> Result<Option<T>, String> {
        let value = self.value()?;
        if value.is_none() { Ok(None) } else { int(&value).map(Some) }
    }

    pub(super) fn float(&mut self) -> Result<f64, String> {
        match self.value()? {
            Value::Float(value) => Ok(value),
            other => Err(wrong(&other, "a float")),
        }
    }

    /// Takes the index of a node before this one.
    pub(super) fn index(&mut self, before: u32) -> Result<u32, String> {
        let value = self.value()?;
        int(&value)
            .ok()
            .filter(|index| *index < before)
            .ok_or_else(|| format!("it refers to node {value}"))
    }

    /// Takes all that are left, as indexes of nodes before this one.
    pub(super) fn indexes(&mut self, before: u32) -> Result<Vec<u32>, String> {
        let mut indexes = Vec::with_capacity(self.0.len());
        while self.0.len() > 0 {
            indexes.push(self.index(before)?);
        }
        Ok(indexes)
    }

    /// Takes all that are left, as keys and values.
    pub(super) fn pairs(&mut self, before: u32) -> Result<Vec<Pair>, String> {
        let mut pairs = Vec::with_capacity(self.0.len() / 2);
        while self.0.len() > 0 {
            pairs.push(Pair { key: self.index(before)?, value: self.index(before)? });
        }
        Ok(pairs)
    }

    pub(super) fn identity(&mut self) -> Result<Uuid, String> {
        self.optional_identity()?.ok_or_else(|| "an identity is missing".to_owned())
    }

    pub(super) fn optional_identity(&mut self) -> Result<Option<Uuid>, String> {
        match self.value()? {
            Value::None => Ok(None),
            Value::Bytes(data) if data.len() == IDENTITY => Ok(Some(Uuid { data })),
            other => Err(wrong(&other, "an identity of 16 bytes")),
        }
    }

    /// Takes a place in the source, if there is one.
    pub(super) fn position(&mut self) -> Result<Option<SourceRange>, String> {
        match self.value()? {
            Value::None => Ok(None),
            Value::List(fields) => {
                let mut fields = Self::new(fields);
                let filename = fields.text()?;
                Ok(Some(SourceRange { filename, start: fields.int()?, end: fields.int()? }))
            }
            other => Err(wrong(&other, "a place in the source")),
        }
    }

    /// Fails if a field is left.
    pub(super) fn end(self) -> Result<(), String> {
        if self.0.len() > 0 { Err("there are fields too many".to_owned()) } else { Ok(()) }
    }
}

fn int<T: TryFrom<i64>>(value: &Value) -> Result<T, String> {
    let number = match value {
        Value::Int(number) => *number,
        other => return Err(wrong(other, "an int")),
    };
    T::try_from(number).map_err(|_| format!("{number} is out of range"))
}

fn wrong(value: &Value, wanted: &str) -> String {
    let kind = match value {
        Value::None => "None",
        Value::Bool(_) => "a bool",
        Value::Int(_) | Value::BigInt(_) => "an int",
        Value::Float(_) => "a float",
        Value::Str(_) => "a str",
        Value::Bytes(_) => "bytes",
        Value::List(_) => "a list",
        _ => "a dict",
    };
    format!("a field is {kind}, not {wanted}")
}
