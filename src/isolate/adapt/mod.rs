//! Patches Pyodide's module and CPython, so that a start does not pay for rarely used features.
//!
//! CPython exports more than eight thousand functions and addresses, for packages with dynamic
//! libraries. Emscripten makes an object for each at every start, but Pyodide itself uses only a
//! hundred of them ([`used_exports`]). The others are moved to a table that is read only when a
//! package needs it ([`exports`]), and are linked as `js/linking.js` does. The initial
//! contents of the memory are in the image ([`data_segments`]). CPython is also changed to notice
//! the end of V8's stack ([`recursion`]) and to use Linux's error numbers in its exceptions
//! ([`errnos`]). Textual patches, which are data beside the pinned release, make Pyodide's module
//! cooperate ([`mod@patches`]).

mod data_segments;
mod errnos;
mod exports;
mod patches;
mod recursion;
mod used_exports;

use std::borrow::Cow;

use isolet_pyodide_assets::{lock, patches};
use wasm_encoder::Encode;
use wasmparser::{BinaryReader, BinaryReaderError, ConstExpr, Operator};

/// CPython and Pyodide's JavaScript, as isolates use them.
pub(crate) struct Adapted {
    pub(crate) asm_wasm: Vec<u8>,
    /// The initial contents of an instance's memory, in place of the data segments of `asm_wasm`.
    /// In whole pages.
    pub(crate) data: Vec<u8>,
    pub(crate) asm_mjs: Vec<u8>,
    /// The symbols that packages link to, in the form that `js/linking.js` reads.
    pub(crate) exports: String,
}

/// Patches CPython's `wasm` and Pyodide's `module`. `glue` is all other code that uses CPython's
/// exports. The error describes what is not as expected.
pub(crate) fn adapted<'a>(
    wasm: &[u8],
    module: &[u8],
    glue: impl Iterator<Item = Cow<'a, str>>,
) -> Result<Adapted, String> {
    let pinned = |error: isolet_pyodide_assets::Error| error.to_string();
    let (patches, version) = (patches().map_err(pinned)?, lock().map_err(pinned)?.version());
    let text = patches::apply(&String::from_utf8_lossy(module), patches, version)?;
    let glue: Vec<_> = glue.collect();
    let (text, used) = used_exports::split(&text, &glue)
        .ok_or("`pyodide.asm.mjs` does not take CPython's exports as it used to")?;
    let unreadable = |error| format!("`pyodide.asm.wasm` cannot be read: {error}");
    let wasm = errnos::adopt(wasm)
        .map_err(unreadable)?
        .ok_or("`pyodide.asm.wasm` does not make exceptions of error numbers as it used to")?;
    let wasm = recursion::charge(&wasm)
        .map_err(unreadable)?
        .ok_or("`pyodide.asm.wasm` does not look at its stack as it used to")?;
    let exports::Moved { wasm, exports } =
        exports::move_exports(&wasm, &used).map_err(unreadable)?;
    let data_segments::Taken { wasm, memory } = data_segments::take_out(&wasm)
        .map_err(unreadable)?
        .ok_or("`pyodide.asm.wasm` has data that is in no place of its own")?;
    Ok(Adapted { asm_wasm: wasm, data: memory, asm_mjs: text.into_bytes(), exports })
}

/// Returns a section, which is a number of items, with one more item at its end.
fn appended(section: &[u8], item: &dyn Encode) -> Result<Vec<u8>, BinaryReaderError> {
    let mut items = BinaryReader::new(section, 0);
    let count = items.read_var_u32()?;
    let mut longer = Vec::new();
    (count + 1).encode(&mut longer);
    longer.extend_from_slice(items.read_bytes(items.bytes_remaining())?);
    item.encode(&mut longer);
    Ok(longer)
}

/// Returns the value of an expression that is a single constant.
fn constant(expression: &ConstExpr<'_>) -> Option<i32> {
    let mut operators = expression.get_operators_reader().into_iter();
    match (operators.next()?.ok()?, operators.next()?.ok()?) {
        (Operator::I32Const { value }, Operator::End) => Some(value),
        _ => None,
    }
}
