//! `FileSystem`: one session's view of its mounts.

use std::path::Path;
use std::sync::Arc;

use super::budget::Budget;
use super::error::{Denial, FileError};
use super::events::FileEvent;
use super::handles::{Handle, Handles};
use super::host_tree::HostTree;
use super::inodes::Inodes;
use super::limits::FileLimits;
use super::mount::{Mount, MountMode};
use super::overlay::{ExportDirectory, FileChange, Overlay, SavedOverlay};
use super::path::{RelativePath, check_target, join};
use super::read_only::ReadOnly;
use super::read_write::ReadWrite;
use super::request::{FileReply, FileRequest, OpenFlags, Subject};
use super::root::config;
use super::table::{MountTable, Source};
use super::tree_volume::TreeVolume;
use super::volume::{AbsentVolume, LostFile, Times, Volume, VolumeCopy};
use crate::data::error::Error;
use crate::data::shown::shown;

/// One session's view of its mounts: its open files, its overlays and how much of the quotas it has
/// used.
pub(crate) struct FileSystem {
    mounts: Vec<Mounted>,
    handles: Handles,
    inodes: Arc<Inodes>,
    limits: FileLimits,
    events: Arc<dyn Fn(FileEvent) + Send + Sync>,
    gate: Arc<dyn Fn() -> bool + Send + Sync>,
}

struct Mounted {
    guest: String,
    place: Place,
    volume: Arc<dyn Volume>,
    /// The same volume as an overlay, if it is one.
    overlay: Option<Arc<Overlay>>,
}

/// Where a request goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// To files that the host has made, such as those of packages.
    Tree,
    /// To a directory of the host that the guest may not change.
    ReadOnly,
    /// To one that it may change.
    ReadWrite,
    /// To one whose changes only the session has.
    Overlay,
    /// There is no such mount, and no such open file.
    Nowhere,
}

impl Place {
    fn of(source: &Source) -> Self {
        match source {
            Source::Tree(_) => Self::Tree,
            Source::Absent => Self::Nowhere,
            Source::Host(mount) => match mount.mode() {
                MountMode::ReadOnly => Self::ReadOnly,
                MountMode::ReadWrite => Self::ReadWrite,
                MountMode::Overlay => Self::Overlay,
            },
        }
    }
}

/// A request about paths, in the form that its event needs.
struct Asked<'a> {
    operation: &'static str,
    mount: u32,
    path: &'a str,
    /// Set if its success is an event too.
    is_reported: bool,
    /// The text for an event of its success.
    detail: String,
}

impl FileSystem {
    /// Makes a session's view of these mounts. File events go to `events`.
    pub(crate) fn new(
        mounts: &MountTable,
        limits: FileLimits,
        events: Arc<dyn Fn(FileEvent) + Send + Sync>,
    ) -> Self {
        let inodes = Arc::new(Inodes::default());
        let mounts = mounts.entries().iter().zip(0..).map(|(entry, number)| {
            let inodes = Arc::clone(&inodes);
            let (volume, overlay): (Arc<dyn Volume>, _) = match &entry.source {
                Source::Tree(tree) => {
                    (Arc::new(TreeVolume::new(Arc::clone(tree), inodes, number)), None)
                }
                Source::Host(mount) => volume(mount, number, inodes, &limits),
                Source::Absent => (Arc::new(AbsentVolume), None),
            };
            Mounted { guest: entry.guest.clone(), place: Place::of(&entry.source), volume, overlay }
        });
        let mounts = mounts.collect();
        let (handles, gate) = (Handles::new(limits.open_files), open_gate());
        Self { mounts, handles, inodes, limits, events, gate }
    }

    /// Has `gate` be asked before what is an event if it succeeds. What it does not let pass is
    /// denied: it could not be reported.
    pub(crate) fn gated(self, gate: Arc<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { gate, ..self }
    }

