//! Arranges a template's memory so that copies of it are cheap: what they share lies close
//! together, in huge pages. Contains the unsafe code for that.
//!
//! A fork copies the entries of the page tables, the end of a worker removes them, and each page
//! of code that a worker is the first to use takes a fault. A huge page is one entry for 2 MiB,
//! needs no such fault, and is found faster by the processor. Whatever fails here costs only speed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::raw::c_void;
use std::os::unix::fs::FileExt;
use std::ptr;

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mprotect,
    mremap_fixed, munmap,
};

/// The size of a huge page, in bytes.
const HUGE: usize = 2 << 20;

/// The size of a page, and of its entry in [`MemoryMap::pages`], in bytes.
const PAGE: usize = 4 << 10;
const ENTRY: usize = 8;

/// The minimum of pages in use, of 512, for a huge page. Below it, the memory that it adds is not
/// worth it.
const LEAST_PAGES: usize = 128;

/// The kernel's lists of this process's mappings and pages. They are opened before the lockdown
/// hides them.
#[derive(Debug)]
pub(crate) struct MemoryMap {
    mappings: File,
    pages: File,
}

impl MemoryMap {
    /// Opens the lists, where the sizes of pages and what code needs are known.
    pub(crate) fn open() -> Option<Self> {
        if !cfg!(target_arch = "x86_64") || rustix::param::page_size() != PAGE {
            return None;
        }
        let mappings = File::open("/proc/self/maps").ok()?;
        let pages = File::open("/proc/self/pagemap").ok()?;
        Some(Self { mappings, pages })
    }

    fn mappings(&mut self) -> io::Result<Vec<Mapping>> {
        let mut text = String::new();
        self.mappings.seek(SeekFrom::Start(0))?;
        self.mappings.read_to_string(&mut text)?;
        Ok(text.lines().filter_map(Mapping::parse).collect())
    }

    /// Returns the parts of `range` that huge pages can hold and of which [`LEAST_PAGES`] are in
    /// use.
    fn used(&self, range: &Range<usize>) -> Vec<Range<usize>> {
        const IS_PRESENT: u64 = 1 << 63;
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut entries = [0; HUGE / PAGE * ENTRY];
        for start in (range.start.next_multiple_of(HUGE)..range.end / HUGE * HUGE).step_by(HUGE) {
            let offset = (start / PAGE * ENTRY) as u64;
            if self.pages.read_exact_at(&mut entries, offset).is_err() {
                continue;
            }
            let (entries, _) = entries.as_chunks::<ENTRY>();
            let is_present = |entry: &&[u8; ENTRY]| u64::from_ne_bytes(**entry) & IS_PRESENT != 0;
            if entries.iter().filter(is_present).count() < LEAST_PAGES {
                continue;
            }
            match parts.last_mut().filter(|last| last.end == start) {
                Some(last) => last.end += HUGE,
                None => parts.push(start..start + HUGE),
            }
        }
        parts
    }
}

/// A line of the kernel's list.
struct Mapping {
    range: Range<usize>,
    permissions: [u8; 4],
    /// The number of the file; 0 if there is none.
    inode: u64,
}

impl Mapping {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let permissions = fields.next()?.as_bytes().try_into().ok()?;
        let inode = fields.nth(2)?.parse().ok()?;
        Some(Self { range: address(start)?..address(end)?, permissions, inode })
    }

    /// Whether it is the code of this program.
    fn is_program(&self) -> bool {
        let own = (MemoryMap::open as fn() -> Option<MemoryMap>) as usize;
        &self.permissions == b"r-xp" && self.inode != 0 && self.range.contains(&own)
    }
}

/// The addresses among which V8 chooses at random, occupied so that it cannot: the system then puts
/// its memory side by side. Each piece elsewhere takes three page tables of its own, and each copy
/// has copies of them.
struct Occupied;

impl Occupied {
    /// `GetRandomMmapAddr` in V8's `platform-posix.cc`: 46 bits on x86-64, 38 on Arm, where Linux
    /// may have addresses of 39 bits only.
    const ADDRESSES: Range<usize> =
        0x1_0000..if cfg!(target_arch = "x86_64") { 1 << 46 } else { 1 << 38 };

