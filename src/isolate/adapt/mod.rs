//! Patches Pyodide's module and CPython, so that a start does not pay for rarely used features.
//!
//! CPython exports more than eight thousand functions and addresses, for packages with dynamic
//! libraries. Emscripten makes an object for each at every start, but Pyodide itself uses only a
//! hundred of them ([`used_exports`]). The others are moved to a table that is read only when a
//! package needs it ([`side_table`]), and are linked as `js/58_linking.js` does. The initial
//! contents of the memory are in the image ([`data_segments`]). CPython is also changed to notice
//! the end of V8's stack ([`recursion`]) and to use Linux's error numbers in its exceptions
//! ([`errnos`]).

mod data_segments;
mod errnos;
mod recursion;
mod side_table;
mod used_exports;

use std::borrow::Cow;

use wasm_encoder::Encode;
use wasmparser::{BinaryReader, BinaryReaderError, ConstExpr, Operator};

/// The sources that shape CPython as `CHANGES` does. They are part of the image's key, so that each
/// image belongs to one version of them.
pub(crate) const RECURSION: &str =
    concat!(include_str!("recursion.rs"), include_str!("recursion/circles.rs"));
pub(crate) const ERRNOS: &str = include_str!("errnos.rs");

/// CPython and Pyodide's JavaScript, as isolates use them.
pub(crate) struct Adapted {
    pub(crate) asm_wasm: Vec<u8>,
    /// The initial contents of an instance's memory, in place of the data segments of `asm_wasm`.
    /// In whole pages.
    pub(crate) data: Vec<u8>,
    pub(crate) asm_mjs: Vec<u8>,
    /// The symbols that packages link to, in the form that `js/58_linking.js` reads.
    pub(crate) exports: String,
}

/// Text patches to `pyodide.asm.mjs`: each text and its replacement. Each text must match exactly
/// once. The last patch makes a call that may suspend begin when the stack is empty, instead of one
/// turn of the event loop later.
pub(crate) const CHANGES: [(&str, &str); 16] = [
    ("mergeLibSymbols(wasmExports,\"main\");", ""),
    (
        "updateGOT(origExports);",
        "Module[\"libraries\"].connect({table:wasmTable,addresses:GOT,functions:wasmImports,exports:origExports,\
            byName:LDSO.loadedLibsByName,load:loadDynamicLibrary,addressOf:getFunctionAddress,\
            forget(){functionsInTableMap=undefined}});\
            Module[\"linking\"].link(origExports,wasmImports,GOT,wasmTable,isInternalSym,exports=>{\
            functionsInTableMap=undefined;wasmExports=applySignatureConversions(exports);\
            assignAllWasmExports(wasmExports);mergeLibSymbols(exports,\"main\");updateGOT(exports)});",
    ),
    (
        "functionsInTableMap=new WeakMap;",
        "functionsInTableMap=new WeakMap;if(Module[\"linking\"].isWhole)",
    ),
    (
        "function loadDynamicLibrary(libName,flags={global:true,nodelete:true},localScope,handle){",
        "function loadDynamicLibrary(libName,flags={global:true,nodelete:true},localScope,handle){\
            Module[\"linking\"].complete();",
    ),
    (
        "function __dlsym_js(handle,symbol,symbolIndex){",
        "function __dlsym_js(handle,symbol,symbolIndex){Module[\"linking\"].complete();",
    ),
    (
        "function __dlsym_catchup_js(handle,symbolIndex){",
        "function __dlsym_catchup_js(handle,symbolIndex){Module[\"linking\"].complete();",
    ),
    (
        "var localScope=global?null:{};",
        "var localScope=global?null:{};Module[\"libraries\"].opening();",
    ),
    (
        "var loadWebAssemblyModule=(binary,flags,libName,localScope,handle)=>{",
        "var loadWebAssemblyModule=(binary,flags,libName,localScope,handle)=>{\
            Module[\"libraries\"].read(libName,binary);",
    ),
    (
        "function loadLibData(){",
        "function loadLibData(){var kept=Module[\"libraries\"].kept(libName);if(kept)return kept;",
    ),
    (
        "for(var needed of metadata.neededDynlibs){",
        "for(var needed of Module[\"libraries\"].needed(metadata)){",
    ),
    (
        "var memoryBase=metadata.memorySize?alignMemory(getMemory(metadata.memorySize+memAlign),memAlign):0;",
        "var memoryBase=Module[\"libraries\"].place(libName,metadata.tableSize,()=>\
            metadata.memorySize?alignMemory(getMemory(metadata.memorySize+memAlign),memAlign):0);",
    ),
    (
        "if(applyRelocs){if(runtimeInitialized){",
        "if(applyRelocs&&!Module[\"libraries\"].isRestoring){if(runtimeInitialized){",
    ),
    (
        "if(init){if(runtimeInitialized){",
        "if(init&&!Module[\"libraries\"].isRestoring){if(runtimeInitialized){",
    ),
    (
        "dso.refcount++;if(handle){LDSO.loadedLibsByHandle[handle]=dso}return",
        "dso.refcount++;if(handle){LDSO.loadedLibsByHandle[handle]=dso}\
            Module[\"libraries\"].loaded(libName,flags,handle);return",
    ),
    (
        "moduleLoaded(getExports());return true}",
        "moduleLoaded(getExports());Module[\"libraries\"].loaded(libName,flags,handle);return true}",
    ),
    ("await new Promise(d=>API.scheduleCallback(d,0));", "await void 0;"),
];

/// Patches CPython's `wasm` and Pyodide's `module`. `glue` is all other code that uses CPython's
/// exports. The error describes what is not as expected.
pub(crate) fn adapted<'a>(
    wasm: &[u8],
    module: &[u8],
    glue: impl Iterator<Item = Cow<'a, str>>,
) -> Result<Adapted, String> {
    let mut text = String::from_utf8_lossy(module);
    for (old, new) in CHANGES {
        if text.matches(old).count() != 1 {
            return Err(format!("`pyodide.asm.mjs` does not have exactly one `{old}`"));
        }
        text = Cow::Owned(text.replacen(old, new, 1));
    }
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
    let side_table::Moved { wasm, exports } =
        side_table::move_exports(&wasm, &used).map_err(unreadable)?;
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
