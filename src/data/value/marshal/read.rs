//! Decodes values from hostile bytes. Accepts only what a [`Value`] can represent, and charges
//! memory before it allocates it.

use super::super::bounds::BYTES_PER_STEP;
use super::super::{BigInt, Sign, Value};
use super::MAX_DEPTH;

/// The size of a value in its container: in a list, or as a key or value of a dict.
const VALUE_BYTES: u64 = size_of::<Value>() as u64;

/// The smallest block of memory that an allocator hands out, in bytes.
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

/// Decodes exactly one value from `bytes`, which may take at most `max_memory` bytes of memory.
pub(crate) fn decode_within(bytes: &[u8], max_memory: u64) -> Result<Value, DecodeError> {
    let mut reader = Reader::new(bytes);
    let value = reader.value(max_memory)?;
    reader.end()?;
    Ok(value)
}

/// Decodes exactly one value from `bytes`, without a memory limit.
pub(crate) fn decode(bytes: &[u8]) -> Result<Value, DecodeError> {
    // A list of `None`s takes the most memory per encoded byte: one value for each byte.
    decode_within(bytes, (bytes.len() as u64).saturating_mul(VALUE_BYTES))
}

/// Returns `true` if decoding takes more than `most` steps: one for each tag, and one for each
/// [`BYTES_PER_STEP`] bytes of text. Tags follow one another in any value, however it is nested.
pub(crate) fn takes_more_steps(bytes: &[u8], most: u64) -> bool {
    let mut reader = Reader::new(bytes);
    let mut steps = 0u64;
    // What cannot be decoded ends here, and there.
    while let Ok(skipped) = reader.skip_own() {
        steps = steps.saturating_add(1 + skipped / BYTES_PER_STEP);
        if steps > most {
            return true;
        }
    }
    false
}

/// Returns the size of a block of memory of this length, including the allocator's overhead.
fn block(bytes: u64) -> u64 {
    if bytes == 0 { 0 } else { (bytes.saturating_add(23) & !15).max(LEAST_BLOCK_BYTES) }
}

/// Returns the depth of the items of a container at this depth.
fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth < MAX_DEPTH { Ok(depth + 1) } else { Err(DecodeError::Depth) }
}

/// Decodes one value after another, or skips them.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The number of enclosing lists and dicts, which [`dict`](Self::dict) and [`list`](Self::list)
    /// have entered.
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// Fails if bytes are left over.
    pub(crate) fn end(&self) -> Result<(), DecodeError> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(DecodeError::Trailing(self.at)) }
    }

    /// Decodes a value. If it fails with [`DecodeError::Memory`], the value is skipped, and the
    /// next one can be read.
    pub(crate) fn value(&mut self, max_memory: u64) -> Result<Value, DecodeError> {
        let start = self.at;
        // The smallest block is free, so that a `bytes` as long as the limit is within it.
        let mut memory = Memory { left: max_memory.saturating_add(LEAST_BLOCK_BYTES) };
        match self.build(self.depth, &mut memory) {
            Err(DecodeError::Memory { .. }) => {
                self.at = start;
                Err(DecodeError::Memory { needed: self.skip()?, limit: max_memory })
            }
            built => built,
        }
    }

    /// Skips a value. Returns how much memory it would take.
    pub(crate) fn skip(&mut self) -> Result<u64, DecodeError> {
        self.measure(self.depth)
    }

    /// Reads a text without copying it. Skips any other value and returns `None`.
    pub(crate) fn text(&mut self) -> Result<Option<&'a str>, DecodeError> {
        match self.peek()? {
            b'u' | b't' => {
                self.at += 1;
                self.utf8().map(Some)
            }
            _ => self.skip().map(|_| None),
        }
    }

    /// Returns `true` if the next value is a text.
    pub(crate) fn is_before_text(&self) -> bool {
        self.peek().is_ok_and(|tag| tag == b'u')
    }

    /// Reads a 64-bit int. Skips any other value and returns `None`.
    pub(crate) fn int(&mut self) -> Result<Option<i64>, DecodeError> {
        match self.peek()? {
            b'i' | b'l' => Ok(self.value(u64::MAX)?.as_i64()),
            _ => self.skip().map(|_| None),
        }
    }

    /// Reads a bool. Skips any other value and returns `None`.
    pub(crate) fn bool(&mut self) -> Result<Option<bool>, DecodeError> {
        match self.peek()? {
            b'T' | b'F' => Ok(self.value(u64::MAX)?.as_bool()),
            _ => self.skip().map(|_| None),
        }
    }

    /// Reads a dict: calls `item` for the value of each key that is text, and skips other keys with
    /// their values. Returns `true` for a dict; skips any other value.
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

    /// Reads a list: calls `item` for each item. Returns `true` for a list; skips any other value.
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

    /// Skips a tag and what belongs to it alone. Returns how many bytes of text those are.
    fn skip_own(&mut self) -> Result<u64, DecodeError> {
        let at = self.at;
        let [tag] = self.array()?;
        let length = match tag {
            b'N' | b'T' | b'F' | b'{' | b'0' => 0,
            b'i' => 4,
            b'g' => 8,
            b'l' => return Ok(self.digits()?.1.len() as u64),
            b's' | b'u' | b't' => {
                let length = self.length()?;
                return Ok(self.take(length)?.len() as u64);
            }
            tag if is_list(tag) => 4,
            _ => return Err(DecodeError::Tag { tag, at }),
        };
        self.take(length).map(|_| 0)
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

    /// Reads the number of a list's items. Each takes at least one byte, which bounds the number.
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

    /// Decodes the next value, which is inside `depth` containers.
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
                // Without this, many small dicts would take several times the memory charged for
                // them.
                items.shrink_to_fit();
                Value::Dict(items)
            }
            _ => return Err(DecodeError::Tag { tag, at }),
        })
    }

    /// Skips the next value, which is inside `depth` containers. Returns how much memory it would
    /// take, without its place in the container.
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

/// The memory that may still be allocated, in bytes.
struct Memory {
    left: u64,
}

impl Memory {
    fn charge(&mut self, bytes: u64) -> Result<(), DecodeError> {
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            // Only this block's need is known here. The caller that knows where the value begins
            // measures the total.
            None => return Err(DecodeError::Memory { needed: bytes, limit: self.left }),
        }
        Ok(())
    }
}

/// Returns the memory that an int takes in addition to the value itself: none unless it exceeds 64
/// bits.
fn long_memory(digits: &[u8]) -> u64 {
    let bytes = digits.len() as u64 * 15 / 16;
    if bytes < 8 { 0 } else { block(bytes + 8) }
}

/// Makes an int from 15-bit digits.
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
    let sign = if negative { Sign::Negative } else { Sign::NonNegative };
    let number = BigInt::from_le_bytes(sign, &magnitude);
    number.to_i64().map_or(Value::BigInt(number), Value::Int)
}
