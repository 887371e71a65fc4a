//! The bytes of a file in memory, in chunks. Holes take no memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::budget::{Budget, Charge, Resource};
use super::super::error::FileError;

const CHUNK: usize = 64 * 1024;
const CHUNK_BYTES: u64 = CHUNK as u64;

/// The bytes of a file. Its size, including holes, is charged to the quota.
pub(super) struct Chunks {
    size: u64,
    /// Chunks by number. A missing chunk, or the missing end of one, reads as zeros. Nothing is
    /// stored beyond the size.
    parts: BTreeMap<u64, Arc<Vec<u8>>>,
    charge: Charge,
}

impl Chunks {
    pub(super) fn new(budget: &Arc<Budget>) -> Result<Self, FileError> {
        let charge = budget.charge(Resource::Bytes, 0)?;
        Ok(Self { size: 0, parts: BTreeMap::new(), charge })
    }

    /// Copies the bytes. Both share them until one of them changes.
    pub(super) fn copy(&self, budget: &Arc<Budget>) -> Self {
        Self { size: self.size, parts: self.parts.clone(), charge: self.charge.copy(budget) }
    }

    /// Returns how many chunks files may have that have so many bytes together.
    pub(super) fn most(bytes: u64, files: u64) -> u64 {
        (bytes / CHUNK_BYTES).saturating_add(files)
    }

    /// Returns the chunks that are stored, by their numbers.
    pub(super) fn parts(&self) -> impl Iterator<Item = (u64, &Arc<Vec<u8>>)> {
        self.parts.iter().map(|(nth, chunk)| (*nth, chunk))
    }

    /// Stores the chunk of this number. Fails if it goes beyond the size.
    pub(super) fn restore(&mut self, nth: u64, chunk: Arc<Vec<u8>>) -> Result<(), FileError> {
        let end = nth.checked_mul(CHUNK_BYTES).and_then(|at| at.checked_add(chunk.len() as u64));
        if chunk.len() > CHUNK || end.is_none_or(|end| end > self.size) {
            return Err(FileError::Invalid);
        }
        if !chunk.is_empty() {
            self.parts.insert(nth, chunk);
        }
        Ok(())
    }

    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// Reads at most as many bytes as fit.
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> usize {
        let rest = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let wanted = into.len().min(rest);
        let mut position = offset;
        let mut left = into.get_mut(..wanted).unwrap_or_default();
        while !left.is_empty() {
            let (number, start) = place(position);
            let (part, after) = left.split_at_mut(left.len().min(CHUNK - start));
            let stored = self.parts.get(&number).and_then(|chunk| chunk.get(start..));
            let stored = stored.unwrap_or_default();
            let (there, zeros) = part.split_at_mut(stored.len().min(part.len()));
            there.copy_from_slice(stored.get(..there.len()).unwrap_or_default());
            zeros.fill(0);
            position += part.len() as u64;
            left = after;
        }
        wanted
    }

    /// Writes all bytes, or none if the quota does not allow it.
    pub(super) fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(bytes.len() as u64).ok_or(FileError::TooLarge)?;
        if end > self.size {
            self.charge.resize(end)?;
            self.size = end;
        }
        let mut position = offset;
        let mut left = bytes;
        while !left.is_empty() {
            let (number, start) = place(position);
            let (part, after) = left.split_at(left.len().min(CHUNK - start));
            let chunk = Arc::make_mut(self.parts.entry(number).or_default());
            if chunk.len() < start + part.len() {
                chunk.resize(start + part.len(), 0);
            }
            if let Some(target) = chunk.get_mut(start..start + part.len()) {
                target.copy_from_slice(part);
            }
            position += part.len() as u64;
            left = after;
        }
        Ok(())
    }

    /// Truncates the file, or extends it with zeros.
    pub(super) fn set_size(&mut self, size: u64) -> Result<(), FileError> {
        self.charge.resize(size)?;
        if size < self.size {
            let (number, start) = place(size);
            self.parts.split_off(&number.saturating_add(1));
            if let Some(chunk) = self.parts.get_mut(&number).map(Arc::make_mut) {
                chunk.truncate(start);
                chunk.shrink_to_fit();
            }
        }
        self.size = size;
        Ok(())
    }
}

/// Returns the number of the chunk at a position, and the position within the chunk.
fn place(position: u64) -> (u64, usize) {
    let start = usize::try_from(position % CHUNK_BYTES).unwrap_or_default();
    (position / CHUNK_BYTES, start)
}