    fn new() -> io::Result<Self> {
        #[expect(unsafe_code, reason = "memory is mapped at a given address")]
        // SAFETY: the range is only taken if nothing is mapped there, and cannot be accessed.
        unsafe {
            mmap_anonymous(
                Self::ADDRESSES.start as *mut c_void,
                Self::ADDRESSES.len(),
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE,
            )
        }?;
        Ok(Self)
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "memory is unmapped")]
        // SAFETY: `new` has mapped this range, and nobody else has mapped anything in it since:
        // only a request for exactly these addresses could, and there are none.
        let _ = unsafe { munmap(Self::ADDRESSES.start as *mut c_void, Self::ADDRESSES.len()) };
    }
}

/// The memory of a template that is about to boot.
pub(super) struct TemplateMemory {
    map: Option<MemoryMap>,
    occupied: Option<Occupied>,
}

impl TemplateMemory {
    /// Begins, before V8 has any memory.
    pub(super) fn new(map: Option<MemoryMap>) -> Self {
        Self { map, occupied: Occupied::new().ok() }
    }

    /// Has only code count as used that is used from here on.
    pub(super) fn forget_used_code(&mut self) {
        let mappings = self.map.as_mut().and_then(|map| map.mappings().ok()).unwrap_or_default();
        for Mapping { range, .. } in mappings.iter().filter(|mapping| mapping.is_program()) {
            #[expect(unsafe_code, reason = "advice about memory is unsafe as a whole")]
            // SAFETY: nobody writes to code, so that its pages are read from the program's file
            // again, with the same contents.
            let _ =
                unsafe { madvise(range.start as *mut c_void, range.len(), Advice::LinuxDontNeed) };
        }
    }

    /// Puts what is used into huge pages, before the first copy. `image` is the number of the file
    /// that is mapped into CPython's memory.
    ///
    /// # Safety
    ///
    /// No other thread may write to memory into which that file is mapped.
    #[expect(unsafe_code, reason = "what another thread writes meanwhile would be lost")]
    pub(super) unsafe fn arrange(self, image: u64) {
        drop(self.occupied);
        let Some(mut map) = self.map else { return };
        let mappings = map.mappings().unwrap_or_default();
        let is_data = |mapping: &Mapping| &mapping.permissions == b"rw-p";
        let is_one = |one: &Mapping, next: &Mapping| {
            is_data(one) && is_data(next) && one.range.end == next.range.start
        };
        for group in mappings.chunk_by(is_one) {
            for Mapping { range, .. } in group.iter().filter(|mapping| mapping.is_program()) {
                for part in map.used(range) {
                    // SAFETY: nobody writes to code.
                    let _ = unsafe { replace(&part, MprotectFlags::READ | MprotectFlags::EXEC) };
                }
            }
            let mut of_image =
                group.iter().filter(|mapping| is_data(mapping) && mapping.inode == image);
            if let Some(first) = of_image.next() {
                // No further: what is next to it may be a stack.
                let last = of_image.next_back().unwrap_or(first);
                for part in map.used(&(first.range.start..last.range.end)) {
                    // SAFETY: the caller promises that no other thread writes there.
                    let _ = unsafe { replace(&part, MprotectFlags::READ | MprotectFlags::WRITE) };
                }
            } else {
                let is_anonymous = |mapping: &&Mapping| {
                    mapping.inode == 0 && mapping.permissions.starts_with(b"rw")
                };
                for Mapping { range, .. } in group.iter().filter(is_anonymous) {
                    for part in map.used(range) {
                        let _ = collapse(&part);
                    }
                }
            }
        }
    }
}