    /// Makes the view of a copy of the session, whose mounts are the same. Trees are those of
    /// `mounts`.
    pub(crate) fn copy(
        &self,
        mounts: &MountTable,
        events: Arc<dyn Fn(FileEvent) + Send + Sync>,
    ) -> Result<Self, FileError> {
        let mut copies = Vec::with_capacity(self.mounts.len());
        let mounts = self.mounts.iter().zip(mounts.entries()).zip(0..);
        let mounts = mounts.map(|((mounted, entry), number)| {
            let (guest, place) = (mounted.guest.clone(), mounted.place);
            if let Source::Tree(tree) = &entry.source {
                let (tree, inodes) = (Arc::clone(tree), Arc::clone(&self.inodes));
                copies.push(None);
                let volume = Arc::new(TreeVolume::new(tree, inodes, number));
                return Ok(Mounted { guest, place, volume, overlay: None });
            }
            let Some(VolumeCopy { volume, overlay, files }) = mounted.volume.copy()? else {
                copies.push(None);
                let volume = Arc::clone(&mounted.volume);
                return Ok(Mounted { guest, place, volume, overlay: None });
            };
            copies.push(Some(files));
            Ok(Mounted { guest, place, volume, overlay })
        });
        let mounts = mounts.collect::<Result<_, FileError>>()?;
        let handles = self.handles.copy(|handle| {
            let mount = usize::try_from(handle.mount).ok();
            handle.file.copy(mount.and_then(|mount| copies.get(mount)?.as_ref()))
        })?;
        let (inodes, limits) = (Arc::clone(&self.inodes), self.limits.clone());
        Ok(Self { mounts, handles, inodes, limits, events, gate: open_gate() })
    }

    /// Makes the view of the session after its interpreter has ended: nothing is open, overlays
    /// have no changes, and what was used of the quotas of read-write mounts stays used. Trees are
    /// those of `mounts`.
    pub(crate) fn revived(
        &self,
        mounts: &MountTable,
        events: Arc<dyn Fn(FileEvent) + Send + Sync>,
    ) -> Self {
        let (inodes, limits) = (Arc::clone(&self.inodes), self.limits.clone());
        let mounts = self.mounts.iter().zip(mounts.entries()).zip(0..);
        let mounts = mounts.map(|((mounted, entry), number)| {
            let inodes = Arc::clone(&inodes);
            let (volume, overlay): (Arc<dyn Volume>, _) = match &entry.source {
                Source::Tree(tree) => {
                    (Arc::new(TreeVolume::new(Arc::clone(tree), inodes, number)), None)
                }
                Source::Host(mount) if mounted.overlay.is_some() => {
                    volume(mount, number, inodes, &limits)
                }
                Source::Host(_) | Source::Absent => (Arc::clone(&mounted.volume), None),
            };
            Mounted { guest: mounted.guest.clone(), place: mounted.place, volume, overlay }
        });
        let mounts = mounts.collect();
        let handles = Handles::new(limits.open_files);
        Self { mounts, handles, inodes, limits, events, gate: open_gate() }
    }

    /// Reads from an open file at an offset, at most as many bytes as fit. Returns the number of
    /// bytes read.
    pub(crate) fn read(&self, file: u32, offset: u64, into: &mut [u8]) -> Result<u32, FileError> {
        let handle = self.handles.get(file)?;
        if !handle.read {
            return Err(FileError::BadHandle);
        }
        Ok(u32::try_from(handle.file.read(offset, into)?).unwrap_or(u32::MAX))
    }

    /// Carries out a request.
    pub(crate) fn call(&self, request: FileRequest<'_>) -> Result<FileReply, FileError> {
        match request {
            FileRequest::StatFile { file } => {
                Ok(FileReply::Stat(self.handles.get(file)?.file.stat()?))
            }
            FileRequest::Write { file, offset, bytes } => {
                let handle = self.writable(file)?;
                let offset = (!handle.append).then_some(offset);
                let written = handle.file.write(offset, bytes);
                let written = self.report("write", &handle.path, false, written)?;
                Ok(FileReply::Count(u32::try_from(written).unwrap_or(u32::MAX)))
            }
            FileRequest::SetFileSize { file, size } => {
                let handle = self.writable(file)?;
                let set = self.check_loggable().and_then(|()| handle.file.set_size(size));
                self.report("truncate", &handle.path, true, set)?;
                Ok(FileReply::Done)
            }
            FileRequest::Sync { file } => {
                self.handles.get(file)?.file.sync()?;
                Ok(FileReply::Done)
            }
            FileRequest::Close { file } => {
                self.handles.close(file)?;
                Ok(FileReply::Done)
            }
            FileRequest::Open { mount, path, flags } => self.open(mount, path, flags),
            other => self.at_path(&other),
        }
    }

    /// Returns where a request goes.
    pub(crate) fn place(&self, request: &FileRequest<'_>) -> Place {
        match request.subject() {
            Subject::Mount(mount) => self.mounted(mount).map_or(Place::Nowhere, |it| it.place),
            Subject::File(file) => self.place_of(file),
        }
    }

