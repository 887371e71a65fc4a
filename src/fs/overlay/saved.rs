//! An overlay's changes as data, to be saved and restored. A list of paths, not a tree, so that no
//! input makes reading it recurse.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Serialize, Serializer};

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
use crate::data::counted::{Counted, within_bytes};

/// The changes in an overlay: each changed entry with its path, directories before what is in them.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct SavedOverlay {
    root: Attributes,
    entries: Vec<(String, Saved)>,
}

/// [`Saved::read`] knows the variants by their places.
#[derive(Debug, PartialEq, Serialize)]
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

/// The chunk is shared with the file.
#[derive(Debug, PartialEq, Serialize)]
struct SavedChunk(#[serde(serialize_with = "as_bytes")] Arc<Vec<u8>>);

fn as_bytes<S: Serializer>(bytes: &Arc<Vec<u8>>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bytes(bytes)
}

/// What the overlays of a sandbox can have, and so what a saved session may have of them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SavedLimits {
    /// The bytes of all files.
    pub(crate) bytes: u64,
    /// The elements of all lists.
    pub(crate) elements: u64,
    /// The mount points.
    pub(crate) guests: Vec<String>,
}

impl SavedLimits {
    /// Adds an overlay with these quotas.
    pub(crate) fn add(&mut self, guest: String, bytes: u64, files: u64) {
        let entries = files.saturating_add(FileLimits::default().overlay_marks);
        let elements = entries.saturating_add(Chunks::most(bytes, files));
        self.bytes = self.bytes.saturating_add(bytes);
        self.elements = self.elements.saturating_add(elements);
        self.guests.push(guest);
    }
}

impl SavedOverlay {
    /// What the elements of its lists are.
    pub(crate) const ELEMENTS: &str = "changed entries of overlays and chunks of their files";

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the number of elements in its lists.
    pub(crate) fn elements(&self) -> u64 {
        let chunks = |saved: &Saved| match saved {
            Saved::File(_, chunks, _) => chunks.len() as u64,
            _ => 0,
        };
        self.entries.iter().map(|(_, saved)| 1 + chunks(saved)).sum()
    }

    /// Reads the changes in an overlay. What they say is checked when they are restored.
    pub(crate) fn read(from: &mut Counted<'_>) -> Result<Self, String> {
        let root = from.value()?;
        let max_bytes = usize::try_from(FileLimits::default().path_bytes).unwrap_or(usize::MAX);
        let entries = from.shared_list(Self::ELEMENTS, |from| {
            let path = from.text("a path in an overlay", max_bytes)?;
            Ok((path, Saved::read(from, max_bytes)?))
        })?;
        Ok(Self { root, entries })
    }
}

impl Saved {
    fn read(from: &mut Counted<'_>, max_bytes: usize) -> Result<Self, String> {
        let path = "a path of the host in an overlay";
        Ok(match from.value::<u32>()? {
            0 => {
                let lower: Option<&str> = from.value()?;
                lower.map_or(Ok(()), |lower| within_bytes(path, lower, max_bytes))?;
                Self::Directory(lower.map(str::to_owned), from.value()?)
            }
            1 => {
                let size = from.value()?;
                let chunks = from.shared_list(SavedOverlay::ELEMENTS, |from| {
                    let nth = from.value()?;
                    let bytes: &serde_bytes::Bytes = from.value()?;
                    Ok((nth, SavedChunk(Arc::new(bytes.to_vec()))))
                })?;
                Self::File(size, chunks, from.value()?)
            }
            2 => Self::Link(from.text("the target of a link", max_bytes)?, from.value()?),
            3 => Self::Lower(from.text(path, max_bytes)?, from.value()?),
            4 => Self::Removed,
            other => return Err(format!("an entry of an overlay is of the unknown kind {other}")),
        })
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
                        .map(|(nth, chunk)| (nth, SavedChunk(Arc::clone(chunk))));
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
                    bytes.restore(nth, chunk)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedOverlay {
        let attributes = Attributes::made_now();
        let chunk = |nth, bytes: &[u8]| (nth, SavedChunk(Arc::new(bytes.to_vec())));
        let entries = [
            ("new", Saved::Directory(None, attributes)),
            ("old", Saved::Directory(Some("was/old".to_owned()), Attributes::default())),
            ("new/file", Saved::File(70_000, vec![chunk(0, b"a"), chunk(1, b"bc")], attributes)),
            ("empty", Saved::File(0, Vec::new(), Attributes::default())),
            ("link", Saved::Link("new/file".to_owned(), attributes)),
            ("moved", Saved::Lower("from/here".to_owned(), attributes)),
            ("gone", Saved::Removed),
        ];
        let entries = entries.map(|(path, entry)| (path.to_owned(), entry)).into();
        SavedOverlay { root: attributes, entries }
    }

    fn read(bytes: &[u8], elements: u64) -> Result<SavedOverlay, String> {
        SavedOverlay::read(&mut Counted::new(bytes, elements))
    }

    #[test]
    fn each_kind_of_entry_is_read_as_it_was_written() {
        let saved = saved();
        let bytes = postcard::to_stdvec(&saved).unwrap();
        assert_eq!(saved.elements(), 9);
        assert_eq!(read(&bytes, 9).unwrap(), saved);
        let error = read(&bytes, 8).unwrap_err();
        assert_eq!(error, format!("{}: limit 8, needed 9", SavedOverlay::ELEMENTS));
        for length in 0..bytes.len() {
            read(&bytes[..length], 9).unwrap_err();
        }
    }

    #[test]
    fn a_path_is_no_longer_than_a_guests_and_kinds_are_known() {
        let entry = |path: String, entry| SavedOverlay {
            root: Attributes::default(),
            entries: vec![(path, entry)],
        };
        let long = || "a".repeat(4097);
        let unset = Attributes::default();
        for (saved, what) in [
            (entry(long(), Saved::Removed), "a path in an overlay"),
            (entry("a".into(), Saved::Link(long(), unset)), "the target of a link"),
            (entry("a".into(), Saved::Lower(long(), unset)), "a path of the host"),
            (entry("a".into(), Saved::Directory(Some(long()), unset)), "a path of the host"),
        ] {
            let error = read(&postcard::to_stdvec(&saved).unwrap(), 10).unwrap_err();
            let expected = "limit 4096 bytes, needed 4097";
            assert!(error.contains(what) && error.contains(expected), "{error}");
        }
        let mut bytes = postcard::to_stdvec(&entry("a".into(), Saved::Removed)).unwrap();
        *bytes.last_mut().unwrap() = 5;
        assert!(read(&bytes, 10).unwrap_err().contains("the unknown kind 5"));
    }

    #[test]
    fn all_that_the_quotas_of_an_overlay_allow_can_be_saved() {
        let mut limits = SavedLimits::default();
        limits.add("/a".to_owned(), 64 * 1024, 1);
        // A file, what is hidden, a whole chunk and one that is not.
        assert_eq!(limits.elements, 1 + 100_000 + 2);
        limits.add("/b".to_owned(), u64::MAX, u64::MAX);
        assert_eq!((limits.bytes, limits.elements), (u64::MAX, u64::MAX));
    }
}
