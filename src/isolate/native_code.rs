//! CPython's native code: compiled once for all isolates of a process, and stored for later
//! processes.
//!
//! This file has unsafe code because V8's C++ functions that optimise and serialise code have no
//! Rust bindings.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};

use bytes::Bytes;
use deno_core::v8::{self, MapFnTo};
use wasmparser::{BinaryReaderError, Parser, Payload, TypeRef};

use super::image::Library;
use super::platform;
use crate::support::spin;

/// The V8 that [`optimize`] and [`serialize`] were checked against. They call functions of it by
/// mangled names and read an object of it; no version promises to have them alike.
const CHECKED_V8: &str = "15.0.245.2-rusty";

/// Whether isolet is built with it. With another V8 images have no native code, and each process
/// compiles the functions that it calls. It is a constant so that the compiler leaves the calls
/// out: then a V8 links that has no such functions.
const IS_CHECKED: bool = CHECKED_V8.eq_ignore_ascii_case(v8::VERSION_STRING);

/// The compiled CPython.
pub(crate) struct CompiledWasm(v8::CompiledWasmModule);

/// The modules that the first isolate of a process compiles and all others use.
pub(crate) type SharedModules = Arc<Modules>;

pub(crate) struct Modules {
    cpython: OnceLock<CompiledWasm>,
    /// Dynamic libraries of the image, by name.
    libraries: Mutex<HashMap<String, CompiledWasm>>,
    /// Whether V8's internals are used to write native code. Tests do without.
    uses_internals: bool,
}

impl Default for Modules {
    fn default() -> Self {
        let (cpython, libraries) = (OnceLock::new(), Mutex::default());
        Self { cpython, libraries, uses_internals: IS_CHECKED }
    }
}

impl Modules {
    /// Those of a process that has CPython's native code of an image.
    pub(crate) fn with_code(wasm: &[u8], code: Bytes) -> SharedModules {
        let modules = Self::default();
        if let Some(cpython) = deserialize_in_new_isolate(wasm, code) {
            // Nobody else has these modules yet.
            let _ = modules.cpython.set(cpython);
        }
        Arc::new(modules)
    }

    /// Those of a process whose V8 is not the one that was checked.
    #[cfg(test)]
    pub(crate) fn without_internals() -> SharedModules {
        Arc::new(Self { uses_internals: false, ..Self::default() })
    }

    pub(crate) fn cpython(&self) -> Option<&CompiledWasm> {
        self.cpython.get()
    }

    /// Returns a library as a module of this isolate.
    pub(crate) fn library<'s>(
        &self,
        scope: &mut v8::PinScope<'s, '_>,
        library: &Library,
        stored: Option<Bytes>,
    ) -> Option<v8::Local<'s, v8::WasmModuleObject>> {
        if let Some(compiled) = self.libraries().get(&library.name) {
            return v8::WasmModuleObject::from_compiled_module(scope, &compiled.0);
        }
        let restored = stored.and_then(|code| deserialize(scope, &library.wasm, code));
        let module = restored.or_else(|| v8::WasmModuleObject::compile(scope, &library.wasm))?;
        let compiled = CompiledWasm(module.get_compiled_module());
        self.libraries().entry(library.name.clone()).or_insert(compiled);
        Some(module)
    }

    /// Returns the native code of a library, once an isolate has it.
    pub(crate) fn library_code(&self, library: &Library) -> Result<Vec<u8>, BinaryReaderError> {
        match self.libraries().get(&library.name) {
            Some(compiled) => {
                self.optimize(compiled, &library.wasm)?;
                Ok(self.serialize(compiled))
            }
            None => Ok(Vec::new()),
        }
    }

    /// Has V8 optimize all functions of `wasm` that it has compiled so far, because they were
    /// called. For most of those that a start needs it would never do so, as they are called once;
    /// every process would compile them anew.
    pub(crate) fn optimize(
        &self,
        compiled: &CompiledWasm,
        wasm: &[u8],
    ) -> Result<(), BinaryReaderError> {
        if IS_CHECKED && self.uses_internals { optimize(compiled, wasm) } else { Ok(()) }
    }

    /// The code that V8 has optimized so far, as [`Pending`] takes it; nothing if V8 is not the one
    /// that was checked.
    pub(crate) fn serialize(&self, compiled: &CompiledWasm) -> Vec<u8> {
        if IS_CHECKED && self.uses_internals { serialize(compiled) } else { Vec::new() }
    }

    fn libraries(&self) -> MutexGuard<'_, HashMap<String, CompiledWasm>> {
        self.libraries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// CPython before it becomes a module of an isolate. The module is the process's, or is made from
