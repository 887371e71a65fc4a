//! What one session may do with files, beside the quotas of its mounts.

/// The default of [`FileLimits::open_files`].
const OPEN_FILES: u64 = 256;
/// The default of [`FileLimits::depth`].
const DEPTH: u64 = 64;
/// The default of [`FileLimits::name_bytes`], as on Linux.
const NAME_BYTES: u64 = 255;
/// The default of [`FileLimits::path_bytes`], as on Linux.
const PATH_BYTES: u64 = 4096;
/// The default of [`FileLimits::list_entries`].
const LIST_ENTRIES: u64 = 100_000;
/// The default of [`FileLimits::overlay_marks`].
const OVERLAY_MARKS: u64 = 100_000;

/// Bounds on requests, the same for all mounts of a session.
#[derive(Clone, Debug)]
pub(crate) struct FileLimits {
    /// How many files may be open at once. Default 256.
    pub(crate) open_files: u64,
    /// How many names a path beneath a mount may have. Default 64.
    pub(crate) depth: u64,
    /// How many bytes a name may have. Default 255.
    pub(crate) name_bytes: u64,
    /// How many bytes a path beneath a mount, or a link's target, may have. Default 4096.
    pub(crate) path_bytes: u64,
    /// How many entries a directory may have to be listed. Default 100,000.
    pub(crate) list_entries: u64,
    /// How many entries of the host an overlay may hide, move or look into for a change. Default
    /// 100,000.
    pub(crate) overlay_marks: u64,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self {
            open_files: OPEN_FILES,
            depth: DEPTH,
            name_bytes: NAME_BYTES,
            path_bytes: PATH_BYTES,
            list_entries: LIST_ENTRIES,
            overlay_marks: OVERLAY_MARKS,
        }
    }
}
