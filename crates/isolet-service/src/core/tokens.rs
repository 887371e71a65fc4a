//! Serialises to a stream of tokens of Python's plain data: to write Python's `marshal` format, to
//! hash, and to measure sizes without a copy.

use std::fmt::{self, Display};

use serde::ser::{self, Serialize};

use isolet::internals::plain::MARSHAL_INT;

/// A token of serialised data.
#[derive(Clone, Copy, Debug)]
pub enum Token<'a> {
    None,
    Bool(bool),
    Int(i128),
    /// An int in the format `marshal`.
    BigInt(&'a [u8]),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    /// A list with this many items, which follow.
    List(usize),
    /// A dict. Keys and values follow alternately, then `EndDict`.
    Dict,
    EndDict,
}

/// Receives the tokens.
pub trait Tokens {
    fn take(&mut self, token: Token<'_>) -> Result<(), Stopped>;
}

/// Serialisation ended early: the receiver has enough, or the data cannot be serialised.
#[derive(Debug)]
pub struct Stopped(String);

impl Stopped {
    /// The receiver has enough.
    pub fn enough() -> Self {
        Self(String::new())
    }
}

impl Display for Stopped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Stopped {}

impl ser::Error for Stopped {
    fn custom<T: Display>(reason: T) -> Self {
        Self(reason.to_string())
    }
}

/// Serialises to tokens.
pub fn tokens<T: Tokens>(of: &(impl Serialize + ?Sized), to: &mut T) -> Result<(), Stopped> {
    of.serialize(Serializer { to, is_big_int: false })
}

struct Serializer<'a, T> {
    to: &'a mut T,
    is_big_int: bool,
}

/// A list or a dict whose items follow.
struct Items<'a, T> {
    to: &'a mut T,
    is_dict: bool,
    /// The number of enclosing dicts that end with it.
    ends: usize,
}

impl<T: Tokens> Items<'_, T> {
    fn add(&mut self, item: &(impl Serialize + ?Sized)) -> Result<(), Stopped> {
        tokens(item, self.to)
    }

    fn add_named(
        &mut self,
        name: &'static str,
        item: &(impl Serialize + ?Sized),
    ) -> Result<(), Stopped> {
        self.to.take(Token::Str(name))?;
        self.add(item)
    }

    fn finish(self) -> Result<(), Stopped> {
        for _ in 0..self.ends + usize::from(self.is_dict) {
            self.to.take(Token::EndDict)?;
        }
        Ok(())
    }
}

macro_rules! ints {
    ($($name:ident: $type:ty),*) => {
        $(fn $name(self, number: $type) -> Result<(), Stopped> {
            self.to.take(Token::Int(i128::from(number)))
        })*
    };
}

impl<'a, T: Tokens> ser::Serializer for Serializer<'a, T> {
    type Ok = ();
    type Error = Stopped;
    type SerializeSeq = Items<'a, T>;
    type SerializeTuple = Items<'a, T>;
    type SerializeTupleStruct = Items<'a, T>;
    type SerializeTupleVariant = Items<'a, T>;
    type SerializeMap = Items<'a, T>;
    type SerializeStruct = Items<'a, T>;
    type SerializeStructVariant = Items<'a, T>;

    ints!(
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_u8: u8, serialize_u16: u16, serialize_u32: u32, serialize_u64: u64,
        serialize_i128: i128
    );

    fn is_human_readable(&self) -> bool {
        false
    }

    fn serialize_bool(self, flag: bool) -> Result<(), Stopped> {
        self.to.take(Token::Bool(flag))
    }

    fn serialize_f32(self, number: f32) -> Result<(), Stopped> {
        self.to.take(Token::Float(number.into()))
    }

    fn serialize_f64(self, number: f64) -> Result<(), Stopped> {
        self.to.take(Token::Float(number))
    }

    fn serialize_char(self, letter: char) -> Result<(), Stopped> {
        self.to.take(Token::Str(letter.encode_utf8(&mut [0; 4])))
    }

