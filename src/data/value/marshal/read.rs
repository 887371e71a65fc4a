//! Reading the format out of hostile bytes: only what a [`Value`] can be is accepted, and what it
//! takes in memory is charged before it is taken.

use super::super::{BigInt, Value};
use super::MAX_DEPTH;

/// What a value takes where it is held: in a list, or as a key or an item of a dict.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;

/// The least that an allocator takes for a block of memory.
const LEAST_BLOCK_BYTES: u64 = 32;

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
    #[error("it takes {needed} bytes of the host's memory, the limit is {limit} bytes")]
    Memory { needed: u64, limit: u64 },
}

/// Reads exactly one value from `bytes`, which takes no more than so many bytes of memory.
pub(crate) fn decode_within(bytes: &[u8], max_memory: u64) -> Result<Value, DecodeError> {
    let mut reader = Reader::new(bytes);
    let value = reader.value(max_memory)?;
    reader.end()?;
    Ok(value)
}

/// Reads exactly one value from `bytes`, however much memory a value of so many bytes takes.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    // Nothing takes more than a list of `None`, of a byte each.
    decode_within(bytes, (bytes.len() as u64).saturating_mul(VALUE_BYTES))
}

/// The bytes of a block of memory of this length, with what the allocator adds.
fn block(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes.saturating_add(23) & !15).max(LEAST_BLOCK_BYTES) }
}

/// The depth of what is inside a container at this depth.
fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(DecodeError::Depth) }
}

