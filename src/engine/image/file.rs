//! How an image is laid out in its file: numbers, the parts that are used as they are, then every run of
//! pages of the memory that are not all zero.

use std::ops::Range;

pub(super) const PAGE: usize = 4096;

/// How many parts there are in front of the memory's pages.
pub(super) const PARTS: usize = 6;

/// Where things are in an image.
pub(super) struct Layout {
    pub(super) memory_bytes: usize,
    pub(super) parts: [Range<usize>; PARTS],
    /// Of each run of stored pages its place in the memory, and its place in the file.
    pub(super) runs: Vec<(usize, Range<usize>)>,
}

/// Everything in front of the memory's pages.
pub(super) fn head(memory_bytes: usize, parts: [&[u8]; PARTS]) -> Vec<u8> {
    let mut head = Vec::new();
    push_number(&mut head, memory_bytes);
    for part in parts {
        push_number(&mut head, part.len());
    }
    for part in parts {
        head.extend_from_slice(part);
    }
    head
}

/// Appends every run of pages of `memory` that are not all zero.
pub(super) fn push_runs(out: &mut Vec<u8>, memory: &[u8]) {
    let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let pages: Vec<&[u8]> = memory.chunks(PAGE).collect();
    let mut at = 0;
    for run in pages.chunk_by(|a, b| is_zero(a) == is_zero(b)) {
        let length = run.iter().map(|page| page.len()).sum();
        if !run.first().is_none_or(|page| is_zero(page)) {
            push_number(out, at);
            push_number(out, length);
            for page in run {
                out.extend_from_slice(page);
            }
        }
        at += length;
    }
}

/// Finds the parts of what [`head`] and [`push_runs`] have made.
pub(super) fn layout(file: &[u8]) -> Option<Layout> {
    let mut at = 0;
    let memory_bytes = number(file, &mut at)?;
    let mut lengths = [0; PARTS];
    for length in &mut lengths {
        *length = number(file, &mut at)?;
    }
    let mut parts = lengths.map(|_| 0..0);
    for (part, length) in parts.iter_mut().zip(lengths) {
        *part = at..at.checked_add(length)?;
        file.get(part.clone())?;
        at = part.end;
    }
    let mut runs = Vec::new();
    while at < file.len() {
        let place = number(file, &mut at)?;
        let length = number(file, &mut at)?;
        if place.checked_add(length)? > memory_bytes {
            return None;
        }
        let run = at..at.checked_add(length)?;
        at = run.end;
        runs.push((place, run));
    }
    let whole = at == file.len();
    whole.then_some(Layout { memory_bytes, parts, runs })
}

pub(super) fn push_number(out: &mut Vec<u8>, number: usize) {
    out.extend_from_slice(&(number as u64).to_le_bytes());
}

fn number(file: &[u8], at: &mut usize) -> Option<usize> {
    let bytes = file.get(*at..*at + 8)?;
    *at += 8;
    usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok()
}
