//! The layout of an image file: a header, numbers, the parts that are used as they are, then every
//! run of memory pages that are not all zero. The parts and the runs begin at page boundaries, so
//! that they can be mapped.

use std::ops::Range;

/// The boundaries at which parts and runs begin: those of the pages of every kernel for this
/// processor, so that an image goes on serving when a machine boots another one, or a container
/// with it moves. On 64-bit Arm, pages of 4, 16 and 64 KiB are in use.
const PAGE: usize = if cfg!(target_arch = "x86_64") { 4 << 10 } else { 64 << 10 };

/// The number of parts in front of the memory's pages.
pub(crate) const PARTS: usize = 12;

/// The parts in front of the memory's pages, in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Part {
    /// The JavaScript glue's state besides the memory: JSON.
    Config,
    /// CPython's WebAssembly.
    Wasm,
    /// Pyodide's JavaScript.
    Module,
    /// The standard library's archive.
    Stdlib,
    /// The symbols that packages link to.
    Exports,
    /// CPython's native code.
    NativeCode,
    /// V8's compiled form of Pyodide's JavaScript.
    ScriptCache,
    /// V8's compiled form of our JavaScript.
    ModuleCache,
    /// The list of dynamic libraries: JSON.
    Libraries,
    /// The contents of the libraries, one after the other.
    LibraryContents,
    /// The initial contents of an interpreter's memory.
    Data,
    /// A digest of the memory and of the configuration.
    Identity,
}

/// Gaps of zero pages up to this size, in bytes, are stored: each run is mapped separately, which
/// has a cost too.
const SHORT_GAP: usize = if PAGE > 32 << 10 { PAGE } else { 32 << 10 };

/// The offsets of an image's contents.
pub(crate) struct Layout {
    pub(crate) memory_bytes: usize,
    pub(crate) parts: [Range<usize>; PARTS],
    /// For each run of stored pages, its place in the memory and its place in the file.
    pub(crate) runs: Vec<(usize, Range<usize>)>,
}

impl Layout {
    /// Returns the place of a part in the file.
    pub(crate) fn part(&self, part: Part) -> Range<usize> {
        self.parts[part as usize].clone()
    }
}

/// Returns the runs of pages of `memory` that are not all zero, with their places in it. Short gaps
/// of pages of zeros are parts of the runs.
pub(crate) fn runs(memory: &[u8]) -> Vec<(usize, Vec<u8>)> {
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (nth, page) in memory.chunks(PAGE).enumerate() {
        if page.iter().all(|byte| *byte == 0) {
            continue;
        }
        let (at, end) = (nth * PAGE, nth * PAGE + page.len());
        match runs.last_mut() {
            Some(last) if at - last.end <= SHORT_GAP => last.end = end,
            _ => runs.push(at..end),
        }
    }
    runs.into_iter().map(|run| (run.start, memory[run].to_vec())).collect()
}

/// Lays out a file whose first `header` bytes are left free.
pub(crate) fn assemble(
    header: usize,
    memory_bytes: usize,
    parts: [&[u8]; PARTS],
    runs: &[(usize, Vec<u8>)],
) -> Vec<u8> {
    let mut file = vec![0; header];
    push_number(&mut file, memory_bytes);
    for part in parts {
        push_number(&mut file, part.len());
    }
    push_number(&mut file, runs.len());
    for (place, run) in runs {
        push_number(&mut file, *place);
        push_number(&mut file, run.len());
    }
    for piece in parts.into_iter().chain(runs.iter().map(|(_, run)| &run[..])) {
        file.resize(file.len().next_multiple_of(PAGE), 0);
        file.extend_from_slice(piece);
    }
    file
}

/// Reads the layout of a file that [`assemble`] has made; `None` if it is no such file.
pub(crate) fn layout(header: usize, file: &[u8]) -> Option<Layout> {
    let mut at = header;
    let memory_bytes = number(file, &mut at)?;
    let mut lengths = [0; PARTS];
    for length in &mut lengths {
        *length = number(file, &mut at)?;
    }
    let mut places = Vec::new();
    for _ in 0..number(file, &mut at)? {
        let (place, length) = (number(file, &mut at)?, number(file, &mut at)?);
        let fits = place.checked_add(length)? <= memory_bytes;
        if !fits || !place.is_multiple_of(PAGE) || !length.is_multiple_of(PAGE) {
            return None;
        }
        places.push((place, length));
    }
    let mut piece = |length: usize| {
        let start = at.checked_next_multiple_of(PAGE)?;
        at = start.checked_add(length)?;
        file.get(start..at)?;
        Some(start..at)
    };
    let mut parts = lengths.map(|_| 0..0);
    for (part, length) in parts.iter_mut().zip(lengths) {
        *part = piece(length)?;
    }
    let runs = places.into_iter().map(|(place, length)| Some((place, piece(length)?)));
    let runs = runs.collect::<Option<_>>()?;
    (at == file.len()).then_some(Layout { memory_bytes, parts, runs })
}

fn push_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

fn number(file: &[u8], at: &mut usize) -> Option<usize> {
    let bytes = file.get(*at..at.checked_add(8)?)?;
    *at += 8;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_assembled_is_found_again() {
        let mut memory = vec![0; 20 * PAGE];
        memory[PAGE + 1] = 1;
        memory[3 * PAGE] = 2;
        memory[19 * PAGE] = 3;
        let runs = runs(&memory);
        let places: Vec<_> = runs.iter().map(|(place, run)| (*place, run.len())).collect();
        assert_eq!(places, [(PAGE, 3 * PAGE), (19 * PAGE, PAGE)]);
        let parts: [&[u8]; PARTS] =
            [b"a", b"", b"bc", b"", b"", b"", b"d", b"", b"e", b"", b"f", b"g"];
        let file = assemble(10, memory.len(), parts, &runs);
        let found = layout(10, &file).unwrap();
        assert_eq!(found.memory_bytes, memory.len());
        for (part, place) in parts.into_iter().zip(found.parts) {
            assert_eq!(&file[place], part);
        }
        let mut restored = vec![0; memory.len()];
        for (place, run) in found.runs {
            assert!(run.start.is_multiple_of(PAGE));
            restored[place..place + run.len()].copy_from_slice(&file[run]);
        }
        assert!(restored == memory);
    }

    #[test]
    fn what_is_cut_off_or_goes_on_is_no_layout() {
        let parts: [&[u8]; PARTS] = [b"part"; PARTS];
        let mut file = assemble(0, 4 * PAGE, parts, &[(PAGE, vec![1; PAGE])]);
        for length in (0..file.len()).step_by(7) {
            assert!(layout(0, &file[..length]).is_none(), "{length}");
        }
        file.push(0);
        assert!(layout(0, &file).is_none());
        for runs in [(4 * PAGE, vec![1; PAGE]), (1, vec![1; PAGE]), (0, vec![1; 5])] {
            let file = assemble(0, 4 * PAGE, parts, &[runs]);
            assert!(layout(0, &file).is_none());
        }
    }
}
