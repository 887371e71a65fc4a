//! Tells CPython that there is an interrupt to ask for. Asking is a call into JavaScript, and
//! CPython would do it every 50 steps; it does so only while a byte in its memory says that there
//! may be one.

use std::cell::RefCell;
use std::ffi::c_void;
use std::ptr;

use deno_core::v8;

/// The byte, in the memory of the one isolate that a thread has. V8 grows that memory in place.
struct Flag {
    memory: v8::SharedRef<v8::BackingStore>,
    at: usize,
}

thread_local! {
    static FLAG: RefCell<Option<Flag>> = const { RefCell::new(None) };
}

/// Has [`raise`] set the byte at this address. Called on the isolate's thread.
pub(crate) fn watch(memory: v8::Local<'_, v8::WasmMemoryObject>, at: usize) {
    let memory = memory.buffer().get_backing_store();
    FLAG.set(Some(Flag { memory, at }));
}

/// Sets the byte, from any thread, as soon as V8 looks up from what it runs.
pub(crate) fn raise(isolate: &v8::IsolateHandle) {
    extern "C" fn set(_isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
        FLAG.with_borrow(|flag| {
            let byte = flag.as_ref().and_then(|Flag { memory, at }| memory.get(*at));
            if let Some(byte) = byte {
                byte.set(1);
            }
        });
    }
    // It fails only when the isolate is gone.
    isolate.request_interrupt(set, ptr::null_mut());
}