/// the stored native code, or is compiled.
///
/// V8 accepts stored code only from the same V8 with the same flags, on a processor with the same
/// features. Functions that were not called when the code was stored are compiled when they are
/// called.
pub(crate) struct Pending {
    shared: SharedModules,
    wasm: Bytes,
    stored: Option<Bytes>,
    /// Notifies when the process has the module.
    helper: Option<mpsc::Receiver<()>>,
}

impl Pending {
    /// Starts a thread that makes the module from the `stored` code, if the process has none yet.
    /// Meanwhile the isolate's thread does other work.
    pub(crate) fn start(shared: SharedModules, wasm: Bytes, stored: Option<Bytes>) -> Self {
        let code =
            stored.clone().filter(|_| shared.cpython().is_none() && !spin::budget().is_zero());
        let helper = code.and_then(|code| {
            let (sender, done) = mpsc::channel();
            let (shared, wasm) = (Arc::clone(&shared), wasm.clone());
            let help = move || {
                if let Some(module) = deserialize_in_new_isolate(&wasm, code) {
                    // Another isolate's module may have been first.
                    let _ = shared.cpython.set(module);
                }
                // If the isolate has ended, nobody waits any more.
                let _ = sender.send(());
            };
            platform::spawn(help).ok().map(|()| done)
        });
        Self { shared, wasm, stored, helper }
    }

    /// Waits for the module. Returns `None` if CPython does not compile.
    pub(crate) fn module<'s>(
        self,
        scope: &mut v8::PinScope<'s, '_>,
    ) -> Option<v8::Local<'s, v8::WasmModuleObject>> {
        // A thread that ended early has made nothing.
        let helped = self.helper.is_some_and(|done| done.recv().is_ok());
        if let Some(compiled) = self.shared.cpython() {
            return v8::WasmModuleObject::from_compiled_module(scope, &compiled.0);
        }
        // Code that the helper could not use is of no use here either.
        let stored = self.stored.filter(|_| !helped);
        let restored = stored.and_then(|code| deserialize(scope, &self.wasm, code));
        let module = restored.or_else(|| v8::WasmModuleObject::compile(scope, &self.wasm))?;
        // The first module becomes the process's. Another one that was compiled meanwhile serves
        // only its isolate.
        let _ = self.shared.cpython.set(CompiledWasm(module.get_compiled_module()));
        Some(module)
    }
}

/// Makes a module from native code, in an isolate that exists only for this.
fn deserialize_in_new_isolate(wasm: &[u8], code: Bytes) -> Option<CompiledWasm> {
    let mut isolate = v8::Isolate::new(v8::CreateParams::default());
    v8::scope!(let scope, &mut isolate);
    let context = v8::Context::new(scope, v8::ContextOptions::default());
    let scope = &mut v8::ContextScope::new(scope, context);
    let module = deserialize(scope, wasm, code)?;
    Some(CompiledWasm(module.get_compiled_module()))
}

thread_local! {
    /// Code passed to V8's deserialisation callback. A thread-local, because the callback takes no
    /// user data.
    static OFFERED: Cell<Option<Bytes>> = const { Cell::new(None) };
    /// Set while this thread deserialises, which V8 takes for compiling.
    static IS_DESERIALIZING: Cell<bool> = const { Cell::new(false) };
}

/// Returns `true` if V8 asks for permission to compile because this thread deserialises code of the
/// image. No guest code runs meanwhile.
pub(crate) fn is_deserializing() -> bool {
    IS_DESERIALIZING.get()
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
    // If V8 accepts the code, it calls this before `finish` returns. Otherwise it calls it later,
    // with the result of compiling.
    let result = Rc::new(RefCell::new(None));
    let receiver = Rc::clone(&result);
    IS_DESERIALIZING.set(true);
    compilation.finish(scope, Some(offer.map_fn_to()), move |isolate, module| {
        if let Ok(module) = module {
            *receiver.borrow_mut() = Some(v8::Global::new(isolate, module));
        }
    });
    IS_DESERIALIZING.set(false);
    let module = result.borrow_mut().take()?;
    Some(v8::Local::new(scope, module))
}

