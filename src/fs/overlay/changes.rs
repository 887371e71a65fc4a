//! Lists the changes in an overlay.

use std::sync::Arc;

use super::super::path::{RelativePath, join};
use super::super::request::FileKind;
use super::Shared;
use super::file::OverlayFile;
use super::node::{Directory, Node};

/// A file, directory or link that the guest has changed in an overlay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FileChange {
    /// The guest path.
    pub path: String,
    /// How it was changed.
    pub kind: ChangeKind,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The host has nothing at this path.
    Created,
    /// The host has something else at this path, or the same with other contents or attributes. A
    /// directory in which something changed is not itself modified.
    Modified,
    /// The guest has removed or moved what the host has at this path.
    Removed,
}

/// A change, and what exists at its path now.
pub(super) struct Entry {
    /// Relative to the overlay's root.
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    pub(super) now: Now,
}

/// What exists at a changed path.
pub(super) enum Now {
    Nothing,
    Directory,
    File(Arc<OverlayFile>),
    /// This file of the host.
    Host(String),
    /// A link to this target.
    Link(String),
}

/// All changes in an overlay.
pub(super) struct Changes<'a> {
    shared: &'a Shared,
    pub(super) entries: Vec<Entry>,
    /// Set if there were more than the limit of listings.
    pub(super) cut: bool,
}

impl Shared {
    /// Returns the changes, sorted by path. `guest` is the overlay's mount point.
    pub(super) fn changes(&self, guest: &str) -> Vec<FileChange> {
        let entries = Changes::of(self).entries;
        let change = |entry: Entry| FileChange { path: join(guest, &entry.path), kind: entry.kind };
        let mut changes: Vec<FileChange> = entries.into_iter().map(change).collect();
        changes.sort_unstable();
        // The entries of a replaced directory are found both in it and beneath it.
        changes.dedup();
        changes
    }
}

impl<'a> Changes<'a> {
    /// Collects all changes so far.
    pub(super) fn of(shared: &'a Shared) -> Self {
        let mut changes = Self { shared, entries: Vec::new(), cut: false };
        let state = shared.lock();
        changes.children(&state.root, "", Some(""));
        changes
    }

    /// Adds the changes in a directory of the tree. `before` is the host path that would be visible
    /// in its place, if any.
    fn children(&mut self, directory: &Directory, path: &str, before: Option<&str>) {
        for (name, node) in &directory.children {
            let path = join(path, name);
            let before = before.map(|before| join(before, name));
            let before = before.as_deref();
            match node {
                Node::Removed(_) => {
                    if self.kind_at(before).is_some() {
                        self.add(path, ChangeKind::Removed, Now::Nothing);
                    }
                }
                Node::File(file) => self.add_over(path, before, Now::File(Arc::clone(file))),
                Node::Link(link) => self.add_over(path, before, Now::Link(link.target.clone())),
                Node::Lower(lower) if Some(lower.path.as_str()) != before => {
                    self.host(&lower.path, path, before);
                }
                Node::Lower(lower) => {
                    if lower.attributes.any() {
                        self.add(path, ChangeKind::Modified, Now::Host(lower.path.clone()));
                    }
                }
                Node::Directory(inner)
                    if inner.lower.is_some() && inner.lower.as_deref() == before =>
                {
                    self.children(inner, &path, before);
                }
                Node::Directory(inner) => self.moved(inner, &path, before),
            }
        }
    }

    /// Adds a directory that is new in its place, with all its contents.
    fn moved(&mut self, directory: &Directory, path: &str, before: Option<&str>) {
        let before =
            before.filter(|before| self.kind_at(Some(before)) == Some(FileKind::Directory));
        self.add_over(path.to_owned(), before, Now::Directory);
        let names = directory.list(&self.shared.lower).unwrap_or_default();
        for name in before.map(|before| self.names(before)).unwrap_or_default() {
            if names.binary_search(&name).is_err() {
                self.add(join(path, &name), ChangeKind::Removed, Now::Nothing);
            }
        }
        for name in names.iter().filter(|name| !directory.children.contains_key(*name)) {
            if let Some(lower) = directory.lower_at(name) {
                let before = before.map(|before| join(before, name));
                self.host(&lower, join(path, name), before.as_deref());
            }
        }
        self.children(directory, path, before);
    }

    /// Adds a host file or directory that is new in its place, with all its contents.
    fn host(&mut self, lower: &str, path: String, before: Option<&str>) {
        let limits = self.shared.lower.limits();
        if self.cut || RelativePath::joined(&path).depth() > limits.depth {
            return;
        }
        match self.kind_at(Some(lower)) {
            None => {}
            Some(FileKind::File) => self.add_over(path, before, Now::Host(lower.to_owned())),
            Some(FileKind::Link) => {
                let target = self.shared.lower.read_link(RelativePath::joined(lower));
                self.add_over(path, before, Now::Link(target.unwrap_or_default()));
            }
            Some(FileKind::Directory) => {
                self.add_over(path.clone(), before, Now::Directory);
                for name in self.names(lower) {
                    let before = before.map(|before| join(before, &name));
                    self.host(&join(lower, &name), join(&path, &name), before.as_deref());
                }
            }
        }
    }

    /// Adds an existing entry, as created or as modified.
    fn add_over(&mut self, path: String, before: Option<&str>, now: Now) {
        let kind = match self.kind_at(before) {
            Some(_) => ChangeKind::Modified,
            None => ChangeKind::Created,
        };
        self.add(path, kind, now);
    }

    fn add(&mut self, path: String, kind: ChangeKind, now: Now) {
        // Quotas bound the tree of changes. This bounds the host entries that are followed from it.
        let limits = self.shared.lower.limits();
        if self.entries.len() as u64 >= limits.list_entries.saturating_add(limits.overlay_marks) {
            self.cut = true;
        } else {
            self.entries.push(Entry { path, kind, now });
        }
    }

    fn kind_at(&self, lower: Option<&str>) -> Option<FileKind> {
        self.shared.lower.stat(RelativePath::joined(lower?)).ok().map(|stat| stat.kind)
    }

    fn names(&self, lower: &str) -> Vec<String> {
        self.shared.lower.list(RelativePath::joined(lower)).unwrap_or_default()
    }
}