    fn serialize_str(self, text: &str) -> Result<(), Stopped> {
        self.to.take(Token::Str(text))
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<(), Stopped> {
        let token = if self.is_big_int { Token::BigInt } else { Token::Bytes };
        self.to.take(token(bytes))
    }

    fn serialize_none(self) -> Result<(), Stopped> {
        self.to.take(Token::None)
    }

    fn serialize_some<V: Serialize + ?Sized>(self, value: &V) -> Result<(), Stopped> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), Stopped> {
        self.to.take(Token::None)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), Stopped> {
        self.to.take(Token::None)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
    ) -> Result<(), Stopped> {
        self.to.take(Token::Str(name))
    }

    fn serialize_newtype_struct<V: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &V,
    ) -> Result<(), Stopped> {
        value.serialize(Self { is_big_int: name == MARSHAL_INT, ..self })
    }

    fn serialize_newtype_variant<V: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &V,
    ) -> Result<(), Stopped> {
        self.to.take(Token::Dict)?;
        self.to.take(Token::Str(name))?;
        tokens(value, self.to)?;
        self.to.take(Token::EndDict)
    }

    fn serialize_seq(self, length: Option<usize>) -> Result<Items<'a, T>, Stopped> {
        let length = length.ok_or_else(|| Stopped("a list has no known length".to_owned()))?;
        self.serialize_tuple(length)
    }

    fn serialize_tuple(self, length: usize) -> Result<Items<'a, T>, Stopped> {
        self.to.take(Token::List(length))?;
        Ok(Items { to: self.to, is_dict: false, ends: 0 })
    }

    fn serialize_tuple_struct(
        self,
        _: &'static str,
        length: usize,
    ) -> Result<Items<'a, T>, Stopped> {
        self.serialize_tuple(length)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        length: usize,
    ) -> Result<Items<'a, T>, Stopped> {
        self.to.take(Token::Dict)?;
        self.to.take(Token::Str(name))?;
        Ok(Items { ends: 1, ..self.serialize_tuple(length)? })
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Items<'a, T>, Stopped> {
        self.to.take(Token::Dict)?;
        Ok(Items { to: self.to, is_dict: true, ends: 0 })
    }

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Items<'a, T>, Stopped> {
        self.serialize_map(Some(length))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        length: usize,
    ) -> Result<Items<'a, T>, Stopped> {
        self.to.take(Token::Dict)?;
        self.to.take(Token::Str(name))?;
        Ok(Items { ends: 1, ..self.serialize_map(Some(length))? })
    }
}

macro_rules! items {
    ($($trait:ident $method:ident;)*) => {
        $(impl<T: Tokens> ser::$trait for Items<'_, T> {
            type Ok = ();
            type Error = Stopped;

            fn $method<V: Serialize + ?Sized>(&mut self, item: &V) -> Result<(), Stopped> {
                self.add(item)
            }

            fn end(self) -> Result<(), Stopped> {
                self.finish()
            }
        })*
    };
}

items! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
    SerializeTupleVariant serialize_field;
}

macro_rules! fields {
    ($($trait:ident)*) => {
        $(impl<T: Tokens> ser::$trait for Items<'_, T> {
            type Ok = ();
            type Error = Stopped;

            fn serialize_field<V: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                item: &V,
            ) -> Result<(), Stopped> {
                self.add_named(name, item)
            }

            fn end(self) -> Result<(), Stopped> {
                self.finish()
            }
        })*
    };
}

fields!(SerializeStruct SerializeStructVariant);

impl<T: Tokens> ser::SerializeMap for Items<'_, T> {
    type Ok = ();
    type Error = Stopped;

    fn serialize_key<V: Serialize + ?Sized>(&mut self, key: &V) -> Result<(), Stopped> {
        self.add(key)
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), Stopped> {
        self.add(value)
    }

    fn end(self) -> Result<(), Stopped> {
        self.finish()
    }
}

/// Writes the `marshal` format, version 2.
pub struct Marshal<'a>(pub &'a mut Vec<u8>);

