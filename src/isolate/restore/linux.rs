//! Maps the contents of an image into an interpreter.
//!
//! This file has unsafe code because it maps pages over those that V8 has reserved, and because it
//! gives pages to V8.

use std::io;
use std::ops::Range;
use std::ptr::NonNull;

use deno_core::v8;

use crate::support::shared_file::SharedFile;

/// Replaces the first `length` bytes of `memory` by zeros and `runs`, which are ranges of the
/// memory and of `image`. The runs are mapped from the image, and a page is copied when it is first
/// written to.
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

/// Makes `memory` what [`map_over`] has made it, followed by zeros: forgets what was written since.
/// None of its pages may have been replaced by others meanwhile.
pub(crate) fn undo_changes(memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
    use rustix::mm::{Advice, madvise};

    let buffer = memory.buffer();
    let start = buffer.data().ok_or_else(|| io::Error::other("the memory has no bytes"))?;
    // SAFETY: these are the contents of a WebAssembly memory, whole pages that V8 has obtained from
    // the system for this memory alone. Each reads as the image's or as zeros afterwards. Rust has
    // no reference into them here.
    #[expect(unsafe_code, reason = "the memory is given by its address")]
    unsafe { madvise(start.as_ptr(), buffer.byte_length(), Advice::LinuxDontNeed) }?;
    Ok(())
}

/// An image's pages, mapped a second time and put aside: a template's memory is moved to huge
/// pages, which are no longer the image's.
pub(crate) struct PagesAside {
    /// All that runs have of the image, and where in its file that begins.
    mapping: memmap2::Mmap,
    from: usize,
}

impl PagesAside {
    /// Maps the part of `image` that has these runs.
    pub(crate) fn new(image: &SharedFile, runs: &[(usize, Range<usize>)]) -> io::Result<Self> {
        let from = runs.iter().map(|(_, run)| run.start).min().unwrap_or_default();
        let end = runs.iter().map(|(_, run)| run.end).max().unwrap_or_default();
        let mut options = memmap2::MmapOptions::new();
        options.offset(from as u64).len(end - from);
        // SAFETY: nobody changes the file while it is mapped, as `SharedFile::map` explains.
        #[expect(unsafe_code, reason = "mapping a file is")]
        let mapping = unsafe { options.map_copy_read_only(&image.fd()) }?;
        Ok(Self { mapping, from })
    }

    /// Makes `memory` the image's again, followed by zeros, whatever is there: moves the pages to
    /// their places.
    pub(crate) fn put_back(
        self,
        memory: v8::Local<'_, v8::WasmMemoryObject>,
        runs: &[(usize, Range<usize>)],
    ) -> io::Result<()> {
        let buffer = memory.buffer();
        let start = buffer.data().ok_or_else(|| io::Error::other("the memory has no bytes"))?;
        // SAFETY: these are the contents of a WebAssembly memory, whole pages that V8 has obtained
        // from the system for this memory alone, may read and write, and returns as a whole. Rust
        // has no reference into them here.
        #[expect(unsafe_code, reason = "the memory is given by its address")]
        unsafe {
            self.put_back_at(start.cast().as_ptr(), buffer.byte_length(), runs)
        }
    }

    /// Does the work of [`put_back`](Self::put_back).
    ///
    /// # Safety
    ///
    /// `start` and `length` have to describe whole pages that may be read and written, and that
    /// nobody else accesses meanwhile.
    #[expect(unsafe_code, reason = "the caller gives addresses")]
    unsafe fn put_back_at(
        self,
        start: *mut u8,
        length: usize,
        runs: &[(usize, Range<usize>)],
    ) -> io::Result<()> {
        use rustix::mm::{
            MapFlags, MprotectFlags, MremapFlags, ProtFlags, mmap_anonymous, mprotect, mremap_fixed,
        };

        let aside = self.mapping.as_ptr();
        let (mut next, end) = (self.from, self.from + self.mapping.len());
        for (at, run) in runs {
            let is_inside = at.checked_add(run.len()).is_some_and(|end| end <= length);
            if !is_inside || run.start < next || run.end > end {
                let message = format!(
                    "the bytes {run:?} of {next} to {end} are to be put at {at} of {length}"
                );
                return Err(io::Error::other(message));
            }
            next = run.end;
        }
        // Each page leaves the mapping, which is not one any more: what the system puts there later
        // must not be unmapped with it.
        std::mem::forget(self.mapping);
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the caller promises that these pages are its own.
        unsafe { mmap_anonymous(start.cast(), length, protection, flags) }?;
        for (at, run) in runs {
            // SAFETY: the pages to be moved are in the mapping of this value and are still there,
            // because the earlier loop has checked that the runs follow one another in it. The
            // place is inside the caller's pages.
            unsafe {
                let (old, place) = (aside.add(run.start - self.from), start.add(*at).cast());
                let may_move = MremapFlags::MAYMOVE;
                mremap_fixed(old.cast_mut().cast(), run.len(), run.len(), may_move, place)?;
                mprotect(place, run.len(), MprotectFlags::READ | MprotectFlags::WRITE)?;
            }
        }
        Ok(())
    }
}

