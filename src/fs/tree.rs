//! A read-only tree that is not a directory of the host.

/// A read-only tree of files that are not on the host, such as the loaded packages.
///
/// Paths are relative, with `/` between names; the root is the empty path.
pub(crate) trait Tree: Send + Sync + std::fmt::Debug {
    /// Describes the entry at a path.
    fn entry(&self, path: &str) -> Option<TreeEntry>;
    /// Lists a directory.
    fn names(&self, path: &str) -> Option<Vec<String>>;
    /// Returns the bytes of a file.
    fn bytes(&self, path: &str) -> std::io::Result<std::sync::Arc<[u8]>>;
}

/// An entry of a [`Tree`]. Times are in milliseconds since 1970.
#[derive(Debug, PartialEq)]
pub(crate) enum TreeEntry {
    /// A file.
    File {
        /// Its size in bytes.
        size: u64,
        /// The time of the last change.
        modified_ms: f64,
    },
    /// A directory.
    Directory {
        /// The time of the last change.
        modified_ms: f64,
    },
}
