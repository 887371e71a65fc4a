//! A saved session as isolates write and read it: a description of what is in JavaScript, the
//! contents of files, and how the memory differs from that of the image. It passes through the
//! host, which does not look into it. It is the guest's data, so it is read as hostile.
//!
//! It is a sequence of blocks of at most [`BLOCK_BYTES`] bytes, each compressed on its own.

use std::ops::Range;

use lz4_flex::block;

/// The maximum size of a block before it is compressed, in bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The size of a block's header: its length before and after compression, each four bytes.
const HEADER_BYTES: usize = 8;

/// The unit in which the memory is compared.
pub(crate) const PAGE: usize = 4096;

/// A page in which nothing was written.
static ZEROS: [u8; PAGE] = [0; PAGE];

/// The unit in which a page's changes are written: a page has as many as a number has bits.
const PART: usize = PAGE / u64::BITS as usize;

/// The maximum number of pages that are announced at once: few enough for the processor's cache.
const ANNOUNCED_PAGES: usize = 128;

/// The maximum length of the description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 256 << 20;

/// The maximum size of an interpreter's memory, in bytes.
const MAX_MEMORY_BYTES: u64 = 1 << 32;

/// Ends the list of runs.
const NO_RUN: u32 = u32::MAX;

/// Writes a saved session. `send` takes one block after another, and fails with the host's reason.
pub(crate) struct Writer {
    block: Vec<u8>,
}

impl Writer {
    /// Begins with the description, for an interpreter that started from the image of this
    /// identity.
    ///
    /// `now` is the time of the monotonic clock, in milliseconds.
    pub(crate) fn new(
        identity: [u8; 32],
        now: f64,
        description: &str,
        send: impl Fn(&[u8]) -> Result<(), String>,
    ) -> Result<Self, String> {
        let mut writer = Self::empty();
        writer.write(&identity, &send)?;
        writer.write(&now.to_le_bytes(), &send)?;
        writer.write(&(description.len() as u64).to_le_bytes(), &send)?;
        writer.write(description.as_bytes(), &send)?;
        Ok(writer)
    }

    /// A writer that has written nothing.
    pub(crate) fn empty() -> Self {
        Self { block: Vec::with_capacity(BLOCK_BYTES) }
    }

    pub(crate) fn write(
        &mut self,
        mut bytes: &[u8],
        send: impl Fn(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.block.len();
            let (now, rest) = bytes.split_at(room.min(bytes.len()));
            self.block.extend_from_slice(now);
            bytes = rest;
            if self.block.len() == BLOCK_BYTES {
                self.flush(&send)?;
            }
        }
        Ok(())
    }

    /// Ends with what of the memory differs from the image's: of each page in a run which parts of
    /// it do, as the bits of a number, and the differences of their bytes, which are mostly zero.
    pub(crate) fn finish(
        mut self,
        image: Pages<'_>,
        memory: &[u8],
        send: impl Fn(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        self.write(&(memory.len() as u64).to_le_bytes(), &send)?;
        let mut base = Base::new(image);
        let mut page = Vec::new();
        let mut run: Option<Range<usize>> = None;
        let mut end_run = |run: Range<usize>, writer: &mut Self| -> Result<(), String> {
            let number = |number: usize| u32::try_from(number).unwrap_or(NO_RUN).to_le_bytes();
            writer.write(&number(run.start), &send)?;
            writer.write(&number(run.len()), &send)?;
            for nth in run {
                put_changes(base.page(nth), &memory[nth * PAGE..(nth + 1) * PAGE], &mut page);
                writer.write(&page, &send)?;
            }
            Ok(())
        };
        let mut compared = Base::new(image);
        for (nth, now) in memory.chunks_exact(PAGE).enumerate() {
            let is_same = match compared.page(nth) {
                Some(before) => now == before,
                None => is_zero(now),
            };
            match (&mut run, is_same) {
                (Some(run), false) => run.end = nth + 1,
                (None, false) => run = Some(nth..nth + 1),
                (Some(_), true) => {
                    if let Some(run) = run.take() {
                        end_run(run, &mut self)?;
                    }
                }
                (None, true) => {}
            }
        }
        if let Some(run) = run {
            end_run(run, &mut self)?;
        }
        self.write(&NO_RUN.to_le_bytes(), &send)?;
        self.flush(&send)
    }

    /// Sends what is left as a block.
    pub(crate) fn flush(
        &mut self,
        send: impl Fn(&[u8]) -> Result<(), String>,
    ) -> Result<(), String> {
        if self.block.is_empty() {
            return Ok(());
        }
        let mut out = vec![0; HEADER_BYTES + block::get_maximum_output_size(self.block.len())];
        let (header, body) = out.split_at_mut(HEADER_BYTES);
        let length = block::compress_into(&self.block, body).map_err(|error| error.to_string())?;
        let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
        header[..4].copy_from_slice(&number(self.block.len()));
        header[4..].copy_from_slice(&number(length));
        out.truncate(HEADER_BYTES + length);
        self.block.clear();
        send(&out)
    }
}

/// Puts what of a page has changed into `out`, instead of what is there.
fn put_changes(before: Option<&[u8]>, now: &[u8], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[0; size_of::<u64>()]);
    let mut changed: u64 = 0;
    let mut before = before.map(|page| page.as_chunks::<PART>().0.iter());
    for (nth, part) in now.as_chunks::<PART>().0.iter().enumerate() {
        let before = before.as_mut().and_then(Iterator::next).unwrap_or(&[0; PART]);
        // Most parts are as they were, and comparing is quick.
        if part == before {
            continue;
        }
        changed |= 1 << nth;
        let words = part.as_chunks().0.iter().zip(before.as_chunks().0);
        for (word, before) in words {
            let difference = u128::from_ne_bytes(*word) ^ u128::from_ne_bytes(*before);
            out.extend_from_slice(&difference.to_ne_bytes());
        }
    }
    if let Some(place) = out.first_chunk_mut() {
        *place = changed.to_le_bytes();
    }
}

