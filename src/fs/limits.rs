//! Limits on the file requests of one session, in addition to the quotas of its mounts.

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

/// Limits on requests, the same for all mounts of a session.
#[derive(Clone, Debug)]
pub(crate) struct FileLimits {
    /// The maximum number of open files. Default: 256.
    pub(crate) open_files: u64,
    /// The maximum number of names in a path beneath a mount. Default: 64.
    pub(crate) depth: u64,
    /// The maximum length of a name, in bytes. Default: 255.
    pub(crate) name_bytes: u64,
    /// The maximum length of a path beneath a mount, or of a link's target, in bytes. Default:
    /// 4096.
    pub(crate) path_bytes: u64,
    /// The maximum number of entries in a directory that can be listed. Default: 100,000.
    pub(crate) list_entries: u64,
    /// The maximum number of host entries that an overlay may hide or move, or look at for a
    /// change. Default: 100,000.
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