impl Tokens for Marshal<'_> {
    fn take(&mut self, token: Token<'_>) -> Result<(), Stopped> {
        let mut sized = |tag: u8, length: usize, bytes: &[u8]| {
            // Lengths have 31 bits in the format. A frame is shorter.
            let length = i32::try_from(length).map_err(|error| Stopped(error.to_string()))?;
            self.0.push(tag);
            self.0.extend_from_slice(&length.to_le_bytes());
            self.0.extend_from_slice(bytes);
            Ok(())
        };
        match token {
            Token::Str(text) => return sized(b'u', text.len(), text.as_bytes()),
            Token::Bytes(bytes) => return sized(b's', bytes.len(), bytes),
            Token::List(length) => return sized(b'[', length, &[]),
            Token::Dict => self.0.push(b'{'),
            Token::EndDict => self.0.push(b'0'),
            Token::BigInt(bytes) => self.0.extend_from_slice(bytes),
            Token::None => isolet::Value::None.write_marshal(self.0),
            Token::Bool(flag) => isolet::Value::from(flag).write_marshal(self.0),
            Token::Int(number) => isolet::Value::from(number).write_marshal(self.0),
            Token::Float(number) => isolet::Value::from(number).write_marshal(self.0),
        }
        Ok(())
    }
}

/// Counts one for each item and the bytes of texts, up to a limit.
struct Bounded {
    left: usize,
}

impl Tokens for Bounded {
    fn take(&mut self, token: Token<'_>) -> Result<(), Stopped> {
        let own = match token {
            Token::Str(text) => text.len(),
            Token::Bytes(bytes) | Token::BigInt(bytes) => bytes.len(),
            Token::EndDict => 0,
            _ => 1,
        };
        self.left = self.left.checked_sub(own).ok_or_else(Stopped::enough)?;
        Ok(())
    }
}

/// Returns the size of the texts and items, at most `most`. Stops early when it exceeds `most`.
pub fn size_up_to(most: usize, of: &(impl Serialize + ?Sized)) -> usize {
    let mut bounded = Bounded { left: most };
    match tokens(of, &mut bounded) {
        Ok(()) => most - bounded.left,
        Err(_) => most,
    }
}

#[cfg(test)]
mod tests {
    use isolet::Value;
    use serde::Serialize;

    use super::super::plain::Plain;
    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Unit,
        One(u8),
        Two(u8, u8),
        Named { a: Option<()> },
    }

    #[derive(Serialize)]
    struct Message {
        #[serde(skip_serializing_if = "Option::is_none")]
        nothing: Option<u8>,
        text: &'static str,
        kinds: Vec<Kind>,
        float: f64,
        large: u64,
        plain: Plain,
        #[serde(flatten)]
        more: (),
    }

    #[test]
    fn the_format_of_marshal_is_that_of_the_same_value() {
        let plain = Value::Dict(vec![
            (Value::Int(1), Value::bytes(b"\xff".to_vec())),
            ("$bytes".into(), Value::from(1i128 << 100)),
            ("nan".into(), Value::List(vec![Value::Float(f64::INFINITY), Value::None])),
        ]);
        let kinds = vec![Kind::Unit, Kind::One(1), Kind::Two(2, 3), Kind::Named { a: None }];
        let message = Message {
            nothing: None,
            text: "a",
            kinds,
            float: 0.5,
            large: u64::MAX,
            plain: Plain(plain.clone()),
            more: (),
        };
        let mut bytes = Vec::new();
        tokens(&("ok", -5, message), &mut Marshal(&mut bytes)).unwrap();
        let kinds = Value::List(vec![
            "unit".into(),
            Value::dict([("one", 1)]),
            Value::dict([("two", Value::List(vec![2.into(), 3.into()]))]),
            Value::dict([("named", Value::dict([("a", Value::None)]))]),
        ]);
        let expected = Value::dict([
            ("text", "a".into()),
            ("kinds", kinds),
            ("float", 0.5.into()),
            ("large", i128::from(u64::MAX).into()),
            ("plain", plain),
        ]);
        let expected = Value::List(vec!["ok".into(), (-5).into(), expected]);
        assert_eq!(Value::from_marshal(&bytes, 1 << 20).unwrap(), expected);
    }

    #[test]
    fn a_size_is_that_of_texts_and_items_up_to_a_limit() {
        let size = |value: Value| size_up_to(100, &Plain(value));
        assert_eq!(size(Value::None), 1);
        assert_eq!(size("x".repeat(99).into()), 99);
        assert_eq!(size(Value::bytes(vec![0; 101])), 100);
        assert_eq!(size(Value::List(vec![Value::dict([("k", "x".repeat(90))])])), 93);
        assert_eq!(size(Value::List(vec![Value::None; 1000])), 100);
    }
}
