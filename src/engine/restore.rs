//! Puts the memory image where an interpreter has its memory, without copying what it never writes to.
//!
//! This file has unsafe code because pages are mapped over those that V8 has reserved.

use std::io;
use std::ptr::NonNull;

use deno_core::v8;

use crate::worker::Blob;

/// Replaces the first `length` bytes of `memory` by those of `image`: they are read from there, and a page that
/// is written to is copied first.
#[cfg(target_os = "linux")]
pub(crate) fn map_over(
    memory: v8::Local<'_, v8::WasmMemoryObject>,
    image: &Blob,
    length: usize,
) -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap};

    let buffer = memory.buffer();
    let page = rustix::param::page_size();
    let start = buffer.data().map(NonNull::as_ptr).filter(|start| start.addr() % page == 0);
    let start = start.ok_or_else(|| io::Error::other("the memory does not start with a page"))?;
    let room = u64::try_from(rustix::fs::fstat(image.fd())?.st_size).unwrap_or_default();
    let room = room.min(buffer.byte_length() as u64);
    if !length.is_multiple_of(page) || length as u64 > room {
        let message = format!("{length} bytes are to be mapped, there are {room}");
        return Err(io::Error::other(message));
    }
    let (protection, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: `start` and `length` name whole pages inside the contents of a WebAssembly memory, and the file
    // has as many, as was just checked. V8 has those in pages that it got from the system for this memory alone, may read and write
    // all of them, and gives them back to the system as a whole, whatever is mapped there. Rust has no
    // reference into them here, and the file is sealed, so that nobody writes to what is mapped or cuts it off.
    #[expect(unsafe_code, reason = "what is mapped there is replaced")]
    let mapped = unsafe { mmap(start.cast(), length, protection, flags, image.fd(), 0) };
    mapped.map(drop).map_err(io::Error::from)
}

/// Only Linux has what images are shared by.
#[cfg(not(target_os = "linux"))]
pub(crate) fn map_over(
    _memory: v8::Local<'_, v8::WasmMemoryObject>,
    _image: &Blob,
    _length: usize,
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
