//! Changes to an overlay, except renames.

use std::fs::File;
use std::sync::{Arc, Weak};

use super::super::budget::{Charge, Resource};
use super::super::error::FileError;
use super::super::path::RelativePath;
use super::super::request::{FileKind, FileStat, OpenFlags};
use super::super::volume::Times;
use super::Shared;
use super::attributes::Attributes;
use super::file::{Body, Contents, OverlayFile};
use super::node::{Directory, Link, Lower, Node};
use super::state::{Found, OpenLower, State};

impl State {
    /// Opens or creates the file at a path. The flag is set if it was created.
    pub(super) fn open(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        flags: OpenFlags,
    ) -> Result<(Arc<OverlayFile>, bool), FileError> {
        let Some(stat) = self.stat_if_any(shared, path)? else {
            if flags.create {
                return Ok((self.create(shared, path)?, true));
            }
            return Err(FileError::NotFound);
        };
        if flags.create && flags.exclusive {
            return Err(FileError::Exists);
        }
        match stat.kind {
            FileKind::Directory => return Err(FileError::IsDirectory),
            FileKind::Link => return Err(FileError::Link),
            FileKind::File => {}
        }
        let lower = match self.find(path)? {
            Found::File(file) => return Ok((Arc::clone(file), false)),
            Found::Lower(lower, _) => lower,
            Found::Directory(_) | Found::Link(_) => return Err(FileError::Io),
        };
        let (file, metadata) = shared.lower.open_to_read(RelativePath::joined(&lower))?;
        let inode = shared.lower.describe(&metadata)?.inode;
        Ok((self.share(path, file, inode), false))
    }

    /// Returns the open host file at a path, which all its handles share.
    fn share(&mut self, path: RelativePath<'_>, file: File, inode: u64) -> Arc<OverlayFile> {
        self.opened.retain(|open| open.file.strong_count() > 0);
        for open in &mut self.opened {
            if open.place.as_deref() == Some(path.as_str()) {
                match open.file.upgrade() {
                    Some(shared) if shared.inode() == inode => return shared,
                    // The host has replaced the file.
                    _ => open.place = None,
                }
            }
        }
        let shared = Arc::new(OverlayFile::new(inode, Body::Host(file)));
        let place = Some(path.as_str().to_owned());
        self.opened.push(OpenLower { place, file: Arc::downgrade(&shared) });
        shared
    }

    /// Describes an open file that has not been written to.
    pub(super) fn stat_open(
        &self,
        shared: &Shared,
        file: &Arc<OverlayFile>,
    ) -> Result<FileStat, FileError> {
        let stat = match &*file.lock() {
            Body::Host(host) => shared.lower.describe_file(host)?,
            Body::Memory(_) => return file_stat(file),
        };
        Ok(self.attributes_of(file).apply(stat))
    }

    /// Copies the first `kept` bytes of an open host file into memory, so that it can be written
    /// to.
    pub(super) fn copy_up(
        &mut self,
        shared: &Shared,
        file: &Arc<OverlayFile>,
        kept: u64,
    ) -> Result<(), FileError> {
        let attributes = self.attributes_of(file);
        let mut body = file.lock();
        let Body::Host(host) = &*body else {
            return Ok(());
        };
        let stat = attributes.apply(shared.lower.describe_file(host)?);
        let charge = shared.budget.charge(Resource::Files, 1)?;
        let mut contents = Contents::new(Attributes::of(&stat), charge, &shared.budget)?;
        contents.copy_from(host, stat.size.min(kept))?;
        if let Some(open) = self.opened.iter().position(|open| is(&open.file, file)) {
            let place = self.opened.get(open).and_then(|open| open.place.clone());
            self.put(shared, place.as_deref(), file)?;
            self.opened.swap_remove(open);
        }
        *body = Body::Memory(contents);
        Ok(())
    }

