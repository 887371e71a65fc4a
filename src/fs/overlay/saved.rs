//! An overlay's changes as data, to be saved and restored. A list of paths, not a tree, so that no
//! input makes reading it recurse.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::budget::Resource;
use super::super::error::FileError;
use super::super::limits::FileLimits;
use super::super::path::{RelativePath, check_target, join};
use super::attributes::Attributes;
use super::chunks::Chunks;
use super::file::{Body, Contents, OverlayFile};
use super::node::{Directory, Link, Lower, Node};
use super::state::State;
use super::{Overlay, Shared};

/// The changes in an overlay: each changed entry with its path, directories before what is in them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SavedOverlay {
    root: Attributes,
    entries: Vec<(String, Saved)>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Saved {
    /// A directory, with the path of the host directory that is visible through it.
    Directory(Option<String>, Attributes),
    /// A file of this size, with chunks of its contents by number.
    File(u64, Vec<(u64, SavedChunk)>, Attributes),
    /// A link with this target.
    Link(String, Attributes),
    /// The file or link of the host at this path.
    Lower(String, Attributes),
    /// Hides an entry of the host.
    Removed,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedChunk(#[serde(with = "serde_bytes")] Vec<u8>);

impl SavedOverlay {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Overlay {
    /// Describes the changes.
    pub(crate) fn save(&self) -> SavedOverlay {
        let state = self.0.lock();
        let mut entries = Vec::new();
        save_directory("", &state.root, &mut entries);
        SavedOverlay { root: state.root.attributes, entries }
    }

    /// Makes the changes in an overlay that has none. Fails if they are not valid, or exceed the
    /// quotas.
    pub(crate) fn restore(&self, saved: SavedOverlay) -> Result<(), FileError> {
        let limits = FileLimits::default();
        let mut state = State::default();
        state.root.attributes = saved.root;
        for (path, entry) in saved.entries {
            let parsed = RelativePath::parse(&path, &limits)?;
            let (parent, name) = parsed.split().ok_or(FileError::Invalid)?;
            let node = self.0.restored(parsed, entry, &limits)?;
            let mut directory = &mut state.root;
            for name in parent.names() {
                directory = match directory.children.get_mut(name) {
                    Some(Node::Directory(inner)) => inner,
                    _ => return Err(FileError::Invalid),
                };
            }
            directory.children.insert(name.to_owned(), node);
        }
        *self.0.lock() = state;
        Ok(())
    }
}

fn save_directory(path: &str, directory: &Directory, entries: &mut Vec<(String, Saved)>) {
    for (name, node) in &directory.children {
        let path = join(path, name);
        let saved = match node {
            Node::Directory(inner) => {
                let saved = Saved::Directory(inner.lower.clone(), inner.attributes);
                entries.push((path.clone(), saved));
                save_directory(&path, inner, entries);
                continue;
            }
            Node::File(file) => match &*file.lock() {
                Body::Memory(contents) => {
                    let chunks = contents
                        .bytes
                        .parts()
                        .map(|(nth, chunk)| (nth, SavedChunk(chunk.to_vec())));
                    Saved::File(contents.bytes.size(), chunks.collect(), contents.attributes)
                }
                // A file in the tree has its bytes in memory.
                Body::Host(_) => continue,
            },
            Node::Link(link) => Saved::Link(link.target.clone(), link.attributes),
            Node::Lower(lower) => Saved::Lower(lower.path.clone(), lower.attributes),
            Node::Removed(_) => Saved::Removed,
        };
        entries.push((path, saved));
    }
}

impl Shared {
    fn restored(
        &self,
        path: RelativePath<'_>,
        saved: Saved,
        limits: &FileLimits,
    ) -> Result<Node, FileError> {
        let mark = || self.budget.charge(Resource::Marks, 1);
        Ok(match saved {
            Saved::Directory(lower, attributes) => {
                let mut directory = match lower {
                    Some(lower) => {
                        RelativePath::parse(&lower, limits)?;
                        Directory::of_host(lower, mark()?)
                    }
                    None => {
                        Directory::new(self.new_inode(), self.budget.charge(Resource::Files, 1)?)
                    }
                };
                directory.attributes = attributes;
                directory.children = BTreeMap::new();
                Node::Directory(directory)
            }
            Saved::File(size, chunks, attributes) => {
                let mut bytes = Chunks::new(&self.budget)?;
                bytes.set_size(size)?;
                for (nth, SavedChunk(chunk)) in chunks {
                    bytes.restore(nth, &chunk)?;
                }
                let charge = self.budget.charge(Resource::Files, 1)?;
                let contents = Contents { bytes, attributes, charge };
                Node::File(Arc::new(OverlayFile::new(self.new_inode(), Body::Memory(contents))))
            }
            Saved::Link(target, attributes) => {
                check_target(path, &target, limits)?;
                let charges = [
                    self.budget.charge(Resource::Files, 1)?,
                    self.budget.charge(Resource::Bytes, target.len() as u64)?,
                ];
                Node::Link(Link { target, inode: self.new_inode(), attributes, charges })
            }
            Saved::Lower(lower, attributes) => {
                RelativePath::parse(&lower, limits)?;
                Node::Lower(Lower { path: lower, attributes, charge: mark()? })
            }
            Saved::Removed => Node::Removed(mark()?),
        })
    }
}
