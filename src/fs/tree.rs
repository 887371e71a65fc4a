//! A read-only tree that is not a directory of the host.

/// A read-only tree of files that are not the host's, such as the loaded packages.
///
/// Paths are relative and have `/` between their names; the root is the empty one.
pub(crate) trait Tree: Send + Sync + std::fmt::Debug {
    /// Describes what is at a path.
    fn entry(&self, path: &str) -> Option<TreeEntry>;
    /// Names what is in a directory.
    fn names(&self, path: &str) -> Option<Vec<String>>;
    /// Returns the bytes of a file.
    fn bytes(&self, path: &str) -> std::io::Result<std::sync::Arc<[u8]>>;
}

/// What is at a path of a [`Tree`]. Times are in milliseconds since 1970.
#[derive(Debug, PartialEq)]
pub(crate) enum TreeEntry {
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
        /// When it was last changed.
        modified_ms: f64,
    },
    /// A directory.
    Directory {
        /// When it was last changed.
        modified_ms: f64,
    },
}