fn optimize(module: &CompiledWasm, wasm: &[u8]) -> Result<(), BinaryReaderError> {
    /// `v8::internal::wasm::ExecutionTier::kTurbofan`.
    const OPTIMIZED: i8 = 2;
    #[expect(unsafe_code, reason = "the functions are V8's")]
    unsafe extern "C" {
        /// `v8::internal::wasm::GetWasmEngine()`.
        #[link_name = "_ZN2v88internal4wasm13GetWasmEngineEv"]
        fn engine() -> *mut c_void;
        /// `v8::internal::wasm::WasmEngine::CompileFunction(NativeModule*, uint32_t,
        /// ExecutionTier)`.
        #[link_name = "_ZN2v88internal4wasm10WasmEngine15CompileFunctionEPNS1_12NativeModuleEjNS1_\
                       13ExecutionTierE"]
        fn compile(engine: *mut c_void, module: *mut c_void, function: u32, tier: i8);
        /// `v8::internal::wasm::NativeModule::HasCode(uint32_t) const`.
        #[link_name = "_ZNK2v88internal4wasm12NativeModule7HasCodeEj"]
        fn has_code(module: *const c_void, function: u32) -> bool;
        /// `v8::internal::wasm::NativeModule::HasCodeWithTier(uint32_t, ExecutionTier) const`.
        #[link_name = "_ZNK2v88internal4wasm12NativeModule15HasCodeWithTierEjNS1_13ExecutionTierE"]
        fn has_code_with_tier(module: *const c_void, function: u32, tier: i8) -> bool;
    }
    let functions = declared_functions(wasm)?;
    let has_functions = !functions.is_empty();
    // SAFETY: `object` explains why the pointer may be read, and that the module lives as long as
    // `module`. The function indices are those that `wasm` declares, from which the module was
    // compiled. Any thread may call these functions once V8 has been initialised, which it was,
    // because the module exists.
    #[expect(unsafe_code, reason = "the functions are V8's")]
    unsafe {
        let native = object(module).cast::<*mut c_void>().read();
        let first = functions.start;
        let called = functions.filter(|function| has_code(native, *function));
        // V8 stores no module without optimized code, and then validates it at every start.
        let called: Vec<u32> = called.collect();
        let called = if called.is_empty() && has_functions { vec![first] } else { called };
        for function in called {
            if !has_code_with_tier(native, function, OPTIMIZED) {
                compile(engine(), native, function, OPTIMIZED);
            }
        }
    }
    Ok(())
}

/// Returns a pointer to V8's `v8::CompiledWasmModule`: a
/// `std::shared_ptr<internal::wasm::NativeModule>`, which begins with a pointer to the module that
/// it keeps alive, and a string.
fn object(module: &CompiledWasm) -> *mut c_void {
    const {
        assert!(size_of::<v8::CompiledWasmModule>() == size_of::<*mut c_void>());
    }
    // SAFETY: in Rust, `v8::CompiledWasmModule` is only a pointer to V8's object of that name, as
    // the check of its size confirms. The object lives as long as `module`.
    #[expect(unsafe_code, reason = "the type does not give its pointer away")]
    unsafe {
        std::mem::transmute_copy::<v8::CompiledWasmModule, *mut c_void>(&module.0)
    }
}

/// Returns the indices of the functions that `wasm` has code for. Imported functions have the
/// indices before them.
fn declared_functions(wasm: &[u8]) -> Result<Range<u32>, BinaryReaderError> {
    let (mut imported, mut declared) = (0, 0);
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    imported += u32::from(matches!(import?.ty, TypeRef::Func(_)));
                }
            }
            Payload::FunctionSection(functions) => declared = functions.count(),
            _ => {}
        }
    }
    Ok(imported..imported + declared)
}

fn serialize(module: &CompiledWasm) -> Vec<u8> {
    /// `v8::OwnedBuffer`, which the caller frees: a `std::unique_ptr` and a length. V8 is built
    /// with its own libc++, whose `unique_ptr` is passed as a plain pointer
    /// (`[[clang::trivial_abi]]`).
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
    // SAFETY: `object` explains what the pointer refers to, and that the module lives as long as
    // `module`. The result is `length` bytes that we own. They are copied and never freed, because
    // only V8 could free them, and this happens once per image.
    #[expect(unsafe_code, reason = "the function is V8's")]
    unsafe {
        let OwnedBuffer { bytes, length } = serialize(object(module));
        if bytes.is_null() {
            Vec::new()
        } else {
            std::slice::from_raw_parts(bytes, length).to_vec()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::version::v8_version;

    #[test]
    fn the_v8_whose_internals_were_checked_is_the_one_that_is_linked() {
        assert_eq!(CHECKED_V8, v8_version());
        assert_eq!(CHECKED_V8, v8::V8::get_version());
        const { assert!(IS_CHECKED) }
    }
}
