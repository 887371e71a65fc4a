//! Ops behind `TextEncoder` and `TextDecoder`. V8 encodes in place, because a copy of the text
//! would be uncounted memory.

use deno_core::{op2, v8};

use super::OpError;

/// Returns how many bytes of UTF-8 the text takes.
#[op2(nofast)]
#[number]
pub(crate) fn op_isolet_utf8_length(
    scope: &mut v8::PinScope<'_, '_>,
    text: v8::Local<'_, v8::String>,
) -> u64 {
    text.utf8_length(scope) as u64
}

/// Encodes into a buffer of exactly that size.
#[op2(nofast)]
pub(crate) fn op_isolet_utf8_encode(
    scope: &mut v8::PinScope<'_, '_>,
    text: v8::Local<'_, v8::String>,
    #[buffer] target: &mut [u8],
) -> Result<(), OpError> {
    let (got, needed) = (target.len(), text.utf8_length(scope));
    if got != needed {
        return Err(OpError::Size { got, needed });
    }
    text.write_utf8_v2(scope, target, v8::WriteFlags::kReplaceInvalidUtf8, None);
    Ok(())
}

/// Encodes as many whole characters as fit. Returns the UTF-16 units read and the bytes written.
#[op2]
#[serde]
pub(crate) fn op_isolet_utf8_encode_into(
    scope: &mut v8::PinScope<'_, '_>,
    text: v8::Local<'_, v8::String>,
    #[buffer] target: &mut [u8],
) -> (u32, u32) {
    let mut read = 0;
    let flags = v8::WriteFlags::kReplaceInvalidUtf8;
    let written = text.write_utf8_v2(scope, target, flags, Some(&mut read));
    (u32::try_from(read).unwrap_or(u32::MAX), u32::try_from(written).unwrap_or(u32::MAX))
}

/// Decodes UTF-8 (0), UTF-16LE (1) or Latin-1 (2).
#[op2]
#[string]
pub(crate) fn op_isolet_decode(
    #[buffer] bytes: &[u8],
    #[smi] encoding: u32,
    fatal: bool,
) -> Result<String, OpError> {
    match encoding {
        0 => utf8(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes), fatal),
        1 => utf16(bytes, fatal),
        _ => Ok(bytes.iter().copied().map(char::from).collect()),
    }
}

fn utf8(bytes: &[u8], fatal: bool) -> Result<String, OpError> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) if fatal => Err(OpError::Encoding("UTF-8")),
        Err(_) => Ok(String::from_utf8_lossy(bytes).into_owned()),
    }
}

fn utf16(bytes: &[u8], fatal: bool) -> Result<String, OpError> {
    let pairs = bytes.as_chunks::<2>().0;
    let units: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    match String::from_utf16(&units) {
        Ok(text) => Ok(text),
        Err(_) if fatal => Err(OpError::Encoding("UTF-16")),
        Err(_) => Ok(String::from_utf16_lossy(&units)),
    }
}
