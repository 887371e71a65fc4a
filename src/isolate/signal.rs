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

/// What the guest is to look for.
#[derive(Clone, Copy)]
pub(crate) enum Signal {
    /// Ends a command of the shell, too.
    Interrupt,
    /// For Python only.
    Alarm,
}

/// Sets the bytes, from any thread, at the next point where V8 handles interrupts.
pub(crate) fn raise(isolate: &v8::IsolateHandle, signal: Signal) {
    extern "C" fn set_both(_isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
        FLAG.with_borrow(|flag| set(flag.as_ref()));
        SHELL.with_borrow(|flag| set(flag.as_ref()));
    }
    extern "C" fn set_python(_isolate: v8::UnsafeRawIsolatePtr, _data: *mut c_void) {
        FLAG.with_borrow(|flag| set(flag.as_ref()));
    }
    // Each fails only if the isolate is gone.
    match signal {
        Signal::Interrupt => isolate.request_interrupt(set_both, ptr::null_mut()),
        Signal::Alarm => isolate.request_interrupt(set_python, ptr::null_mut()),
    };
}

fn set(flag: Option<&Flag>) {
    if let Some(byte) = flag.and_then(|Flag { memory, at }| memory.get(*at)) {
        byte.set(1);
    }
}
