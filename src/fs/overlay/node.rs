//! The tree of changes in an overlay.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::super::budget::Charge;
use super::super::error::FileError;
use super::super::host_tree::HostTree;
use super::super::path::{RelativePath, join};
use super::super::request::{FileKind, FileStat};
use super::attributes::{Attributes, own};
use super::file::OverlayFile;

/// A changed entry.
pub(super) enum Node {
    Directory(Directory),
    /// A file with its bytes in memory.
    File(Arc<OverlayFile>),
    Link(Link),
    /// A file or link of the host that was moved here, or whose attributes were changed.
    Lower(Lower),
    /// An entry of the host that is hidden. Holds its charge on the budget.
    Removed(Charge),
}

/// A directory. It holds its charge on the budget, except the root, which has none.
#[derive(Default)]
pub(super) struct Directory {
    /// The path of the host directory that is visible through this one.
    pub(super) lower: Option<String>,
    pub(super) children: BTreeMap<String, Node>,
    pub(super) attributes: Attributes,
    /// The inode number, if no host directory is visible through this one.
    pub(super) inode: u64,
    pub(super) charge: Option<Charge>,
}

/// A file or link of the host at another path or with other attributes.
pub(super) struct Lower {
    pub(super) path: String,
    pub(super) attributes: Attributes,
    pub(super) charge: Charge,
}

/// A link that the guest created.
pub(super) struct Link {
    pub(super) target: String,
    pub(super) inode: u64,
    pub(super) attributes: Attributes,
    pub(super) charges: [Charge; 2],
}

impl Node {
    /// Returns the directory, if it is one.
    pub(super) fn as_directory(&self) -> Option<&Directory> {
        match self {
            Self::Directory(directory) => Some(directory),
            _ => None,
        }
    }
}

impl Directory {
    /// Makes the node of a host directory that contains changes.
    pub(super) fn of_host(lower: String, charge: Charge) -> Self {
        Self { lower: Some(lower), charge: Some(charge), ..Self::default() }
    }

    /// Makes a new directory.
    pub(super) fn new(inode: u64, charge: Charge) -> Self {
        let attributes = Attributes::made_now();
        Self { attributes, inode, charge: Some(charge), ..Self::default() }
    }

    /// Returns the host path that is visible under a name, whether it exists or not.
    pub(super) fn lower_at(&self, name: &str) -> Option<String> {
        self.lower.as_deref().map(|lower| join(lower, name))
    }

    /// Describes the directory. If the host has removed the underlying directory, it is shown as
    /// empty.
    pub(super) fn stat(&self, lower: &HostTree) -> Result<FileStat, FileError> {
        let stat = match &self.lower {
            None => own(FileKind::Directory, 0, self.inode),
            Some(path) => match lower.stat(RelativePath::joined(path)) {
                Ok(stat) if stat.kind == FileKind::Directory => stat,
                Ok(_) | Err(FileError::NotFound | FileError::NotDirectory) => {
                    own(FileKind::Directory, 0, self.inode)
                }
                Err(error) => return Err(error),
            },
        };
        Ok(self.attributes.apply(stat))
    }

    /// Lists the directory, sorted.
    pub(super) fn list(&self, lower: &HostTree) -> Result<Vec<String>, FileError> {
        let mut names = match &self.lower {
            None => Vec::new(),
            Some(path) => match lower.list(RelativePath::joined(path)) {
                Err(FileError::NotFound | FileError::NotDirectory) => Vec::new(),
                other => other?,
            },
        };
        names.retain(|name| !self.children.contains_key(name));
        let present = |(name, node): (&String, &Node)| {
            (!matches!(node, Node::Removed(_))).then(|| name.clone())
        };
        names.extend(self.children.iter().filter_map(present));
        names.sort_unstable();
        Ok(names)
    }

    /// Returns the number of levels of the tree of changes beneath this directory.
    pub(super) fn height(&self) -> u64 {
        let inner = self.children.values().filter_map(Node::as_directory).map(Self::height).max();
        match inner {
            Some(height) => height + 1,
            None => u64::from(!self.children.is_empty()),
        }
    }
}