/// The pages of an image's memory, which are asked for in ascending order.
struct Base<'a> {
    file: &'a [u8],
    /// For each run its first page, and where it is in the file.
    runs: std::slice::Iter<'a, (usize, Range<usize>)>,
    run: Option<&'a (usize, Range<usize>)>,
}

/// The pages of an image: the bytes of its file, and for each run of pages its place in the memory
/// and its place in the file.
pub(crate) type Pages<'a> = (&'a [u8], &'a [(usize, Range<usize>)]);

impl<'a> Base<'a> {
    fn new((file, runs): Pages<'a>) -> Self {
        let mut runs = runs.iter();
        let run = runs.next();
        Self { file, runs, run }
    }

    /// Returns a page; `None` if it is all zero.
    fn page(&mut self, nth: usize) -> Option<&'a [u8]> {
        let at = nth * PAGE;
        while let Some((start, place)) = self.run {
            if at < start + place.len() {
                let inside = at.checked_sub(*start)?;
                return self.file.get(place.start + inside..place.start + inside + PAGE);
            }
            self.run = self.runs.next();
        }
        None
    }
}

fn is_zero(page: &[u8]) -> bool {
    page == ZEROS
}

/// Reads a saved session that the host hands out in pieces.
pub(crate) struct Reader {
    /// How much the host has handed out, in bytes.
    position: u64,
    piece: Vec<u8>,
    /// How much of the piece is read.
    taken: usize,
    block: Vec<u8>,
    /// How much of the block is read.
    read: usize,
    /// The length of the memory, once it was read.
    memory_bytes: Option<u64>,
}

/// Hands out the bytes from an offset; none at the end.
pub(crate) type Source<'a> = &'a dyn Fn(u64) -> Result<Vec<u8>, String>;

impl Reader {
    pub(crate) fn new() -> Self {
        let (piece, block) = (Vec::new(), Vec::new());
        Self { position: 0, piece, taken: 0, block, read: 0, memory_bytes: None }
    }

    /// Reads the time of the monotonic clock, in milliseconds, and the description, if the session
    /// started from the same image.
    pub(crate) fn description(
        &mut self,
        own: [u8; 32],
        source: Source<'_>,
    ) -> Result<(f64, String), String> {
        let mut identity = [0; 32];
        self.read(&mut identity, source)?;
        if identity != own {
            let shown = |digest: [u8; 32]| blake3::Hash::from(digest).to_hex()[..16].to_owned();
            return Err(format!(
                "it was saved over the memory image {}, and this one is {}: its packages differ, \
                 or the version",
                shown(identity),
                shown(own)
            ));
        }
        let now = f64::from_bits(self.number(source)?);
        let now = if now.is_finite() { now } else { 0.0 };
        let length = usize::try_from(self.number(source)?).unwrap_or(usize::MAX);
        if length > MAX_DESCRIPTION_BYTES {
            let limit = MAX_DESCRIPTION_BYTES;
            return Err(format!("its description: limit {limit} bytes, needed {length}"));
        }
        // Grows as bytes come, because the length is only claimed.
        let mut text = Vec::new();
        while text.len() < length {
            let start = text.len();
            text.resize(length.min(start + BLOCK_BYTES), 0);
            self.read(&mut text[start..], source)?;
        }
        let text = String::from_utf8(text);
        Ok((now, text.map_err(|_| "its description is no text".to_owned())?))
    }

