//! Saved sessions: anyone may have written the file.

use std::cell::RefCell;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use super::memory::measured;
use crate::fs::{FileLimits, FileSystem, Mount, MountTable, SavedLimits};
use crate::host::saved::SavedState;
use crate::image::saved::{PAGE, Reader, Writer};

const IDENTITY: [u8; 32] = [1; 32];
const QUOTA_BYTES: u64 = 1 << 20;
const QUOTA_FILES: u64 = 100;
/// What an element of a list takes, in bytes, a message about it included.
const ELEMENT: usize = 512;
/// What reading may take at once: a block, its compressed form and a piece, each of which doubles.
const MEMORY: usize = 16 << 20;

/// Reads the bytes, by their first one as the host's part, as the isolate's part, as what is in its
/// blocks, or as what is to be written.
pub fn saved(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 4 {
        0 => state(data),
        1 => blocks(data),
        2 => blocks(&written(data)),
        _ => round_trip(data),
    }
}

/// Reads the host's part, and restores its overlays.
fn state(data: &[u8]) {
    let mut limits = SavedLimits::default();
    limits.add("/data".to_owned(), QUOTA_BYTES, QUOTA_FILES);
    let (state, used) = measured(|| SavedState::read(data, &limits).ok());
    let elements = data.len().min(usize::try_from(limits.elements).unwrap_or(usize::MAX));
    assert!(used.peak <= 2 * data.len() + ELEMENT * (elements + 1), "{used:?}");
    let Some(state) = state else { return };
    // What was read can be saved, and what is saved can be read.
    let saved = state.write(&limits);
    let again = saved.as_ref().ok().and_then(|saved| SavedState::read(saved, &limits).ok());
    assert_eq!(again.map(|again| again.write(&limits)), Some(saved));
    for (_, overlay) in state.overlays {
        let files = files();
        if files.restore("/data", overlay).is_err() {
            continue;
        }
        let again = files.save();
        let bytes = postcard::to_stdvec(&again).unwrap_or_default();
        let elements: u64 = again.iter().map(|(_, overlay)| overlay.elements()).sum();
        assert!(elements <= limits.elements, "{elements} elements");
        assert!(bytes.len() as u64 <= 8 * QUOTA_BYTES, "{} bytes", bytes.len());
        let other = self::files();
        for (guest, overlay) in again {
            let restored = other.restore(&guest, overlay);
            assert!(restored.is_ok(), "{restored:?}");
        }
        assert_eq!(postcard::to_stdvec(&other.save()).unwrap_or_default(), bytes);
    }
}

/// Returns the files of a session with an empty overlay.
fn files() -> FileSystem {
    static MOUNTS: OnceLock<Option<MountTable>> = OnceLock::new();
    let made = || {
        let dir = PathBuf::from(format!("target/fuzz/overlay-{}", std::process::id()));
        std::fs::create_dir_all(&dir).ok()?;
        let mount = Mount::overlay(&dir).ok()?.quota_bytes(QUOTA_BYTES).quota_files(QUOTA_FILES);
        let mut mounts = MountTable::default();
        mounts.add("/data", mount).ok()?;
        Some(mounts)
    };
    let mounts = MOUNTS.get_or_init(made).as_ref();
    assert!(mounts.is_some(), "there is no directory for the overlay");
    FileSystem::new(mounts.unwrap_or(&MountTable::default()), FileLimits::default(), Arc::new(drop))
}

/// Reads an isolate's part as an isolate does.
fn blocks(data: &[u8]) {
    let source = |offset: u64| {
        let rest = data.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest[..rest.len().min(4096)].to_vec())
    };
    let (_, used) = measured(|| {
        let mut reader = Reader::new();
        let Ok((now, description)) = reader.description(IDENTITY, &source) else { return };
        assert!(now.is_finite());
        let mut file = [0; 100];
        if description.len() % 2 == 1 && reader.read(&mut file, &source).is_err() {
            return;
        }
        let Ok(length) = reader.memory_bytes(&source) else { return };
        let mut next = 0;
        let announced = RefCell::new(0..0);
        let announce = |pages| *announced.borrow_mut() = pages;
        let change = |at, part: &[u8]| {
            let (announced, end) = (announced.borrow(), at + part.len());
            assert!(at >= next && end as u64 <= length, "{at} of {length}");
            assert!(announced.start <= at && end <= announced.end, "{at}");
            next = end;
        };
        let _ = reader.memory(&source, announce, change);
    });
    // Text is taken as it comes, and is no longer than the blocks make it.
    assert!(used.peak <= MEMORY + 256 * data.len() * 4, "{used:?}");
}

/// Returns the pages of an image, 0 and 3.
fn image() -> (Vec<u8>, [(usize, Range<usize>); 2]) {
    (vec![0x5a; 2 * PAGE], [(0, 0..PAGE), (3 * PAGE, PAGE..2 * PAGE)])
}

/// Puts bytes into blocks.
fn written(data: &[u8]) -> Vec<u8> {
    let out = RefCell::new(Vec::new());
    let send = |block: &[u8]| {
        out.borrow_mut().extend_from_slice(block);
        Ok(())
    };
    let mut writer = Writer::empty();
    let written = writer.write(data, send).and_then(|()| writer.flush(send));
    assert!(written.is_ok(), "{written:?}");
    out.into_inner()
}

/// Writes a memory, and reads it.
fn round_trip(data: &[u8]) {
    let mut memory = data.to_vec();
    memory.resize(memory.len().next_multiple_of(PAGE), 0);
    let (image, runs) = image();
    let out = RefCell::new(Vec::new());
    let send = |block: &[u8]| {
        out.borrow_mut().extend_from_slice(block);
        Ok(())
    };
    let written = Writer::new(IDENTITY, 0.0, "{}", send)
        .and_then(|writer| writer.finish((&image, &runs), &memory, send));
    assert!(written.is_ok(), "{written:?}");
    let out = out.into_inner();
    let source = |offset: u64| {
        let rest = out.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        Ok(rest[..rest.len().min(777)].to_vec())
    };
    let mut found = vec![0; memory.len()];
    for (at, run) in runs.clone() {
        for (to, from) in found.iter_mut().skip(at).zip(&image[run]) {
            *to = *from;
        }
    }
    let mut reader = Reader::new();
    let read = reader.description(IDENTITY, &source).and_then(|_| {
        let change = |at, part: &[u8]| {
            for (byte, difference) in found.iter_mut().skip(at).zip(part) {
                *byte ^= difference;
            }
        };
        reader.memory(&source, |_| (), change)
    });
    assert!(read.is_ok() && found == memory, "{read:?}");
}
