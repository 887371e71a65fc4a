//! Replaces the mapping of images on systems other than Linux: there they are copied.

use std::io;
use std::ops::Range;

use deno_core::v8;

use crate::support::shared_file::SharedFile;

/// Fails: only Linux has the means to share images.
pub(crate) fn map_over(
    _memory: v8::Local<'_, v8::WasmMemoryObject>,
    _length: usize,
    _image: &SharedFile,
    _runs: &[(usize, Range<usize>)],
) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, as [`map_over`] does.
pub(crate) fn copy_on_write(
    _image: &SharedFile,
    _part: Range<usize>,
) -> io::Result<v8::UniqueRef<v8::BackingStore>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Fails, as [`map_over`] does.
pub(crate) fn undo_changes(_memory: v8::Local<'_, v8::WasmMemoryObject>) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are none: only Linux has the means to share images.
pub(crate) struct PagesAside;

impl PagesAside {
    /// Fails, as [`map_over`] does.
    pub(crate) fn new(_image: &SharedFile, _runs: &[(usize, Range<usize>)]) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Fails, as [`map_over`] does.
    pub(crate) fn put_back(
        self,
        _memory: v8::Local<'_, v8::WasmMemoryObject>,
        _runs: &[(usize, Range<usize>)],
    ) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Does nothing: only Linux can do it.
pub(crate) fn populate(_memory: v8::Local<'_, v8::WasmMemoryObject>, _bytes: Range<usize>) {}