    /// Returns where an open file is.
    pub(crate) fn place_of(&self, file: u32) -> Place {
        let mounted = self.handles.get(file).ok().and_then(|handle| self.mounted(handle.mount));
        mounted.map_or(Place::Nowhere, |mounted| mounted.place)
    }

    /// Does of a request of a session that is replayed what only this view of the mounts has:
    /// changes in overlays, and which files are open. `file` is the number of the file that was
    /// opened. It may be gone or not be allowed any more: then it is there, and all that is done
    /// with it fails.
    pub(crate) fn follow(&self, request: FileRequest<'_>, file: Option<u32>) {
        let place = self.place(&request);
        match (request, file) {
            (FileRequest::Open { mount, path, flags }, Some(file)) => {
                let is_overlay = place == Place::Overlay;
                let flags = OpenFlags {
                    exclusive: false,
                    create: flags.create && is_overlay,
                    truncate: flags.truncate && is_overlay,
                    ..flags
                };
                let handle = self.opened(mount, path, flags).map(|(handle, _)| handle);
                let lost = |_| Handle {
                    file: Box::new(LostFile),
                    mount,
                    path: self.shown(mount, path),
                    read: flags.read,
                    write: flags.write,
                    append: flags.append,
                };
                // Fails only if the journal has more open files than a session may have.
                let _ = self.handles.put(file, handle.unwrap_or_else(lost));
            }
            (FileRequest::Open { .. }, None) => {}
            (request @ FileRequest::Close { .. }, _) => _ = self.call(request),
            (request, _) if request.is_change() && place == Place::Overlay => {
                // What came of it then counts.
                let _ = self.call(request);
            }
            _ => {}
        }
    }

    /// Returns `true` if mount `mount` is an overlay.
    pub(crate) fn is_overlay(&self, mount: usize) -> bool {
        self.mounts.get(mount).is_some_and(|mounted| mounted.overlay.is_some())
    }

    /// Returns the guest's changes in the overlay `mount`, sorted by path; empty for other mounts.
    /// The contents of moved directories are included up to the limit of listings.
    pub(crate) fn changes(&self, mount: usize) -> Vec<FileChange> {
        let Some(mounted) = self.mounts.get(mount) else {
            return Vec::new();
        };
        mounted.overlay.as_ref().map_or_else(Vec::new, |overlay| overlay.changes(&mounted.guest))
    }

    /// Opens a directory of the host to which the overlay `mount` can be exported. It is created,
    /// or must be empty.
    pub(crate) fn open_export(
        &self,
        mount: usize,
        target: &Path,
    ) -> Result<ExportDirectory, Error> {
        self.overlay(mount)?.open_export(target)
    }

    /// Writes the files that the guest changed in the overlay `mount` to a directory of the host,
    /// which must be empty. Returns how many. Files get the permissions 0600, directories 0700.
    /// Links are written only if their targets contain no `..`.
    pub(crate) fn export(&self, mount: usize, target: &ExportDirectory) -> Result<u64, Error> {
        self.overlay(mount)?.export(target)
    }

    /// Describes the guest's changes in each overlay that has any, by guest path.
    pub(crate) fn save(&self) -> Vec<(String, SavedOverlay)> {
        let overlays = self.mounts.iter().filter_map(|mounted| {
            let saved = mounted.overlay.as_ref()?.save();
            (!saved.is_empty()).then(|| (mounted.guest.clone(), saved))
        });
        overlays.collect()
    }

    /// Makes these changes in the overlay at a guest path. Fails if there is no overlay there.
    pub(crate) fn restore(&self, guest: &str, saved: SavedOverlay) -> Result<(), Error> {
        let mounted = self.mounts.iter().find(|mounted| mounted.guest == guest);
        let Some(overlay) = mounted.and_then(|mounted| mounted.overlay.as_ref()) else {
            return Err(no_overlay(guest));
        };
        overlay.restore(saved).map_err(|error| {
            config(format!("the files of the saved session beneath `{guest}`: {error}"))
        })
    }

    fn overlay(&self, mount: usize) -> Result<&Overlay, Error> {
        let overlay = self.mounts.get(mount).and_then(|mounted| mounted.overlay.as_deref());
        overlay.ok_or_else(|| config(format!("mount {mount} is no overlay to export")))
    }

