//! Python's `marshal` format, version 2: how values cross the boundary as bytes.
//!
//! CPython writes and reads it in C, a string in it is its UTF-8, and without back references it is
//! a plain tree. The decoder here takes hostile bytes: it accepts only what a [`Value`] can be, and
//! neither depth nor a false length makes it do more work than the input is long.

#[cfg(test)]
mod tests;

use super::{BigInt, Value};

/// Nesting past this is refused in both directions.
pub(crate) const MAX_DEPTH: usize = 128;

/// Items that a list's length may reserve memory for before they are read: lengths can be false, and
/// lists nested.
const MAX_RESERVED: usize = 1024;

/// Why bytes from the guest are not a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DecodeError {
    #[error("it ends after {0} bytes, inside a value")]
    Truncated(usize),
    #[error("it holds the tag {tag:#04x} at byte {at}, which is no plain value")]
    Tag { tag: u8, at: usize },
    #[error("it is nested deeper than {MAX_DEPTH} levels")]
    Depth,
    #[error("it holds a dict key at byte {0}, which is no scalar")]
    Key(usize),
    #[error("it holds text that is not UTF-8 at byte {0}")]
    Utf8(usize),
    #[error("it goes on after its end at byte {0}")]
    Trailing(usize),
}

/// Appends `value` to `out`.
pub(crate) fn encode(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::None => out.push(b'N'),
        Value::Bool(true) => out.push(b'T'),
        Value::Bool(false) => out.push(b'F'),
        Value::Int(number) => match i32::try_from(*number) {
            Ok(small) => {
                out.push(b'i');
                out.extend_from_slice(&small.to_le_bytes());
            }
            Err(_) => encode_long(*number < 0, &number.unsigned_abs().to_le_bytes(), out),
        },
        Value::BigInt(number) => {
            let (negative, bytes) = number.to_le_bytes();
            encode_long(negative, &bytes, out);
        }
        Value::Float(number) => {
            out.push(b'g');
            out.extend_from_slice(&number.to_le_bytes());
        }
        Value::Str(text) => encode_sized(b'u', text.as_bytes(), out),
        Value::Bytes(bytes) => encode_sized(b's', bytes, out),
        Value::List(items) => {
            out.push(b'[');
            encode_length(items.len(), out);
            for item in items {
                encode(item, out);
            }
        }
        Value::Dict(items) => {
            out.push(b'{');
            for (key, item) in items {
                encode(key, out);
                encode(item, out);
            }
            out.push(b'0');
        }
    }
}

/// Reads exactly one value from `bytes`.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?;
    if reader.at != bytes.len() {
        return Err(DecodeError::Trailing(reader.at));
    }
    Ok(value)
}

fn encode_length(length: usize, out: &mut Vec<u8>) {
    // The format counts in 31 bits; callers cap what they send far below.
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
}

fn encode_sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    encode_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Longs are digits of 15 bits, least significant first; the sign is that of the digit count.
fn encode_long(negative: bool, magnitude: &[u8], out: &mut Vec<u8>) {
    let mut digits: Vec<u16> = Vec::with_capacity(magnitude.len() * 8 / 15 + 1);
    let (mut window, mut bits) = (0u32, 0);
    for byte in magnitude {
        window |= u32::from(*byte) << bits;
        bits += 8;
        if bits >= 15 {
            digits.push((window & 0x7fff) as u16);
            window >>= 15;
            bits -= 15;
        }
    }
    digits.push((window & 0x7fff) as u16);
    while digits.last() == Some(&0) {
        digits.pop();
    }
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    out.push(b'l');
    out.extend_from_slice(&(if negative { -count } else { count }).to_le_bytes());
    for digit in digits {
        out.extend_from_slice(&digit.to_le_bytes());
    }
}

/// The depth of what is inside a container at this depth.
fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(DecodeError::Depth) }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..length).ok_or(DecodeError::Truncated(self.bytes.len()))?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn length(&mut self) -> Result<usize, DecodeError> {
        let length = i32::from_le_bytes(self.array()?);
        usize::try_from(length).map_err(|_| DecodeError::Truncated(self.at))
    }

    /// Reads a value that is inside so many others.
    fn value(&mut self, depth: usize) -> Result<Value, DecodeError> {
        let at = self.at;
        let [tag] = self.array()?;
        self.tagged(tag, at, depth)
    }

    fn tagged(&mut self, tag: u8, at: usize, depth: usize) -> Result<Value, DecodeError> {
        Ok(match tag {
            b'N' => Value::None,
            b'T' => Value::Bool(true),
            b'F' => Value::Bool(false),
            b'i' => Value::Int(i32::from_le_bytes(self.array()?).into()),
            b'l' => self.long()?,
            b'g' => Value::Float(f64::from_le_bytes(self.array()?)),
            b's' => {
                let length = self.length()?;
                Value::Bytes(self.take(length)?.to_vec())
            }
            b'u' | b't' => {
                let length = self.length()?;
                let start = self.at;
                let text = std::str::from_utf8(self.take(length)?)
                    .map_err(|error| DecodeError::Utf8(start + error.valid_up_to()))?;
                Value::Str(text.to_owned())
            }
            b'[' | b'(' | b'<' | b'>' => {
                let depth = deeper(depth)?;
                let length = self.length()?;
                let mut items = Vec::with_capacity(length.min(MAX_RESERVED));
                for _ in 0..length {
                    items.push(self.value(depth)?);
                }
                items.shrink_to_fit();
                Value::List(items)
            }
            b'{' => {
                let depth = deeper(depth)?;
                let mut items = Vec::new();
                loop {
                    let at = self.at;
                    let [tag] = self.array()?;
                    if tag == b'0' {
                        break;
                    }
                    let key = self.tagged(tag, at, depth)?;
                    if !key.is_scalar() {
                        return Err(DecodeError::Key(at));
                    }
                    items.push((key, self.value(depth)?));
                }
                // Many small dicts would otherwise take several times their share.
                items.shrink_to_fit();
                Value::Dict(items)
            }
            _ => return Err(DecodeError::Tag { tag, at }),
        })
    }

    fn long(&mut self) -> Result<Value, DecodeError> {
        let count = i32::from_le_bytes(self.array()?);
        let digits = self.take(count.unsigned_abs() as usize * 2)?;
        let mut magnitude = Vec::with_capacity(digits.len());
        let (mut window, mut bits) = (0u32, 0);
        for [low, high] in digits.as_chunks::<2>().0 {
            window |= (u32::from(u16::from_le_bytes([*low, *high])) & 0x7fff) << bits;
            bits += 15;
            while bits >= 8 {
                magnitude.push((window & 0xff) as u8);
                window >>= 8;
                bits -= 8;
            }
        }
        magnitude.push((window & 0xff) as u8);
        let number = BigInt::from_le_bytes(count < 0, &magnitude);
        Ok(number.to_i64().map_or(Value::BigInt(number), Value::Int))
    }
}
