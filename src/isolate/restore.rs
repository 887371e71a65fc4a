//! Maps the contents of an image into an interpreter, without copying the pages that it never
//! writes to.
//!
//! This file has unsafe code because it maps pages over those that V8 has reserved, and because it
//! gives pages to V8.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use deno_core::v8;

use crate::support::shared_file::SharedFile;

/// What may be replaced by a copy as a whole: so many bytes, at an address that is a multiple.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;

/// Replaces the first `length` bytes of `memory` by zeros and `runs`, which are ranges of the
/// memory and of `image`. The runs are mapped from the image, and a page is copied when it is first
/// written to.
#[cfg(target_os = "linux")]
pub(crate) fn map_over(
    memory: v8::Local<'_, v8::WasmMemoryObject>,
    length: usize,
    image: &SharedFile,
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
    // SAFETY: `start` and `length` describe whole pages inside the contents of a WebAssembly
    // memory, as was just checked. V8 has obtained these pages from the system for this memory
    // alone, may read and write all of them, and returns them to the system as a whole, whatever is
    // mapped there. Rust has no reference into them here.
    #[expect(unsafe_code, reason = "what is mapped there is replaced")]
    unsafe { mmap_anonymous(start.cast(), length, protection, flags) }?;
    for (at, run) in runs {
        // SAFETY: as above: the earlier loop has checked that these are whole pages inside the
        // contents, and of the file. If someone truncated the file, which `SharedFile` rules out,
        // reading there would end the process.
        #[expect(unsafe_code, reason = "what is mapped there is replaced")]
        unsafe {
            let place = start.add(*at).cast();
            mmap(place, run.len(), protection, flags, image.fd(), run.start as u64)?;
        }
    }
    Ok(())
}

/// Undoes all that was written to `memory` since [`map_over`] has mapped `runs` of `image` over it:
/// its pages are again those of the image, or zero. Huge pages of it may be copies meanwhile, which
/// are not mapped any more.
#[cfg(target_os = "linux")]
pub(crate) fn undo_changes(
    memory: v8::Local<'_, v8::WasmMemoryObject>,
    image: &[u8],
    runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    let buffer = memory.buffer();
    let start = buffer.data().ok_or_else(|| io::Error::other("the memory has no bytes"))?;
    // SAFETY: these are the contents of a WebAssembly memory, which V8 has obtained from the system
    // for this memory alone. Only this thread has it, and no reference into it.
    #[expect(unsafe_code, reason = "the memory is given by its address")]
    unsafe {
        undo_changes_at(start.cast().as_ptr(), buffer.byte_length(), image, runs)
    }
}

/// Does the work of [`undo_changes`].
///
/// # Safety
///
/// `start` and `length` have to describe whole pages of private mappings, of the image or of
/// nothing, and nobody else may access them meanwhile.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the caller gives addresses")]
unsafe fn undo_changes_at(
    start: *mut u8,
    length: usize,
    image: &[u8],
    runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};

    let page = rustix::param::page_size();
    let forget = |bytes: Range<usize>| -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the range is inside the caller's, and begins and ends with a page. Its pages read
        // as the image's or as zeros afterwards. Rust has no reference into them here.
        unsafe { madvise(start.add(bytes.start).cast(), bytes.len(), Advice::LinuxDontNeed) }?;
        Ok(())
    };
    let mut begin = 0;
    while begin < length {
        let next = (start.addr() + begin + 1).next_multiple_of(HUGE_PAGE_BYTES) - start.addr();
        let part = begin..next.min(length);
        begin = part.end;
        // Where pages of the image belong in this part, and what they have. Pages of zeros, which
        // runs may contain, are zero once they are forgotten, whatever is mapped there.
        let pages = runs.iter().flat_map(|(at, run)| {
            let first = part.start.max(*at);
            let last = part.end.min(at + run.len());
            (first..last).step_by(page).map(move |place| {
                let from = run.start + place - at;
                (place, image.get(from..from + page))
            })
        });
        let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
        let pages = pages.filter(|(_, original)| !original.is_some_and(is_zero));
        let mut end = part.start;
        let mut is_first = true;
        for (place, original) in pages {
            let original = original.ok_or(io::ErrorKind::UnexpectedEof)?;
            if is_first {
                forget(place..place + page)?;
            }
            // SAFETY: the page is inside the caller's range, and this is the only reference to it.
            let contents = unsafe { std::slice::from_raw_parts_mut(start.add(place), page) };
            let is_original = contents == original;
            if is_first && is_original {
                // It came from the image, and so does the rest of this part.
                break;
            }
            is_first = false;
            // A page that nobody writes to stays shared with other processes.
            if !is_original {
                contents.copy_from_slice(original);
            }
            forget(end..place)?;
            end = place + page;
        }
        forget(end..part.end)?;
    }
    Ok(())
}

/// Has the system make these bytes of `memory` ready for writing, which takes it less time than one
/// page after the other. Does nothing if it cannot.
#[cfg(target_os = "linux")]
pub(crate) fn populate(memory: v8::Local<'_, v8::WasmMemoryObject>, bytes: Range<usize>) {
    use rustix::mm::{Advice, madvise};

    let buffer = memory.buffer();
    let Some(start) = buffer.data().filter(|_| bytes.end <= buffer.byte_length()) else {
        return;
    };
    // SAFETY: the range is a part of the contents of a WebAssembly memory, and the call changes
    // none of its bytes.
    #[expect(unsafe_code, reason = "the call takes a pointer")]
    unsafe {
        let start = start.as_ptr().cast::<u8>().add(bytes.start);
        // Without it, each page is made ready when it is written.
        let _ = madvise(start.cast(), bytes.len(), Advice::LinuxPopulateWrite);
    }
}