    fn open(&self, mount: u32, path: &str, flags: OpenFlags) -> Result<FileReply, FileError> {
        let opened = self.check_loggable().and_then(|()| self.opened(mount, path, flags));
        let created = flags.create && opened.as_ref().map_or(true, |(_, created)| *created);
        let operation = if created { "create" } else { "open" };
        let (handle, _) = self.report(operation, &self.shown(mount, path), true, opened)?;
        Ok(FileReply::File(self.handles.add(handle)?))
    }

    fn opened(
        &self,
        mount: u32,
        path: &str,
        flags: OpenFlags,
    ) -> Result<(Handle, bool), FileError> {
        if !flags.write && (flags.truncate || !flags.read) {
            return Err(FileError::Invalid);
        }
        self.handles.check_room()?;
        let parsed = RelativePath::parse(path, &self.limits)?;
        let opened = self.volume(mount)?.open(parsed, flags)?;
        let (read, write) = (flags.read, flags.write);
        let append = flags.write && flags.append;
        let path = self.shown(mount, path);
        Ok((Handle { file: opened.file, mount, path, read, write, append }, opened.created))
    }

    fn at_path(&self, request: &FileRequest<'_>) -> Result<FileReply, FileError> {
        let asked = asked(request);
        let passed = if asked.is_reported { self.check_loggable() } else { Ok(()) };
        let reply = passed.and_then(|()| self.answer(request));
        match &reply {
            Err(error) if error.is_denial() => (self.events)(FileEvent::denied(
                asked.operation,
                self.shown(asked.mount, asked.path),
                *error,
            )),
            Ok(_) if asked.is_reported => (self.events)(FileEvent::allowed(
                asked.operation,
                self.shown(asked.mount, asked.path),
                asked.detail,
            )),
            _ => {}
        }
        reply
    }

    fn answer(&self, request: &FileRequest<'_>) -> Result<FileReply, FileError> {
        let parse = |path| RelativePath::parse(path, &self.limits);
        let done = |()| FileReply::Done;
        match *request {
            FileRequest::Stat { mount, path } => {
                self.volume(mount)?.stat(parse(path)?).map(FileReply::Stat)
            }
            FileRequest::List { mount, path } => {
                self.volume(mount)?.list(parse(path)?).map(FileReply::Names)
            }
            FileRequest::ReadLink { mount, path } => {
                let path = parse(path)?;
                let target = self.volume(mount)?.read_link(path)?;
                check_target(path, &target, &self.limits)?;
                Ok(FileReply::Target(target))
            }
            FileRequest::SetSize { mount, path, size } => {
                self.volume(mount)?.set_size(parse(path)?, size).map(done)
            }
            FileRequest::MakeDirectory { mount, path, mode } => {
                self.volume(mount)?.make_directory(parse(path)?, mode).map(done)
            }
            FileRequest::RemoveDirectory { mount, path } => {
                self.volume(mount)?.remove_directory(parse(path)?).map(done)
            }
            FileRequest::Remove { mount, path } => {
                self.volume(mount)?.remove(parse(path)?).map(done)
            }
            FileRequest::Rename { mount, from, to } => {
                self.volume(mount)?.rename(parse(from)?, parse(to)?).map(done)
            }
            FileRequest::MakeLink { mount, path, target } => {
                let path = parse(path)?;
                check_target(path, target, &self.limits)?;
                self.volume(mount)?.make_link(path, target).map(done)
            }
            FileRequest::SetTimes { mount, path, accessed_ms, modified_ms } => {
                let times = Times::new(accessed_ms, modified_ms)?;
                self.volume(mount)?.set_times(parse(path)?, times).map(done)
            }
            FileRequest::SetMode { mount, path, mode } => {
                self.volume(mount)?.set_mode(parse(path)?, mode).map(done)
            }
            // Requests about open files were handled above.
            _ => Err(FileError::Invalid),
        }
    }

    /// Fails if an access that is reported once it has succeeded could not be logged.
    fn check_loggable(&self) -> Result<(), FileError> {
        if (self.gate)() { Ok(()) } else { Err(Denial::Unlogged.into()) }
    }

    /// Reports the event of a result, if it has one.
    fn report<T>(
        &self,
        operation: &'static str,
        path: &str,
        is_reported: bool,
        result: Result<T, FileError>,
    ) -> Result<T, FileError> {
        match &result {
            Err(error) if error.is_denial() => {
                (self.events)(FileEvent::denied(operation, path.to_owned(), *error));
            }
            Ok(_) if is_reported => {
                (self.events)(FileEvent::allowed(operation, path.to_owned(), String::new()));
            }
            _ => {}
        }
        result
    }

