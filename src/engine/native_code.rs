//! CPython's native code: compiled once for all isolates of a process, and kept for the next process.
//!
//! This file has unsafe code because V8's C++ function that writes compiled code out has no Rust of its own.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use deno_core::v8::{self, MapFnTo};

/// The compiled CPython.
pub(crate) struct CompiledWasm(v8::CompiledWasmModule);

/// Compiled by the first isolate of the process, used by all.
pub(crate) type SharedWasm = Arc<OnceLock<CompiledWasm>>;

/// CPython as a module of this isolate: the process's, or else made of the native code that was `stored`,
/// or else compiled anew.
///
/// V8 takes stored code only if it was made by the same V8 with the same flags on a processor with the same
/// features; what was never called when it was stored is compiled when it is.
pub(crate) fn module<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    shared: &SharedWasm,
    wasm: &[u8],
    stored: Option<Bytes>,
) -> Option<v8::Local<'s, v8::WasmModuleObject>> {
    if let Some(compiled) = shared.get() {
        return v8::WasmModuleObject::from_compiled_module(scope, &compiled.0);
    }
    let restored = stored.and_then(|code| deserialize(scope, wasm, code));
    let module = restored.or_else(|| v8::WasmModuleObject::compile(scope, wasm))?;
    // Whoever comes first keeps its own; a second one compiled meanwhile serves only its isolate.
    let _ = shared.set(CompiledWasm(module.get_compiled_module()));
    Some(module)
}

thread_local! {
    /// The code that [`deserialize`] offers V8, which calls back without saying for whom.
    static OFFERED: Cell<Option<Bytes>> = const { Cell::new(None) };
}

fn deserialize<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    wasm: &[u8],
    code: Bytes,
) -> Option<v8::Local<'s, v8::WasmModuleObject>> {
    let offer = |cache: &mut v8::ModuleCachingInterface| {
        if let Some(code) = OFFERED.take() {
            cache.set_cached_compiled_module_bytes(&code);
        }
    };
    let mut compilation = v8::WasmModuleCompilation::new();
    compilation.set_has_compiled_module_bytes();
    compilation.on_bytes_received(wasm);
    OFFERED.set(Some(code));
    // V8 calls it before `finish` returns if it takes the code, and later, with the result of compiling, if
    // it does not.
    let result = Rc::new(RefCell::new(None));
    let receiver = Rc::clone(&result);
    compilation.finish(scope, Some(offer.map_fn_to()), move |isolate, module| {
        if let Ok(module) = module {
            *receiver.borrow_mut() = Some(v8::Global::new(isolate, module));
        }
    });
    let module = result.borrow_mut().take()?;
    Some(v8::Local::new(scope, module))
}

/// The code that V8 has optimized so far, as [`module`] takes it.
pub(crate) fn serialize(module: &CompiledWasm) -> Vec<u8> {
    /// `v8::OwnedBuffer`, which the caller frees: a `std::unique_ptr` and a length. V8 is built with its own
    /// libc++, whose `unique_ptr` is passed as the pointer that it is (`[[clang::trivial_abi]]`).
    #[repr(C)]
    struct OwnedBuffer {
        bytes: *const u8,
        length: usize,
    }
    #[expect(unsafe_code, reason = "the function is V8's")]
    unsafe extern "C" {
        /// `v8::CompiledWasmModule::Serialize()`.
        #[link_name = "_ZN2v818CompiledWasmModule9SerializeEv"]
        fn serialize(module: *mut c_void) -> OwnedBuffer;
    }
    const {
        assert!(size_of::<v8::CompiledWasmModule>() == size_of::<*mut c_void>());
    }
    // SAFETY: `v8::CompiledWasmModule` is, in Rust, nothing but a pointer to V8's object of that name, as
    // its size says; the object lives as long as `module`. What is returned are `length` bytes that are
    // ours from then on. They are copied, and never freed: only V8 knows how, and they are made once for an
    // image.
    #[expect(unsafe_code, reason = "the function is V8's")]
    unsafe {
        let object = std::mem::transmute_copy::<v8::CompiledWasmModule, *mut c_void>(&module.0);
        let OwnedBuffer { bytes, length } = serialize(object);
        if bytes.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(bytes, length).to_vec()
        }
    }
}