    /// Fills the buffer.
    pub(crate) fn read(&mut self, mut into: &mut [u8], source: Source<'_>) -> Result<(), String> {
        while !into.is_empty() {
            if self.read == self.block.len() {
                self.next_block(source)?;
            }
            let there = &self.block[self.read..];
            let count = there.len().min(into.len());
            let (now, rest) = into.split_at_mut(count);
            now.copy_from_slice(&there[..count]);
            self.read += count;
            into = rest;
        }
        Ok(())
    }

    /// Returns the length of the memory, in bytes.
    pub(crate) fn memory_bytes(&mut self, source: Source<'_>) -> Result<u64, String> {
        if let Some(length) = self.memory_bytes {
            return Ok(length);
        }
        let length = self.number(source)?;
        if length > MAX_MEMORY_BYTES || !length.is_multiple_of(PAGE as u64) {
            return Err(format!("its memory: limit {MAX_MEMORY_BYTES} bytes, needed {length}"));
        }
        self.memory_bytes = Some(length);
        Ok(length)
    }

    /// Reads the memory. Calls `announce` with the places of pages that differ from the image's,
    /// and then `change` for parts of them, with the place of each and how its bytes differ.
    pub(crate) fn memory(
        &mut self,
        source: Source<'_>,
        mut announce: impl FnMut(Range<usize>),
        mut change: impl FnMut(usize, &[u8]),
    ) -> Result<(), String> {
        let length = self.memory_bytes(source)?;
        let pages = usize::try_from(length).unwrap_or(usize::MAX) / PAGE;
        let mut next = 0;
        loop {
            let start = self.short(source)?;
            if start == NO_RUN {
                return Ok(());
            }
            let (start, count) = (start as usize, self.short(source)? as usize);
            let end = start.saturating_add(count);
            if start < next || end > pages {
                return Err(format!(
                    "its memory has pages {start} to {end} after page {next} of {pages}"
                ));
            }
            for nth in start..end {
                if (nth - start).is_multiple_of(ANNOUNCED_PAGES) {
                    announce(nth * PAGE..end.min(nth + ANNOUNCED_PAGES) * PAGE);
                }
                let mut changed = self.number(source)?;
                while changed != 0 {
                    let mut part = [0; PART];
                    self.read(&mut part, source)?;
                    change(nth * PAGE + changed.trailing_zeros() as usize * PART, &part);
                    changed &= changed - 1;
                }
            }
            next = end;
        }
    }

    fn next_block(&mut self, source: Source<'_>) -> Result<(), String> {
        let mut header = [0; HEADER_BYTES];
        self.take(&mut header, source)?;
        let [length, compressed] = [0, 4].map(|at| {
            let number = header[at..].first_chunk().copied().unwrap_or_default();
            u32::from_le_bytes(number) as usize
        });
        if length == 0 || length > BLOCK_BYTES {
            return Err(format!("a block: limit {BLOCK_BYTES} bytes, needed {length}"));
        }
        let most = block::get_maximum_output_size(BLOCK_BYTES);
        if compressed > most {
            return Err(format!("a compressed block: limit {most} bytes, needed {compressed}"));
        }
        self.block.resize(length, 0);
        self.read = 0;
        let found = if let Some(bytes) = self.piece.get(self.taken..self.taken + compressed) {
            self.taken += compressed;
            block::decompress_into(bytes, &mut self.block)
        } else {
            let mut bytes = vec![0; compressed];
            self.take(&mut bytes, source)?;
            block::decompress_into(&bytes, &mut self.block)
        };
        match found {
            Ok(found) if found == length => Ok(()),
            Ok(found) => Err(format!("a block has {found} bytes and is said to have {length}")),
            Err(error) => Err(format!("a block cannot be decompressed: {error}")),
        }
    }

    /// Takes bytes as the host hands them out.
    fn take(&mut self, mut into: &mut [u8], source: Source<'_>) -> Result<(), String> {
        while !into.is_empty() {
            if self.taken == self.piece.len() {
                self.piece = source(self.position)?;
                self.taken = 0;
                self.position += self.piece.len() as u64;
                if self.piece.is_empty() {
                    return Err(format!("it ends after {} bytes", self.position));
                }
            }
            let there = &self.piece[self.taken..];
            let count = there.len().min(into.len());
            let (now, rest) = into.split_at_mut(count);
            now.copy_from_slice(&there[..count]);
            self.taken += count;
            into = rest;
        }
        Ok(())
    }

    fn number(&mut self, source: Source<'_>) -> Result<u64, String> {
        let mut bytes = [0; 8];
        self.read(&mut bytes, source)?;
        Ok(u64::from_le_bytes(bytes))
    }