    /// Inserts a file into the tree of changes at its path.
    fn put(
        &mut self,
        shared: &Shared,
        place: Option<&str>,
        file: &Arc<OverlayFile>,
    ) -> Result<(), FileError> {
        let Some((parent, name)) = place.and_then(|place| RelativePath::joined(place).split())
        else {
            return Ok(());
        };
        match self.directory_mut(shared, parent) {
            Ok(directory) => {
                directory.children.insert(name.to_owned(), Node::File(Arc::clone(file)));
                Ok(())
            }
            // The host has removed the directory, so the file has no name any more.
            Err(FileError::NotFound | FileError::NotDirectory | FileError::Link) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn create(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<Arc<OverlayFile>, FileError> {
        let (parent, name) = path.split().ok_or(FileError::IsDirectory)?;
        let directory = self.directory_mut(shared, parent)?;
        let charge = shared.budget.charge(Resource::Files, 1)?;
        let contents = Contents::new(Attributes::made_now(), charge, &shared.budget)?;
        let file = Arc::new(OverlayFile::new(shared.new_inode(), Body::Memory(contents)));
        directory.insert(name, Node::File(Arc::clone(&file)));
        Ok(file)
    }

    pub(super) fn make_directory(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<(), FileError> {
        self.make(shared, path, |charge| {
            Ok(Node::Directory(Directory::new(shared.new_inode(), charge)))
        })
    }

    pub(super) fn make_link(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        target: &str,
    ) -> Result<(), FileError> {
        self.make(shared, path, |charge| {
            let bytes = shared.budget.charge(Resource::Bytes, target.len() as u64)?;
            Ok(Node::Link(Link {
                target: target.to_owned(),
                inode: shared.new_inode(),
                attributes: Attributes::made_now(),
                charges: [charge, bytes],
            }))
        })
    }

    /// Creates something at a path where nothing exists.
    fn make(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        node: impl FnOnce(Charge) -> Result<Node, FileError>,
    ) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Exists)?;
        if self.stat_if_any(shared, path)?.is_some() {
            return Err(FileError::Exists);
        }
        let directory = self.directory_mut(shared, parent)?;
        let charge = shared.budget.charge(Resource::Files, 1)?;
        directory.insert(name, node(charge)?);
        Ok(())
    }

    pub(super) fn remove(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<(), FileError> {
        match self.stat(shared, path)?.kind {
            FileKind::Directory => Err(FileError::IsDirectory),
            FileKind::File | FileKind::Link => self.hide(shared, path),
        }
    }

    pub(super) fn remove_directory(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
    ) -> Result<(), FileError> {
        if self.stat(shared, path)?.kind != FileKind::Directory {
            return Err(FileError::NotDirectory);
        }
        if path.is_root() {
            return Err(FileError::Busy);
        }
        if !self.list(shared, path)?.is_empty() {
            return Err(FileError::NotEmpty);
        }
        self.hide(shared, path)
    }

    /// Removes what is at a path, and hides what the host has there.
    fn hide(&mut self, shared: &Shared, path: RelativePath<'_>) -> Result<(), FileError> {
        let (parent, name) = path.split().ok_or(FileError::Busy)?;
        let directory = self.directory_mut(shared, parent)?;
        if Self::shows_through(shared, directory, name)? {
            let charge = shared.budget.charge(Resource::Marks, 1)?;
            directory.insert(name, Node::Removed(charge));
        } else {
            directory.children.remove(name);
            directory.attributes.touch();
        }
        self.displace(path);
        Ok(())
    }

    /// Records that an open host file is no longer at a path.
    pub(super) fn displace(&mut self, path: RelativePath<'_>) {
        for open in &mut self.opened {
            if open.place.as_deref() == Some(path.as_str()) {
                open.place = None;
            }
        }
    }

    pub(super) fn set_times(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        times: Times,
    ) -> Result<(), FileError> {
        self.set_attributes(shared, path, |attributes| attributes.set_times(times))
    }

    pub(super) fn set_mode(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        mode: u32,
    ) -> Result<(), FileError> {
        self.set_attributes(shared, path, |attributes| attributes.set_mode(mode))
    }

    fn set_attributes(
        &mut self,
        shared: &Shared,
        path: RelativePath<'_>,
        set: impl FnOnce(&mut Attributes),
    ) -> Result<(), FileError> {
        match self.stat(shared, path)?.kind {
            FileKind::Link => return Err(FileError::Link),
            FileKind::Directory => {
                set(&mut self.directory_mut(shared, path)?.attributes);
                return Ok(());
            }
            FileKind::File => {}
        }
        if let Found::File(file) = self.find(path)? {
            file.change(set);
            return Ok(());
        }
        let (parent, name) = path.split().ok_or(FileError::IsDirectory)?;
        let directory = self.directory_mut(shared, parent)?;
        if let Some(Node::Lower(lower)) = directory.children.get_mut(name) {
            set(&mut lower.attributes);
            return Ok(());
        }
        let lower = directory.lower_at(name).ok_or(FileError::NotFound)?;
        let mut node = Lower {
            path: lower,
            attributes: Attributes::default(),
            charge: shared.budget.charge(Resource::Marks, 1)?,
        };
        set(&mut node.attributes);
        directory.children.insert(name.to_owned(), Node::Lower(node));
        Ok(())
    }

    /// Returns the attributes that were set for an open host file.
    fn attributes_of(&self, file: &Arc<OverlayFile>) -> Attributes {
        let place = self.opened.iter().find(|open| is(&open.file, file));
        let found = place
            .and_then(|open| open.place.as_deref())
            .and_then(|place| self.find(RelativePath::joined(place)).ok());
        match found {
            Some(Found::Lower(_, attributes)) => attributes,
            _ => Attributes::default(),
        }
    }
}

impl Directory {
    /// Inserts an entry and updates the directory's modification time.
    pub(super) fn insert(&mut self, name: &str, node: Node) {
        self.children.insert(name.to_owned(), node);
        self.attributes.touch();
    }
}

fn is(weak: &Weak<OverlayFile>, file: &Arc<OverlayFile>) -> bool {
    std::ptr::eq(weak.as_ptr(), Arc::as_ptr(file))
}

fn file_stat(file: &OverlayFile) -> Result<FileStat, FileError> {
    file.stat_in_memory().ok_or(FileError::Io)
}
