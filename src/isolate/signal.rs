//! Tells CPython that an interrupt may be waiting. Checking for one is a call into JavaScript,
//! which CPython would make every 50 steps. It does so only while a byte in its memory is set. The
//! shell ends its run when a byte in its own is set.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use deno_core::v8;

/// A byte in a memory of the thread's only isolate. V8 grows memories in place.
struct Flag {
    memory: v8::SharedRef<v8::BackingStore>,
    at: usize,
}

thread_local! {
    static FLAG: RefCell<Option<Flag>> = const { RefCell::new(None) };
    static SHELL: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Sets the address of the byte that [`raise`] sets. Called on the isolate's thread.
pub(crate) fn watch(memory: v8::Local<'_, v8::WasmMemoryObject>, at: usize) {
    let memory = memory.buffer().get_backing_store();
    FLAG.set(Some(Flag { memory, at }));
}

/// Sets the address of the shell's byte.
pub(crate) fn watch_shell(memory: v8::Local<'_, v8::WasmMemoryObject>, at: usize) {
    let memory = memory.buffer().get_backing_store();
    SHELL.set(Some(Flag { memory, at }));
}

/// Sets the bytes, from any thread, at the next point where V8 handles interrupts.
pub(crate) fn raise(isolate: &v8::IsolateHandle) {
    extern "C" fn set(_isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
        for flag in [&FLAG, &SHELL] {
            flag.with_borrow(|flag| {
                let byte = flag.as_ref().and_then(|Flag { memory, at }| memory.get(*at));
                if let Some(byte) = byte {
                    byte.set(1);
                }
            });
        }
    }
    // Fails only if the isolate is gone.
    isolate.request_interrupt(set, ptr::null_mut());
}