/// Moves the contents of anonymous memory to huge pages.
fn collapse(range: &Range<usize>) -> io::Result<()> {
    /// `MADV_COLLAPSE`, since Linux 6.1.
    const COLLAPSE: i32 = 25;
    #[expect(unsafe_code, reason = "advice about memory is unsafe as a whole")]
    // SAFETY: the contents stay at their addresses. The kernel holds back who writes meanwhile.
    let result = unsafe { libc::madvise(range.start as *mut c_void, range.len(), COLLAPSE) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Replaces mapped memory by an anonymous copy in huge pages, or leaves it as it is.
///
/// # Safety
///
/// The range has to be mapped privately and be readable, `protection` has to be that of all of it,
/// and no other thread may write to it. Both ends have to be multiples of [`HUGE`].
#[expect(unsafe_code, reason = "the caller gives addresses")]
unsafe fn replace(range: &Range<usize>, protection: MprotectFlags) -> io::Result<()> {
    let length = range.len();
    let (data, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the system chooses the addresses, of which the copy takes those that are aligned. The
    // others, before and after it, are returned at once.
    let copy = unsafe {
        let room = mmap_anonymous(ptr::null_mut(), length + HUGE, data, private)?;
        let before = room.addr().next_multiple_of(HUGE) - room.addr();
        let copy = room.byte_add(before);
        if before > 0 {
            munmap(room, before)?;
        }
        munmap(copy.byte_add(length), HUGE - before)?;
        copy
    };
    let place = range.start as *mut c_void;
    // SAFETY: `copy` is `length` bytes of this function's own. The caller promises that `place` is
    // as many that can be read and that nobody changes. The last step puts the same bytes with the
    // same protection where they were, at once, so that neither data nor code changes for anybody.
    let moved = unsafe {
        ptr::copy_nonoverlapping(place.cast::<u8>(), copy.cast::<u8>(), length);
        let own = copy.addr()..copy.addr() + length;
        collapse(&own).and_then(|()| {
            mprotect(copy, length, protection)?;
            Ok(mremap_fixed(copy, length, length, MremapFlags::MAYMOVE, place)?)
        })
    };
    if moved.is_err() {
        // SAFETY: nothing refers to the copy.
        unsafe { munmap(copy, length) }?;
    }
    moved.map(drop)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use memmap2::{MmapMut, MmapOptions};

    use super::*;

    /// Four huge pages of bytes that differ, in a file.
    fn file() -> File {
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..=250).cycle().take(4 * HUGE).collect();
        std::io::Write::write_all(&mut file, &bytes).unwrap();
        file
    }

    fn map(file: &File) -> MmapMut {
        #[expect(unsafe_code, reason = "mapping a file is")]
        // SAFETY: nobody else has the file.
        unsafe { MmapOptions::new().map_copy(file.as_raw_fd()) }.unwrap()
    }

    /// Arranges the memory of this process.
    fn arrange(image: &File) {
        let mut memory = TemplateMemory::new(MemoryMap::open());
        memory.forget_used_code();
        let image = image.metadata().unwrap().ino();
        #[expect(unsafe_code, reason = "what another thread writes meanwhile would be lost")]
        // SAFETY: only this test maps that file, and it has one thread.
        unsafe {
            memory.arrange(image);
        }
    }

    /// The files of the mappings in `range`; 0 if they have none.
    fn files(range: &Range<usize>) -> Vec<u64> {
        let mappings = MemoryMap::open().unwrap().mappings().unwrap();
        let inside =
            |mapping: &&Mapping| mapping.range.start < range.end && mapping.range.end > range.start;
        mappings.iter().filter(inside).map(|mapping| mapping.inode).collect()
    }

    /// Whether the kernel has huge pages to give.
    fn has_huge_pages() -> bool {
        let mut memory = MmapMut::map_anon(2 * HUGE).unwrap();
        let start = memory.as_mut_ptr().addr().next_multiple_of(HUGE);
        collapse(&(start..start + HUGE)).is_ok()
    }

    #[test]
    fn memory_of_the_image_keeps_its_contents_and_stays_private() {
        if MemoryMap::open().is_none() || !has_huge_pages() {
            return;
        }
        let image = file();
        let mut memory = map(&image);
        let mut expected = memory.to_vec();
        for at in (0..expected.len()).step_by(7 * PAGE) {
            memory[at] ^= 0xff;
            expected[at] ^= 0xff;
        }
        let start = memory.as_ptr().addr();
        arrange(&image);
        assert!(*memory == *expected);
        let whole = start.next_multiple_of(HUGE)..(start + memory.len()) / HUGE * HUGE;
        assert_eq!(files(&whole), [0]);
        memory.fill(1);
        assert_eq!(map(&image)[PAGE + 1], expected[PAGE + 1]);
    }

    fn sorted(seed: u64) -> u64 {
        let mut numbers: Vec<u64> = (0..1000).map(|n| n * seed % 1009).collect();
        numbers.sort_unstable();
        numbers.iter().enumerate().map(|(n, number)| n as u64 * number).sum()
    }

    #[test]
    fn code_goes_on_while_it_is_moved() {
        if MemoryMap::open().is_none() || !has_huge_pages() {
            return;
        }
        let expected = sorted(7);
        let (image, is_done) = (file(), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !is_done.load(Ordering::Relaxed) {
                        assert_eq!(sorted(7), expected);
                    }
                });
            }
            for _ in 0..10 {
                arrange(&image);
            }
            is_done.store(true, Ordering::Relaxed);
        });
        assert_eq!(sorted(7), expected);
    }
}