/// Has the system make these bytes of `memory` ready for writing, which takes it less time than one
/// page after the other. Does nothing if it cannot.
pub(crate) fn populate(memory: v8::Local<'_, v8::WasmMemoryObject>, bytes: Range<usize>) {
    use rustix::mm::{Advice, madvise};

    let buffer = memory.buffer();
    let is_inside = bytes.start <= bytes.end && bytes.end <= buffer.byte_length();
    let Some(start) = buffer.data().filter(|_| is_inside) else {
        return;
    };
    // The system takes whole pages of its own, which may be larger than those that are announced.
    let page = rustix::param::page_size();
    let first = bytes.start / page * page;
    // SAFETY: the range is a part of the contents of a WebAssembly memory, which begins with a page
    // and ends with one, and the call changes none of its bytes.
    #[expect(unsafe_code, reason = "the call takes a pointer")]
    unsafe {
        let start = start.as_ptr().cast::<u8>().add(first);
        // Without it, each page is made ready when it is written.
        let _ = madvise(start.cast(), bytes.end - first, Advice::LinuxPopulateWrite);
    }
}

/// Returns the contents of a buffer that starts with this part of `image`. A page is copied when it
/// is first written to.
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

#[cfg(test)]
mod tests {
    use memmap2::MmapMut;

    use super::*;

    /// The largest page of a Linux that V8 runs on.
    const PAGE: usize = 64 << 10;

    /// An image with a page that belongs nowhere, and one of which each byte is its number.
    fn image() -> SharedFile {
        let bytes: Vec<u8> = (0..6).flat_map(|number| std::iter::repeat_n(number, PAGE)).collect();
        SharedFile::new("test", &bytes).unwrap()
    }

    /// Where pages 2 and 3 and page 5 belong.
    fn runs() -> [(usize, Range<usize>); 2] {
        [(PAGE, 2 * PAGE..4 * PAGE), (4 * PAGE, 5 * PAGE..6 * PAGE)]
    }

    #[test]
    fn pages_that_were_put_aside_replace_what_is_in_the_memory() {
        let image = image();
        let aside = PagesAside::new(&image, &runs()).unwrap();
        let mut memory = MmapMut::map_anon(6 * PAGE).unwrap();
        memory.fill(7);
        #[expect(unsafe_code, reason = "the function is unsafe")]
        // SAFETY: the range is a private mapping of this function's own.
        unsafe {
            aside.put_back_at(memory.as_mut_ptr(), memory.len(), &runs()).unwrap();
        }
        let pages = memory.chunks(PAGE).map(|page| (page[0], page.iter().all(|b| *b == page[0])));
        let whole = |byte| (byte, true);
        assert!(pages.eq([0, 2, 3, 0, 5, 0].map(whole)));
        memory.fill(9);
        assert_eq!(image.map().unwrap()[2 * PAGE], 2);
    }

    #[test]
    fn pages_are_not_put_outside_the_memory() {
        let aside = PagesAside::new(&image(), &runs()).unwrap();
        let mut memory = MmapMut::map_anon(6 * PAGE).unwrap();
        memory.fill(7);
        #[expect(unsafe_code, reason = "the function is unsafe")]
        // SAFETY: the range is a part of a private mapping of this function's own.
        let refused = unsafe { aside.put_back_at(memory.as_mut_ptr(), 4 * PAGE, &runs()) };
        assert!(refused.is_err());
        assert!(memory.iter().all(|byte| *byte == 7));
    }
}
