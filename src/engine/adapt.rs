//! The few places where Pyodide's module is changed: so that it links CPython as `js/58_linking.js` does, and so
//! that a call which may suspend begins when the stack is empty, not a turn of the event loop later.

use std::borrow::Cow;

/// What is replaced, by what. Each is there once.
pub(crate) const CHANGES: [(&str, &str); 7] = [
    ("mergeLibSymbols(wasmExports,\"main\");", ""),
    (
        "updateGOT(origExports);",
        "Module[\"linking\"].link(origExports,wasmImports,GOT,wasmTable,isInternalSym,()=>{\
            functionsInTableMap=undefined;mergeLibSymbols(origExports,\"main\");updateGOT(origExports)});",
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
    ("await new Promise(d=>API.scheduleCallback(d,0));", "await void 0;"),
];

/// Pyodide's module with the changes; the error is what is not in it once.
pub(crate) fn adapted(module: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut text = String::from_utf8_lossy(module);
    for (old, new) in CHANGES {
        if text.matches(old).count() != 1 {
            return Err(old);
        }
        text = Cow::Owned(text.replacen(old, new, 1));
    }
    Ok(text.into_owned().into_bytes())
}
