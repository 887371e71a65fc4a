//! Python's `marshal` format, version 2: the encoding of values that cross between host and guest.
//!
//! CPython reads and writes it in C, its strings are UTF-8, and without back references it is a
//! plain tree.

mod read;
#[cfg(test)]
mod tests;

pub(crate) use read::{DecodeError, Reader, decode, decode_within, takes_more_steps};

use super::{Sign, Value};

/// The maximum nesting depth, in both directions.
pub(crate) const MAX_DEPTH: usize = 128;

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
            let (sign, magnitude) = number.to_le_bytes();
            encode_long(sign == Sign::Negative, &magnitude, out);
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

fn encode_length(length: usize, out: &mut Vec<u8>) {
    // The format stores lengths in 31 bits. Callers limit what they send to far less.
    let length = i32::try_from(length).unwrap_or(i32::MAX);
    out.extend_from_slice(&length.to_le_bytes());
}

fn encode_sized(tag: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    encode_length(bytes.len(), out);
    out.extend_from_slice(bytes);
}

/// Encodes an int beyond 32 bits: 15-bit digits, least significant first. The sign is that of the
/// digit count.
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