/// Does nothing: only Linux can do it.
#[cfg(not(target_os = "linux"))]
pub(crate) fn populate(_memory: v8::Local<'_, v8::WasmMemoryObject>, _bytes: Range<usize>) {}

/// Does the same as [`map_over`] with an `image` that cannot be mapped.
pub(crate) fn copy_over(
    memory: v8::Local<'_, v8::WasmMemoryObject>,
    length: usize,
    image: &[u8],
    runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    let target = memory.buffer().get_backing_store();
    let target = target.get(..length).ok_or(io::ErrorKind::UnexpectedEof)?;
    for cell in target {
        cell.set(0);
    }
    for (at, run) in runs {
        let run = image.get(run.clone()).unwrap_or_default();
        for (cell, byte) in target.iter().skip(*at).zip(run) {
            cell.set(*byte);
        }
    }
    Ok(())
}

/// Returns the contents of a buffer that starts with this part of `image`. A page is copied when it
/// is first written to.
#[cfg(target_os = "linux")]
pub(crate) fn copy_on_write(
    image: &SharedFile,
    part: Range<usize>,
) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
    use std::ffi::c_void;

    use memmap2::{MmapMut, MmapOptions};

    #[expect(unsafe_code, reason = "it has the type that V8 calls")]
    unsafe extern "C" fn unmap(_start: *mut c_void, _length: usize, mapping: *mut c_void) {
        // SAFETY: this is the pointer of `Box::into_raw` below, and V8 calls this once, when no
        // buffer has these contents any more.
        drop(unsafe { Box::from_raw(mapping.cast::<MmapMut>()) });
    }

    let mut options = MmapOptions::new();
    options.offset(part.start as u64).len(part.len());
    // SAFETY: nobody changes the file while it is mapped, as `SharedFile::map` explains, and writes
    // to this mapping do not reach the file.
    #[expect(unsafe_code, reason = "mapping a file is")]
    let mut mapping = unsafe { options.map_copy(&image.fd()) }?;
    let (start, length) = (mapping.as_mut_ptr(), mapping.len());
    let mapping = Box::into_raw(Box::new(mapping));
    // SAFETY: `start` and `length` describe the whole mapping, which can be read and written. From
    // here on only V8 uses it. It stays mapped until V8 calls `unmap` with it as the argument.
    #[expect(unsafe_code, reason = "V8 is given a pointer")]
    let contents = unsafe {
        v8::ArrayBuffer::new_backing_store_from_ptr(start.cast(), length, unmap, mapping.cast())
    };
    Ok(contents)
}

/// Fails: only Linux has the means to share images.
#[cfg(not(target_os = "linux"))]
pub(crate) fn map_over(
    _memory: v8::Local<'_, v8::WasmMemoryObject>,
    _length: usize,
    _image: &SharedFile,
    _runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, as [`map_over`] does.
#[cfg(not(target_os = "linux"))]
pub(crate) fn copy_on_write(
    _image: &SharedFile,
    _part: Range<usize>,
) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, as [`map_over`] does.
#[cfg(not(target_os = "linux"))]
pub(crate) fn undo_changes(
    _memory: v8::Local<'_, v8::WasmMemoryObject>,
    _image: &[u8],
    _runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    use memmap2::{MmapMut, MmapOptions};

    use super::*;

    const PAGE: usize = 4 << 10;
    const LENGTH: usize = 2 * HUGE_PAGE_BYTES;

    /// An image with a run of pages of which every second one is zero, from the first on.
    fn image() -> Vec<u8> {
        (0..LENGTH).map(|at| u8::from(at / PAGE % 2 == 1) * 7).collect()
    }

    /// Writes to some pages of a memory that begins as the image's, undoes that, and returns the
    /// places of the pages that are not the image's.
    fn wrong_after_undoing(mut memory: MmapMut, begin: usize) -> Vec<usize> {
        let image = image();
        let memory = &mut memory[begin..begin + LENGTH];
        assert!(*memory == *image);
        for at in (0..LENGTH).step_by(3 * PAGE) {
            memory[at] ^= 0xff;
        }
        #[expect(unsafe_code, reason = "the function is unsafe")]
        // SAFETY: the range is a part of a private mapping of this function's own.
        unsafe {
            undo_changes_at(memory.as_mut_ptr(), LENGTH, &image, &[(0, 0..LENGTH)]).unwrap();
        }
        let pages = memory.chunks(PAGE).zip(image.chunks(PAGE)).enumerate();
        pages.filter(|(_, (page, original))| page != original).map(|(nth, _)| nth).collect()
    }

    #[test]
    fn changes_are_undone_in_a_copy_of_an_image_whose_parts_begin_with_zeros() {
        let mut memory = MmapMut::map_anon(LENGTH + HUGE_PAGE_BYTES).unwrap();
        let begin = memory.as_ptr().addr().next_multiple_of(HUGE_PAGE_BYTES);
        let begin = begin - memory.as_ptr().addr();
        memory[begin..begin + LENGTH].copy_from_slice(&image());
        assert_eq!(wrong_after_undoing(memory, begin), [0; 0]);
    }

    #[test]
    fn changes_are_undone_where_the_image_is_mapped() {
        let mut file: File = tempfile::tempfile().unwrap();
        file.write_all(&image()).unwrap();
        #[expect(unsafe_code, reason = "mapping a file is")]
        // SAFETY: nobody else has the file.
        let memory = unsafe { MmapOptions::new().map_copy(file.as_raw_fd()) }.unwrap();
        assert_eq!(wrong_after_undoing(memory, 0), [0; 0]);
    }
}
