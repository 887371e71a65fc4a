//! Ops behind `TextEncoder` and `TextDecoder`.

use deno_core::op2;

use super::OpError;

#[op2]
#[buffer]
pub(crate) fn op_isolet_utf8_encode(#[string] text: String) -> Vec<u8> {
    text.into_bytes()
}

/// Encodes as many whole characters as fit; returns UTF-16 units read and bytes written.
#[op2]
#[serde]
pub(crate) fn op_isolet_utf8_encode_into(
    #[string] text: &str,
    #[buffer] target: &mut [u8],
) -> (u32, u32) {
    let (mut read, mut written) = (0, 0);
    for character in text.chars() {
        let end = written + character.len_utf8();
        let Some(slot) = target.get_mut(written..end) else {
            break;
        };
        character.encode_utf8(slot);
        written = end;
        read += character.len_utf16();
    }
    (u32::try_from(read).unwrap_or(u32::MAX), u32::try_from(written).unwrap_or(u32::MAX))
}

#[op2]
#[string]
pub(crate) fn op_isolet_utf8_decode(
    #[buffer] bytes: &[u8],
    utf16: bool,
    fatal: bool,
) -> Result<String, OpError> {
    if utf16 {
        let units: Vec<u16> =
            bytes.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        return if fatal {
            String::from_utf16(&units).map_err(|_| OpError::Encoding("UTF-16"))
        } else {
            Ok(String::from_utf16_lossy(&units))
        };
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if fatal {
        std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| OpError::Encoding("UTF-8"))
    } else {
        Ok(String::from_utf8_lossy(bytes).into_owned())
    }
}
