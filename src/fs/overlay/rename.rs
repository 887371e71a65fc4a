//! Renames in an overlay. They copy nothing: a moved entry still shows the host's contents.

use super::super::budget::Resource;
use super::super::error::FileError;
use super::super::path::{RelativePath, join, rest_beneath};
use super::super::request::FileKind;
use super::Shared;
use super::attributes::Attributes;
use super::node::{Directory, Lower, Node};
use super::state::State;

impl State {
    pub(super) fn rename(
        &mut self,
        shared: &Shared,
        from: RelativePath<'_>,
        to: RelativePath<'_>,
    ) -> Result<(), FileError> {
        let kind = self.stat(shared, from)?.kind;
        let (from_parent, from_name) = from.split().ok_or(FileError::Busy)?;
        let (to_parent, to_name) = to.split().ok_or(FileError::Busy)?;
        if from == to {
            return Ok(());
        }
        if self.stat(shared, to_parent)?.kind != FileKind::Directory {
            return Err(FileError::NotDirectory);
        }
        if to.is_beneath(from) {
            return Err(FileError::Invalid);
        }
        if from.is_beneath(to) {
            return Err(FileError::NotEmpty);
        }
        self.check_replaced(shared, kind, to)?;

        // All steps that can fail come before the first change.
        self.directory_mut(shared, to_parent)?;
        let directory = self.directory_mut(shared, from_parent)?;
        let mark = if Self::shows_through(shared, directory, from_name)? {
            Some(shared.budget.charge(Resource::Marks, 1)?)
        } else {
            None
        };
        let node = match directory.children.remove(from_name) {
            Some(node) => {
                if let Err(error) = check_height(shared, &node, to) {
                    directory.children.insert(from_name.to_owned(), node);
                    return Err(error);
                }
                node
            }
            None => of_host(shared, directory, from_name, kind)?,
        };
        if let Some(mark) = mark {
            directory.children.insert(from_name.to_owned(), Node::Removed(mark));
        }
        directory.attributes.touch();
        self.directory_mut(shared, to_parent)?.insert(to_name, node);
        self.displace(to);
        self.follow(from, to);
        Ok(())
    }

    /// Checks that an entry of this kind may replace what is at a path.
    fn check_replaced(
        &self,
        shared: &Shared,
        kind: FileKind,
        path: RelativePath<'_>,
    ) -> Result<(), FileError> {
        let Some(replaced) = self.stat_if_any(shared, path)? else {
            return Ok(());
        };
        match (kind, replaced.kind) {
            (FileKind::Directory, FileKind::Directory) => {
                if self.list(shared, path)?.is_empty() {
                    Ok(())
                } else {
                    Err(FileError::NotEmpty)
                }
            }
            (FileKind::Directory, _) => Err(FileError::NotDirectory),
            (_, FileKind::Directory) => Err(FileError::IsDirectory),
            _ => Ok(()),
        }
    }

    /// Updates the paths of open host files after a rename.
    fn follow(&mut self, from: RelativePath<'_>, to: RelativePath<'_>) {
        for open in &mut self.opened {
            let Some(place) = open.place.as_deref() else {
                continue;
            };
            if place == from.as_str() {
                open.place = Some(to.as_str().to_owned());
            } else if let Some(rest) = rest_beneath(place, from.as_str()) {
                open.place = Some(join(to.as_str(), rest));
            }
        }
    }
}

/// Checks that no part of a moved node becomes too deep.
fn check_height(shared: &Shared, node: &Node, to: RelativePath<'_>) -> Result<(), FileError> {
    let height = node.as_directory().map_or(0, Directory::height);
    let (limit, needed) = (shared.lower.limits().depth, to.depth() + height);
    if needed > limit { Err(FileError::TooDeep { limit, needed }) } else { Ok(()) }
}

/// Makes the node of a host entry that is about to be moved.
fn of_host(
    shared: &Shared,
    directory: &Directory,
    name: &str,
    kind: FileKind,
) -> Result<Node, FileError> {
    let path = directory.lower_at(name).ok_or(FileError::NotFound)?;
    let charge = shared.budget.charge(Resource::Marks, 1)?;
    Ok(match kind {
        FileKind::Directory => Node::Directory(Directory::of_host(path, charge)),
        FileKind::File | FileKind::Link => {
            Node::Lower(Lower { path, attributes: Attributes::default(), charge })
        }
    })
}