    fn short(&mut self, source: Source<'_>) -> Result<u32, String> {
        let mut bytes = [0; 4];
        self.read(&mut bytes, source)?;
        Ok(u32::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const IDENTITY: [u8; 32] = [7; 32];

    /// Returns an image with pages 1 and 2, and its file.
    fn image() -> (Vec<u8>, Vec<(usize, Range<usize>)>) {
        let file = (0..3 * PAGE).map(|at| u8::try_from(at % 251).unwrap()).collect();
        (file, vec![(PAGE, PAGE..3 * PAGE)])
    }

    fn unchanged(pages: usize) -> Vec<u8> {
        let (file, runs) = image();
        let mut memory = vec![0; pages * PAGE];
        for (at, run) in runs {
            memory[at..at + run.len()].copy_from_slice(&file[run]);
        }
        memory
    }

    fn written(memory: &[u8], files: &[&[u8]]) -> Vec<u8> {
        let (file, runs) = image();
        let out = RefCell::new(Vec::new());
        let send = |block: &[u8]| {
            out.borrow_mut().extend_from_slice(block);
            Ok(())
        };
        let mut writer = Writer::new(IDENTITY, 2.5, "{}", send).unwrap();
        for file in files {
            writer.write(file, send).unwrap();
        }
        writer.finish((&file, &runs), memory, send).unwrap();
        out.into_inner()
    }

    /// Reads it as an isolate does, whose memory is as large.
    fn read(saved: &[u8], files: &mut [Vec<u8>], pages: usize) -> Result<Vec<u8>, String> {
        // In small pieces, which blocks go across.
        let source = |offset: u64| {
            let rest = saved.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
            Ok(rest[..rest.len().min(1000)].to_vec())
        };
        let mut reader = Reader::new();
        let description = reader.description(IDENTITY, &source)?;
        assert_eq!(description, (2.5, "{}".to_owned()));
        for file in files {
            reader.read(file, &source)?;
        }
        let mut memory = unchanged(pages);
        let announced = RefCell::new(0..0);
        let announce = |pages| *announced.borrow_mut() = pages;
        let change = |at, part: &[u8]| {
            let announced = announced.borrow();
            assert!(announced.start <= at && at + part.len() <= announced.end);
            for (byte, difference) in memory[at..].iter_mut().zip(part) {
                *byte ^= difference;
            }
        };
        reader.memory(&source, announce, change)?;
        Ok(memory)
    }

    #[test]
    fn a_session_is_read_as_it_was_written() {
        let mut memory = unchanged(600);
        for at in [0, PAGE + 5, 3 * PAGE, 4 * PAGE, 599 * PAGE + 1] {
            memory[at] ^= 0x55;
        }
        memory[5 * PAGE - 1] = 1;
        memory[2 * PAGE..3 * PAGE].fill(0);
        let large = vec![3; 3 * BLOCK_BYTES + 17];
        let saved = written(&memory, &[b"note", &large]);
        assert!(saved.len() < 100_000, "{}", saved.len());
        let mut files = [vec![0; 4], vec![0; large.len()]];
        assert!(read(&saved, &mut files, 600).unwrap() == memory);
        assert!(files == [b"note".to_vec(), large]);
    }

    #[test]
    fn another_image_is_refused_with_both() {
        let saved = written(&unchanged(4), &[]);
        let source = |offset: u64| Ok(saved[usize::try_from(offset).unwrap()..].to_vec());
        let error = Reader::new().description([8; 32], &source).unwrap_err();
        assert!(
            error.contains("0707070707070707") && error.contains("0808080808080808"),
            "{error}"
        );
    }

    #[test]
    fn what_is_cut_off_is_an_error_wherever_it_ends() {
        let saved = written(&unchanged(4), &[]);
        for length in 0..saved.len() {
            assert!(read(&saved[..length], &mut [], 4).is_err(), "{length}");
        }
    }

    #[test]
    fn pages_outside_of_the_memory_or_out_of_order_are_refused() {
        for runs in [[(5, 1), (NO_RUN, 0)], [(0, 9), (NO_RUN, 0)], [(2, 1), (1, 1)]] {
            let out = RefCell::new(Vec::new());
            let send = |block: &[u8]| {
                out.borrow_mut().extend_from_slice(block);
                Ok(())
            };
            let mut writer = Writer::new(IDENTITY, 2.5, "{}", send).unwrap();
            writer.write(&(4 * PAGE as u64).to_le_bytes(), send).unwrap();
            for (start, count) in runs {
                writer.write(&u32::to_le_bytes(start), send).unwrap();
                writer.write(&u32::to_le_bytes(count), send).unwrap();
                writer.write(&1u64.to_le_bytes(), send).unwrap();
                writer.write(&[1; PART], send).unwrap();
            }
            writer.flush(send).unwrap();
            let error = read(&out.into_inner(), &mut [], 4).unwrap_err();
            assert!(error.contains("its memory has pages"), "{error}");
        }
    }
}