    fn writable(&self, file: u32) -> Result<Arc<Handle>, FileError> {
        let handle = self.handles.get(file)?;
        if handle.write { Ok(handle) } else { Err(FileError::BadHandle) }
    }

    pub(super) fn handle(&self, file: u32) -> Result<Arc<Handle>, FileError> {
        self.handles.get(file)
    }

    pub(super) fn limits(&self) -> &FileLimits {
        &self.limits
    }

    pub(super) fn volume(&self, mount: u32) -> Result<&dyn Volume, FileError> {
        self.mounted(mount).map(|mounted| &*mounted.volume).ok_or(FileError::NotFound)
    }

    fn mounted(&self, mount: u32) -> Option<&Mounted> {
        self.mounts.get(usize::try_from(mount).ok()?)
    }

    /// Returns a path as the guest sees it, truncated to the maximum length of a path.
    fn shown(&self, mount: u32, path: &str) -> String {
        let guest = self.mounted(mount).map_or("?", |mounted| &mounted.guest);
        join(guest, cut(path, &self.limits))
    }
}

/// Returns the gate that lets everything pass.
fn open_gate() -> Arc<dyn Fn() -> bool + Send + Sync> {
    Arc::new(|| true)
}

/// Returns a request's name and path, and whether its success is an event.
fn asked<'a>(request: &FileRequest<'a>) -> Asked<'a> {
    let (operation, mount, path, is_reported) = match *request {
        FileRequest::Stat { mount, path } => ("stat", mount, path, false),
        FileRequest::List { mount, path } => ("list", mount, path, false),
        FileRequest::ReadLink { mount, path } => ("read link", mount, path, false),
        FileRequest::SetTimes { mount, path, .. } => ("set times", mount, path, false),
        FileRequest::SetMode { mount, path, .. } => ("set mode", mount, path, false),
        FileRequest::SetSize { mount, path, .. } => ("truncate", mount, path, true),
        FileRequest::MakeDirectory { mount, path, .. } => ("create", mount, path, true),
        FileRequest::RemoveDirectory { mount, path } | FileRequest::Remove { mount, path } => {
            ("remove", mount, path, true)
        }
        FileRequest::Rename { mount, from, .. } => ("rename", mount, from, true),
        FileRequest::MakeLink { mount, path, .. } => ("link", mount, path, true),
        _ => ("file", u32::MAX, "", false),
    };
    // Used only after the request has succeeded, which means that its second path is valid.
    let detail = match *request {
        FileRequest::Rename { to, .. } => format!("to {to}"),
        FileRequest::MakeLink { target, .. } => format!("to {target}"),
        _ => String::new(),
    };
    Asked { operation, mount, path, is_reported, detail }
}

fn cut<'a>(path: &'a str, limits: &FileLimits) -> &'a str {
    let limit = usize::try_from(limits.path_bytes).unwrap_or(usize::MAX);
    path.get(..path.floor_char_boundary(limit)).unwrap_or_default()
}

fn volume(
    mount: &Mount,
    number: u64,
    inodes: Arc<Inodes>,
    limits: &FileLimits,
) -> (Arc<dyn Volume>, Option<Arc<Overlay>>) {
    let (bytes, files) = mount.quotas();
    let budget = || Arc::new(Budget::new(bytes, files, limits.overlay_marks));
    let tree = HostTree::new(Arc::clone(mount.root()), Arc::clone(&inodes), limits.clone());
    match mount.mode() {
        MountMode::ReadOnly => (Arc::new(ReadOnly::new(tree)), None),
        MountMode::ReadWrite => (Arc::new(ReadWrite::new(tree, budget())), None),
        MountMode::Overlay => {
            let overlay = Arc::new(Overlay::new(tree, budget(), inodes, number));
            (Arc::clone(&overlay) as Arc<dyn Volume>, Some(overlay))
        }
    }
}

/// Returns the error for a saved session with an overlay that the sandbox does not have.
pub(crate) fn no_overlay(guest: &str) -> Error {
    let message = format!(
        "the saved session has changed files in an overlay at `{}`, and the sandbox has none there",
        shown(guest)
    );
    config(message).with_hint("mount the same directory with `Mount::overlay`")
}
