//! Puts the contents of an image into an interpreter: maps them where the system can share them, so
//! that the pages that it never writes to are not copied, or copies them.

#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(not(target_os = "linux"))]
#[path = "unsupported.rs"]
mod system;

use std::io;
use std::ops::Range;

use deno_core::v8;

pub(crate) use self::system::{PagesAside, copy_on_write, map_over, populate, undo_changes};

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
