//! Copies an overlay for a copy of its session. The two share the bytes that neither changes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::super::budget::Budget;
use super::super::error::FileError;
use super::super::volume::{FileCopies, OpenFile, VolumeCopy};
use super::file::{Body, Contents, OverlayFile, OverlayHandle};
use super::node::{Directory, Link, Lower, Node};
use super::state::{OpenLower, State};
use super::{Overlay, Shared};

/// What the open files of an overlay are copied with.
pub(crate) struct OverlayCopy {
    shared: Arc<Shared>,
    files: Files,
}

/// The files that were copied so far, by the address of the original.
struct Files {
    budget: Arc<Budget>,
    copies: Mutex<HashMap<usize, Arc<OverlayFile>>>,
}

impl Files {
    /// Returns the copy of a file. A file that is in the tree and open is copied once.
    fn copy(&self, file: &Arc<OverlayFile>) -> Result<Arc<OverlayFile>, FileError> {
        let mut copies = self.copies.lock().unwrap_or_else(PoisonError::into_inner);
        let address = Arc::as_ptr(file).addr();
        if let Some(copy) = copies.get(&address) {
            return Ok(Arc::clone(copy));
        }
        let body = match &*file.lock() {
            Body::Host(file) => Body::Host(file.try_clone()?),
            Body::Memory(contents) => Body::Memory(contents.copy(&self.budget)),
        };
        let copy = Arc::new(OverlayFile::new(file.inode(), body));
        copies.insert(address, Arc::clone(&copy));
        Ok(copy)
    }

    fn directory(&self, directory: &Directory) -> Result<Directory, FileError> {
        let Directory { lower, children, attributes, inode, charge } = directory;
        let children = children.iter().map(|(name, node)| Ok((name.clone(), self.node(node)?)));
        Ok(Directory {
            lower: lower.clone(),
            children: children.collect::<Result<_, FileError>>()?,
            attributes: *attributes,
            inode: *inode,
            charge: charge.as_ref().map(|charge| charge.copy(&self.budget)),
        })
    }

    fn node(&self, node: &Node) -> Result<Node, FileError> {
        Ok(match node {
            Node::Directory(directory) => Node::Directory(self.directory(directory)?),
            Node::File(file) => Node::File(self.copy(file)?),
            Node::Link(Link { target, inode, attributes, charges }) => Node::Link(Link {
                target: target.clone(),
                inode: *inode,
                attributes: *attributes,
                charges: charges.each_ref().map(|charge| charge.copy(&self.budget)),
            }),
            Node::Lower(Lower { path, attributes, charge }) => Node::Lower(Lower {
                path: path.clone(),
                attributes: *attributes,
                charge: charge.copy(&self.budget),
            }),
            Node::Removed(charge) => Node::Removed(charge.copy(&self.budget)),
        })
    }
}

impl Contents {
    fn copy(&self, budget: &Arc<Budget>) -> Self {
        Self {
            bytes: self.bytes.copy(budget),
            attributes: self.attributes,
            charge: self.charge.copy(budget),
        }
    }
}

impl Shared {
    /// Copies the overlay.
    pub(super) fn copy(&self) -> Result<VolumeCopy, FileError> {
        // Locked first, so that nothing is charged between the copies of budget and tree.
        let state = self.lock();
        let budget = self.budget.copy();
        let files = Files { budget: Arc::clone(&budget), copies: Mutex::default() };
        let opened = state.opened.iter().filter_map(|OpenLower { place, file }| {
            let file = file.upgrade()?;
            Some(files.copy(&file).map(|file| (place.clone(), file)))
        });
        let opened: Vec<_> = opened.collect::<Result<_, _>>()?;
        let opened = opened
            .into_iter()
            .map(|(place, file)| OpenLower { place, file: Arc::downgrade(&file) })
            .collect();
        let copied = State { root: files.directory(&state.root)?, opened };
        let shared = Arc::new(Self {
            lower: self.lower.clone(),
            budget,
            inodes: Arc::clone(&self.inodes),
            mount: self.mount,
            made: AtomicU64::new(self.made.load(Ordering::Relaxed)),
            state: Mutex::new(copied),
        });
        let overlay = Arc::new(Overlay(Arc::clone(&shared)));
        Ok(VolumeCopy {
            volume: Arc::clone(&overlay) as _,
            overlay: Some(overlay),
            files: FileCopies::Overlay(OverlayCopy { shared, files }),
        })
    }
}

impl OverlayHandle {
    /// Copies the handle, to the copy of its file.
    pub(super) fn copy(&self, copies: Option<&FileCopies>) -> Result<Box<dyn OpenFile>, FileError> {
        let Some(FileCopies::Overlay(copy)) = copies else { return Err(FileError::Io) };
        Ok(Box::new(Self::new(Arc::clone(&copy.shared), copy.files.copy(&self.file)?)))
    }
}
