//! Recognises trampolines, the only kind of WebAssembly that is compiled without being part of a
//! package.
//!
//! Emscripten makes one whenever a JavaScript function gets an address in WebAssembly
//! (`addFunction`), which ctypes' callbacks and packages' imports need. It has one function type,
//! imports one function of that type as `e.f` and exports it again as `f`. It contains no code, so
//! its maker can call nothing that was out of reach before.

#[cfg(test)]
mod tests;

/// WebAssembly's magic and version.
const HEADER: &[u8] = b"\0asm\x01\0\0\0";
/// The import of function `e.f` of type 0, and its export as `f`.
const IMPORT_AND_EXPORT: &[u8] = b"\x02\x07\x01\x01e\x01f\0\0\x07\x05\x01\x01f\0\0";
const TYPE_SECTION: u8 = 1;
const FUNCTION_TYPE: u8 = 0x60;
/// i32, i64, f32, f64, externref.
const VALUE_TYPES: [u8; 5] = [0x7f, 0x7e, 0x7d, 0x7c, 0x6f];
/// More parameters than any C function has.
const MAX_PARAMETERS: usize = 1000;

/// Returns `true` if these bytes are a trampoline, byte for byte as Emscripten writes one.
pub(crate) fn is_trampoline(bytes: &[u8]) -> bool {
    parse(bytes).is_some()
}

fn parse(bytes: &[u8]) -> Option<()> {
    let rest = bytes.strip_prefix(HEADER)?;
    let rest = rest.strip_prefix(&[TYPE_SECTION])?;
    let (section, rest) = counted(rest)?;
    if rest != IMPORT_AND_EXPORT {
        return None;
    }
    let one_type = section.strip_prefix(&[1, FUNCTION_TYPE])?;
    let (parameters, one_type) = counted(one_type)?;
    let (results, nothing) = counted(one_type)?;
    let known = |types: &[u8]| types.iter().all(|kind| VALUE_TYPES.contains(kind));
    let sound = nothing.is_empty()
        && parameters.len() <= MAX_PARAMETERS
        && results.len() <= 1
        && known(parameters)
        && known(results);
    sound.then_some(())
}

/// Splits off the number of bytes given by a two-byte number in front of them, in Emscripten's
/// LEB128.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [low, high, rest @ ..] = bytes else {
        return None;
    };
    if low & 0x80 == 0 || high & 0x80 != 0 {
        return None;
    }
    rest.split_at_checked(usize::from(low & 0x7f) | usize::from(*high) << 7)
}