/// Reads one value after the other, some of them without keeping them.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The lists and dicts around, which [`dict`](Self::dict) and [`list`](Self::list) have
    /// entered.
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// Fails unless everything has been read.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(DecodeError::Trailing(self.at)) }
    }

    /// Reads a value. After [`DecodeError::Memory`] it has been passed over, and what follows can
    /// be read.
    pub(crate) fn value(&mut self, max_memory: u64) -> Result<Value, DecodeError> {
        let start = self.at;
        // What holds the value itself has room for it: a `bytes` as long as the limit is within it.
        let mut memory = Memory { left: max_memory.saturating_add(LEAST_BLOCK_BYTES) };
        match self.build(self.depth, &mut memory) {
            Err(DecodeError::Memory { .. }) => {
                self.at = start;
                Err(DecodeError::Memory { needed: self.skip()?, limit: max_memory })
            }
            built => built,
        }
    }

    /// Passes over a value. Returns how much memory it would take.
    pub(crate) fn skip(&mut self) -> Result<u64, DecodeError> {
        self.measure(self.depth)
    }

    /// Reads a text without copying it. Anything else is passed over, and `None`.
    pub(crate) fn text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        match self.peek()? {
            b'u' | b't' => {
                self.at += 1;
                self.utf8().map(Some)
            }
            _ => self.skip().map(|_| None),
        }
    }

    /// Reads an int of 64 bits. Anything else is passed over, and `None`.
    pub(crate) fn int(&mut self) -> Result<Option<i64>, DecodeError> {
        match self.peek()? {
            b'i' | b'l' => Ok(self.value(u64::MAX)?.as_i64()),
            _ => self.skip().map(|_| None),
        }
    }

    /// Reads a bool. Anything else is passed over, and `None`.
    pub(crate) fn bool(&mut self) -> Result<Option<bool>, DecodeError> {
        match self.peek()? {
            b'T' | b'F' => Ok(self.value(u64::MAX)?.as_bool()),
            _ => self.skip().map(|_| None),
        }
    }

    /// Reads a dict: `item` reads the value of each key that is text; other keys are passed over
    /// with their values. Returns whether it is a dict; anything else is passed over.
    pub(crate) fn dict(
        &mut self,
        mut item: impl FnMut(&'a str, &mut Self) -> Result<(), DecodeError>,
    ) -> Result<bool, DecodeError> {
        if self.peek()? != b'{' {
            return self.skip().map(|_| false);
        }
        self.at += 1;
        let outside = self.depth;
        self.depth = deeper(outside)?;
        while self.peek()? != b'0' {
            match self.text()? {
                Some(name) => item(name, self)?,
                None => drop(self.skip()?),
            }
        }
        self.at += 1;
        self.depth = outside;
        Ok(true)
    }

    /// Reads a list: `item` reads each item of it. Returns whether it is a list; anything else is
    /// passed over.
    pub(crate) fn list(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<bool, DecodeError> {
        if !is_list(self.peek()?) {
            return self.skip().map(|_| false);
        }
        self.at += 1;
        let outside = self.depth;
        self.depth = deeper(outside)?;
        for _ in 0..self.items()? {
            item(self)?;
        }
        self.depth = outside;
        Ok(true)
    }

    fn peek(&self) -> Result<u8, DecodeError> {
        self.bytes.get(self.at).copied().ok_or(DecodeError::Truncated(self.bytes.len()))
    }

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

    /// The number of a list's items, each of which has a byte at least.
    fn items(&mut self) -> Result<usize, DecodeError> {
        let length = self.length()?;
        if length > self.bytes.len() - self.at {
            return Err(DecodeError::Truncated(self.bytes.len()));
        }
        Ok(length)
    }

    fn utf8(&mut self) -> Result<&'a str, DecodeError> {
        let length = self.length()?;
        let start = self.at;
        std::str::from_utf8(self.take(length)?)
            .map_err(|error| DecodeError::Utf8(start + error.valid_up_to()))
    }

    fn digits(&mut self) -> Result<(bool, &'a [u8]), DecodeError> {
        let count = i32::from_le_bytes(self.array()?);
        Ok((count < 0, self.take(count.unsigned_abs() as usize * 2)?))
    }

    /// Makes the next value, which is inside so many others.
    fn build(&mut self, depth: usize, memory: &mut Memory) -> Result<Value, DecodeError> {
        let at = self.at;
        let [tag] = self.array()?;
        self.tagged(tag, at, depth, memory)
    }

    fn tagged(
        &mut self,
        tag: u8,
        at: usize,
        depth: usize,
        memory: &mut Memory,
    ) -> Result<Value, DecodeError> {
        Ok(match tag {
            b'N' => Value::None,
            b'T' => Value::Bool(true),
            b'F' => Value::Bool(false),
            b'i' => Value::Int(i32::from_le_bytes(self.array()?).into()),
            b'l' => {
                let (negative, digits) = self.digits()?;
                memory.charge(long_memory(digits))?;
                long(negative, digits)
            }
            b'g' => Value::Float(f64::from_le_bytes(self.array()?)),
            b's' => {
                let length = self.length()?;
                let bytes = self.take(length)?;
                memory.charge(block(length as u64))?;
                Value::Bytes(bytes.to_vec())
            }
            b'u' | b't' => {
                let text = self.utf8()?;
                memory.charge(block(text.len() as u64))?;
                Value::Str(text.to_owned())
            }
            tag if is_list(tag) => {
                let depth = deeper(depth)?;
                let length = self.items()?;
                memory.charge(block(VALUE_BYTES.saturating_mul(length as u64)))?;
                let mut items = Vec::with_capacity(length);
                for _ in 0..length {
                    items.push(self.build(depth, memory)?);
                }
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
                    if items.is_empty() {
                        memory.charge(LEAST_BLOCK_BYTES)?;
                    }
                    memory.charge(2 * VALUE_BYTES)?;
                    let key = self.tagged(tag, at, depth, memory)?;
                    if !key.is_scalar() {
                        return Err(DecodeError::Key(at));
                    }
                    items.push((key, self.build(depth, memory)?));
                }
                // Many small dicts would otherwise take several times their share.
                items.shrink_to_fit();
                Value::Dict(items)
            }
            _ => return Err(DecodeError::Tag { tag, at }),
        })
    }

    /// Passes over the next value, which is inside so many others. Returns how much memory it would
    /// take, without what holds it.
    fn measure(&mut self, depth: usize) -> Result<u64, DecodeError> {
        let at = self.at;
        let [tag] = self.array()?;
        self.measure_tagged(tag, at, depth)
    }

    fn measure_tagged(&mut self, tag: u8, at: usize, depth: usize) -> Result<u64, DecodeError> {
        Ok(match tag {
            b'N' | b'T' | b'F' => 0,
            b'i' => {
                self.take(4)?;
                0
            }
            b'g' => {
                self.take(8)?;
                0
            }
            b'l' => long_memory(self.digits()?.1),
            b's' | b'u' | b't' => {
                let length = self.length()?;
                self.take(length)?;
                block(length as u64)
            }
            tag if is_list(tag) => {
                let depth = deeper(depth)?;
                let length = self.items()?;
                let mut memory = block(VALUE_BYTES.saturating_mul(length as u64));
                for _ in 0..length {
                    memory = memory.saturating_add(self.measure(depth)?);
                }
                memory
            }
            b'{' => {
                let depth = deeper(depth)?;
                let mut memory = 0u64;
                loop {
                    let at = self.at;
                    let [tag] = self.array()?;
                    if tag == b'0' {
                        break;
                    }
                    let own = if memory == 0 { LEAST_BLOCK_BYTES } else { 0 } + 2 * VALUE_BYTES;
                    let key = self.measure_tagged(tag, at, depth)?;
                    let item = self.measure(depth)?;
                    memory = memory.saturating_add(own).saturating_add(key).saturating_add(item);
                }
                memory
            }
            _ => return Err(DecodeError::Tag { tag, at }),
        })
    }
}

fn is_list(tag: u8) -> bool {
    matches!(tag, b'[' | b'(' | b'<' | b'>')
}

/// How much memory is left for what is made.
struct Memory {
    left: u64,
}

impl Memory {
    fn charge(&mut self, bytes: u64) -> Result<(), DecodeError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            // What is needed in all is measured by who knows where the value begins.
            None => return Err(DecodeError::Memory { needed: bytes, limit: self.left }),
        }
        Ok(())
    }
}

/// What an int takes besides the value itself: none unless it has more than 64 bits.
fn long_memory(digits: &[u8]) -> u64 {
    let bytes = digits.len() as u64 * 15 / 16;
    if bytes < 8 { 0 } else { block(bytes + 8) }
}

/// Makes an int of digits of 15 bits.
fn long(negative: bool, digits: &[u8]) -> Value {
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
    let number = BigInt::from_le_bytes(negative, &magnitude);
    number.to_i64().map_or(Value::BigInt(number), Value::Int)
}
