//! What was changed in an overlay.

use std::sync::Arc;

use super::super::path::{RelativePath, join};
use super::super::request::FileKind;
use super::Shared;
use super::file::OverlayFile;
use super::node::{Directory, Node};

/// Something that the guest changed in an overlay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct FileChange {
    /// The guest's path.
    pub path: String,
    /// How it was changed.
    pub kind: ChangeKind,
}

/// How it was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ChangeKind {
    /// The host has nothing there.
    Created,
    /// The host has something else there, or with other contents or attributes. A directory in
    /// which something was changed is not itself modified.
    Modified,
    /// The host has something there that the guest has removed or moved.
    Removed,
}

/// A change, and what is there now.
pub(super) struct Entry {
    /// Relative to the overlay's root.
    pub(super) path: String,
    pub(super) kind: ChangeKind,
    pub(super) now: Now,
}

/// What is at a changed path.
pub(super) enum Now {
    Nothing,
    Directory,
    File(Arc<OverlayFile>),
    /// This file of the host.
    Host(String),
    /// A link to this target.
    Link(String),
}

/// All that was changed.
pub(super) struct Changes<'a> {
    shared: &'a Shared,
    pub(super) entries: Vec<Entry>,
    /// Whether there were more than the limit of listings.
    pub(super) cut: bool,
}

impl Shared {
    /// What was changed, sorted by path; `guest` is where the overlay is mounted.
    pub(super) fn changes(&self, guest: &str) -> Vec<FileChange> {
        let entries = Changes::of(self).entries;
        let change = |entry: Entry| FileChange { path: join(guest, &entry.path), kind: entry.kind };
        let mut changes: Vec<FileChange> = entries.into_iter().map(change).collect();
        changes.sort_unstable();
        // What a replaced directory hides is found both in it and beneath it.
        changes.dedup();
        changes
    }
}

impl<'a> Changes<'a> {
    /// Collects all that was changed so far.
    pub(super) fn of(shared: &'a Shared) -> Self {
        let mut changes = Self { shared, entries: Vec::new(), cut: false };
        let state = shared.lock();
        changes.children(&state.root, "", Some(""));
        changes
    }

    /// Adds what was changed in a directory of the tree of changes. `before` is the path of the
    /// host that would show through at its place, if one would.
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

    /// Adds a directory that is new at its place, with all that is in it.
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

    /// Adds something of the host that is new at its place, with all that is in it.
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

    /// Adds something that is there, as created or as modified.
    fn add_over(&mut self, path: String, before: Option<&str>, now: Now) {
        let kind = match self.kind_at(before) {
            Some(_) => ChangeKind::Modified,
            None => ChangeKind::Created,
        };
        self.add(path, kind, now);
    }

    fn add(&mut self, path: String, kind: ChangeKind, now: Now) {
        // The tree of changes is bounded by its quotas; what is not is followed no further than
        // this.
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
