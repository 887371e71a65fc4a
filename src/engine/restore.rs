//! Puts the memory image where an interpreter has its memory, without copying what it never writes to.
//!
//! This file has unsafe code because pages are mapped over those that V8 has reserved.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use deno_core::v8;

use crate::worker::Blob;

/// Replaces the first `length` bytes of `memory`: by zeros, and by each of `runs`, which are places in the memory and
/// in `image`. Those are read from there, and a page that is written to is copied first.
#[cfg(target_os = "linux")]
pub(crate) fn map_over(
    memory: v8::Local<'_, v8::WasmMemoryObject>,
    length: usize,
    image: &Blob,
    runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous};

    let buffer = memory.buffer();
    let page = rustix::param::page_size();
    let start = buffer.data().map(NonNull::as_ptr).filter(|start| start.addr() % page == 0);
    let start = start.ok_or_else(|| io::Error::other("the memory does not start with a page"))?;
    let stored = usize::try_from(rustix::fs::fstat(image.fd())?.st_size).unwrap_or_default();
    let is_whole = |number: usize| number.is_multiple_of(page);
    if !is_whole(length) || length > buffer.byte_length() {
        let message =
            format!("{length} bytes are to be mapped, there are {}", buffer.byte_length());
        return Err(io::Error::other(message));
    }
    for (at, run) in runs {
        let inside = at.checked_add(run.len()).is_some_and(|end| end <= length);
        let whole = is_whole(*at) && is_whole(run.start) && is_whole(run.len());
        if !inside || !whole || run.end > stored {
            let message =
                format!("the bytes {run:?} of {stored} are to be mapped at {at} of {length}");
            return Err(io::Error::other(message));
        }
    }
    let (protection, flags) =
        (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
    // SAFETY: `start` and `length` name whole pages inside the contents of a WebAssembly memory, as was just checked.
    // V8 has those in pages that it got from the system for this memory alone, may read and write all of them, and
    // gives them back to the system as a whole, whatever is mapped there. Rust has no reference into them here.
    #[expect(unsafe_code, reason = "what is mapped there is replaced")]
    unsafe { mmap_anonymous(start.cast(), length, protection, flags) }?;
    for (at, run) in runs {
        // SAFETY: as above: the loop before has seen to it that these are whole pages inside of those, and of the
        // file. Should somebody cut that off, against what `Blob` says, reading there ends the process.
        #[expect(unsafe_code, reason = "what is mapped there is replaced")]
        unsafe {
            let place = start.add(*at).cast();
            mmap(place, run.len(), protection, flags, image.fd(), run.start as u64)?;
        }
    }
    Ok(())
}

/// Only Linux has what images are shared by.
#[cfg(not(target_os = "linux"))]
pub(crate) fn map_over(
    _memory: v8::Local<'_, v8::WasmMemoryObject>,
    _length: usize,
    _image: &Blob,
    _runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
