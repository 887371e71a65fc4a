//! The state of an overlay: the tree of changes over the host's directory.

use std::sync::{Arc, Weak};

use super::super::budget::Resource;
use super::super::error::FileError;
use super::super::path::{RelativePath, join};
use super::super::request::{FileKind, FileStat};
use super::Shared;
use super::attributes::{Attributes, own};
use super::file::OverlayFile;
use super::node::{Directory, Link, Node};

/// The changes of one session, and its open host files.
pub(super) struct State {
    pub(super) root: Directory,
    pub(super) opened: Vec<OpenLower>,
}

/// An open host file that has not been written to.
pub(super) struct OpenLower {
    /// The guest path; `None` if the file was removed or replaced.
    pub(super) place: Option<String>,
    pub(super) file: Weak<OverlayFile>,
}

/// The result of looking up a path.
pub(super) enum Found<'a> {
    Directory(&'a Directory),
    File(&'a Arc<OverlayFile>),
    Link(&'a Link),
    /// Whatever the host has at this path, if anything, with the attributes that were set.
    Lower(String, Attributes),
}

impl Default for State {
    fn default() -> Self {
        let root = Directory { lower: Some(String::new()), ..Directory::default() };
        Self { root, opened: Vec::new() }
    }
}

impl State {
    /// Looks up a path in the tree of changes.
    pub(super) fn find(&self, path: RelativePath<'_>) -> Result<Found<'_>, FileError> {
        let mut directory = &self.root;
        let mut found = None;
        let mut names = path.names();
        for name in names.by_ref() {
            match directory.children.get(name) {
                Some(Node::Directory(inner)) => directory = inner,
                Some(Node::Removed(_)) => return Err(FileError::NotFound),
                None => {
                    let lower = directory.lower_at(name).ok_or(FileError::NotFound)?;
                    // From here to the end of the path only the host's entries count.
                    let lower = names.fold(lower, |path, name| join(&path, name));
                    return Ok(Found::Lower(lower, Attributes::default()));
                }
                Some(node) => {
                    found = Some(node);
                    break;
                }
            }
        }
        let Some(node) = found else {
            return Ok(Found::Directory(directory));
        };
        if names.next().is_some() {
            return Err(FileError::NotDirectory);
        }
        match node {
            Node::Directory(directory) => Ok(Found::Directory(directory)),
            Node::File(file) => Ok(Found::File(file)),
            Node::Link(link) => Ok(Found::Link(link)),
            Node::Lower(lower) => Ok(Found::Lower(lower.path.clone(), lower.attributes)),
            Node::Removed(_) => Err(FileError::NotFound),
        }
    }

    /// Returns the directory at a path as a node of the tree of changes.
    pub(super) fn directory_mut(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<&mut Directory, FileError> {
        let mut directory = &mut self.root;
        for name in path.names() {
            if !directory.children.contains_key(name) {
                let lower = directory.lower_at(name).ok_or(FileError::NotFound)?;
                match shared.lower.stat(RelativePath::joined(&lower))?.kind {
                    FileKind::Directory => {}
                    FileKind::Link => return Err(FileError::Link),
                    FileKind::File => return Err(FileError::NotDirectory),
                }
                let charge = shared.budget.charge(Resource::Marks, 1)?;
                let inner = Directory::of_host(lower, charge);
                directory.children.insert(name.to_owned(), Node::Directory(inner));
            }
            directory = match directory.children.get_mut(name) {
                Some(Node::Directory(inner)) => inner,
                Some(Node::Removed(_)) | None => return Err(FileError::NotFound),
                Some(Node::Link(_)) => return Err(FileError::Link),
                Some(Node::File(_) | Node::Lower(_)) => return Err(FileError::NotDirectory),
            };
        }
        Ok(directory)
    }

    pub(super) fn stat(
        &self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<FileStat, FileError> {
        match self.find(path)? {
            Found::Directory(directory) => directory.stat(&shared.lower),
            Found::File(file) => file.stat_in_memory().ok_or(FileError::Io),
            Found::Link(link) => {
                let size = link.target.len() as u64;
                Ok(link.attributes.apply(own(FileKind::Link, size, link.inode)))
            }
            Found::Lower(lower, attributes) => {
                let stat = shared.lower.stat(RelativePath::joined(&lower))?;
                Ok(attributes.apply(stat))
            }
        }
    }

    /// As [`stat`](Self::stat), but returns `None` if nothing exists there.
    pub(super) fn stat_if_any(
        &self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<Option<FileStat>, FileError> {
        match self.stat(shared, path) {
            Err(FileError::NotFound) => Ok(None),
            other => other.map(Some),
        }
    }

    pub(super) fn list(
        &self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<Vec<String>, FileError> {
        match self.find(path)? {
            Found::Directory(directory) => directory.list(&shared.lower),
            Found::File(_) | Found::Link(_) => Err(FileError::NotDirectory),
            Found::Lower(lower, _) => shared.lower.list(RelativePath::joined(&lower)),
        }
    }

    pub(super) fn read_link(
        &self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<String, FileError> {
        match self.find(path)? {
            Found::Link(link) => Ok(link.target.clone()),
            Found::Directory(_) | Found::File(_) => Err(FileError::Invalid),
            Found::Lower(lower, _) => shared.lower.read_link(RelativePath::joined(&lower)),
        }
    }

    /// Returns `true` if the host has an entry that would be visible under a name of a directory.
    pub(super) fn shows_through(
        shared: &Shared,
        directory: &Directory,
        name: &str,
    ) -> Result<bool, FileError> {
        let Some(lower) = directory.lower_at(name) else {
            return Ok(false);
        };
        match shared.lower.stat(RelativePath::joined(&lower)) {
            Err(FileError::NotFound | FileError::NotDirectory) => Ok(false),
            // An entry that exists but is not shown must be hidden too.
            Ok(_) | Err(FileError::Access(_)) => Ok(true),
            Err(error) => Err(error),
        }
    }
}
