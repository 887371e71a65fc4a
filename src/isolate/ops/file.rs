//! Ops for files beneath mount points. A negative result is an error number of Emscripten's.

use deno_core::{OpState, op2};

use crate::fs::{FileError, FileKind, FileReply, FileRequest, FileStat, OpenFlags};
use crate::isolate::ops::OpError;
use crate::isolate::state::State;
use crate::protocol::{HostReply, HostRequest};

/// The maximum length of the list of mount points: a thousand of the longest paths.
const MAX_PATHS_BYTES: usize = 4 << 20;

const ACCESS: u32 = 0o3;
const WRITE_ONLY: u32 = 0o1;
const READ_WRITE: u32 = 0o2;
const CREATE: u32 = 0o100;
const EXCLUSIVE: u32 = 0o200;
const APPEND: u32 = 0o2000;

/// Returns the guest paths of the mounts, in the order of their numbers.
#[op2]
#[serde]
pub(crate) fn op_isolet_mount_points(state: &OpState) -> Vec<String> {
    match state.borrow::<State>().host.call(HostRequest::MountPoints) {
        HostReply::MountPoints(paths) => paths,
        _ => Vec::new(),
    }
}

/// Returns the paths that these bytes contain, each ending with NUL.
#[op2]
#[serde]
pub(crate) fn op_isolet_paths(#[buffer] bytes: &[u8]) -> Result<Vec<String>, OpError> {
    if bytes.len() > MAX_PATHS_BYTES {
        return Err(OpError::TooLarge { got: bytes.len(), limit: MAX_PATHS_BYTES });
    }
    let paths = bytes.split(|&byte| byte == 0).filter(|path| !path.is_empty());
    Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
}

/// Describes the file at a path. A link is not followed.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_stat_at(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[buffer] target: &mut [u8],
) -> i32 {
    described(ask(state, FileRequest::Stat { mount, path: &path }), target)
}

/// Describes an open file.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_stat(
    state: &OpState,
    #[smi] file: u32,
    #[buffer] target: &mut [u8],
) -> i32 {
    described(ask(state, FileRequest::StatFile { file }), target)
}

/// Opens a file and returns its handle.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_open(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[smi] flags: u32,
) -> i32 {
    let access = flags & ACCESS;
    let flags = OpenFlags {
        read: access != WRITE_ONLY,
        write: access == WRITE_ONLY || access == READ_WRITE,
        create: flags & CREATE != 0,
        exclusive: flags & EXCLUSIVE != 0,
        truncate: false,
        append: flags & APPEND != 0,
    };
    match ask(state, FileRequest::Open { mount, path: &path, flags }) {
        Ok(FileReply::File(file)) => i32::try_from(file).unwrap_or(i32::MAX),
        other => number(&other),
    }
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_close(state: &OpState, #[smi] file: u32) -> i32 {
    number(&ask(state, FileRequest::Close { file }))
}

/// Reads at an offset. Returns the number of bytes read.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_read(
    state: &OpState,
    #[smi] file: u32,
    #[number] offset: u64,
    #[buffer] into: &mut [u8],
) -> i32 {
    match state.borrow::<State>().host.read_file(file, offset, into) {
        Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
        Err(error) => -error.errno(),
    }
}

/// Writes at an offset, or at the end of a file opened for appending. Returns the number of bytes
/// written.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_write(
    state: &OpState,
    #[smi] file: u32,
    #[number] offset: u64,
    #[buffer] bytes: &[u8],
) -> i32 {
    number(&ask(state, FileRequest::Write { file, offset, bytes }))
}

/// Tells the host of a file that the guest has written, by its path in the guest.
#[op2(fast)]
pub(crate) fn op_isolet_file_written(state: &OpState, #[string] path: String, #[number] size: u64) {
    state.borrow::<State>().host.call(HostRequest::FileWritten { path: &path, size });
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_resize(state: &OpState, #[smi] file: u32, #[number] size: u64) -> i32 {
    number(&ask(state, FileRequest::SetFileSize { file, size }))
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_resize_at(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[number] size: u64,
) -> i32 {
    number(&ask(state, FileRequest::SetSize { mount, path: &path, size }))
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_sync(state: &OpState, #[smi] file: u32) -> i32 {
    number(&ask(state, FileRequest::Sync { file }))
}

/// Lists a directory. Returns an error number or 0, and the names.
#[op2]
#[serde]
pub(crate) fn op_isolet_file_list(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
) -> (i32, Vec<String>) {
    match ask(state, FileRequest::List { mount, path: &path }) {
        Ok(FileReply::Names(names)) => (0, names),
        other => (number(&other), Vec::new()),
    }
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_make_directory(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[smi] mode: u32,
) -> i32 {
    number(&ask(state, FileRequest::MakeDirectory { mount, path: &path, mode }))
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_remove_directory(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
) -> i32 {
    number(&ask(state, FileRequest::RemoveDirectory { mount, path: &path }))
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_remove(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
) -> i32 {
    number(&ask(state, FileRequest::Remove { mount, path: &path }))
}

#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_rename(
    state: &OpState,
    #[smi] mount: u32,
    #[string] from: String,
    #[string] to: String,
) -> i32 {
    number(&ask(state, FileRequest::Rename { mount, from: &from, to: &to }))
}

/// Creates a symbolic link.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_link(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[string] target: String,
) -> i32 {
    number(&ask(state, FileRequest::MakeLink { mount, path: &path, target: &target }))
}

/// Reads a symbolic link. Returns an error number or 0, and the target.
#[op2]
#[serde]
pub(crate) fn op_isolet_file_read_link(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
) -> (i32, String) {
    match ask(state, FileRequest::ReadLink { mount, path: &path }) {
        Ok(FileReply::Target(target)) => (0, target),
        other => (number(&other), String::new()),
    }
}

/// Sets the times of a file, in milliseconds since 1970.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_times(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    accessed_ms: f64,
    modified_ms: f64,
) -> i32 {
    number(&ask(state, FileRequest::SetTimes { mount, path: &path, accessed_ms, modified_ms }))
}

/// Sets the permission bits of a file.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_file_mode(
    state: &OpState,
    #[smi] mount: u32,
    #[string] path: String,
    #[smi] mode: u32,
) -> i32 {
    number(&ask(state, FileRequest::SetMode { mount, path: &path, mode }))
}

fn ask(state: &OpState, request: FileRequest<'_>) -> Result<FileReply, FileError> {
    match state.borrow::<State>().host.call(HostRequest::File(request)) {
        HostReply::File(reply) => reply,
        _ => Err(FileError::Io),
    }
}

/// Returns the count in a reply, 0 if it has none, or the negative error number.
fn number(reply: &Result<FileReply, FileError>) -> i32 {
    match reply {
        Ok(FileReply::Count(count)) => i32::try_from(*count).unwrap_or(i32::MAX),
        Ok(_) => 0,
        Err(error) => -error.errno(),
    }
}

/// Writes a reply's description of a file to the guest's array of seven numbers.
fn described(reply: Result<FileReply, FileError>, target: &mut [u8]) -> i32 {
    match reply {
        Ok(FileReply::Stat(stat)) => {
            for (slot, number) in target.as_chunks_mut::<8>().0.iter_mut().zip(numbers(&stat)) {
                *slot = number.to_ne_bytes();
            }
            0
        }
        other => number(&other),
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes and inodes are below 2^53")]
fn numbers(stat: &FileStat) -> [f64; 7] {
    let kind = match stat.kind {
        FileKind::File => 0.0,
        FileKind::Directory => 1.0,
        FileKind::Link => 2.0,
    };
    [
        kind,
        f64::from(stat.mode),
        stat.size as f64,
        stat.modified_ms,
        stat.accessed_ms,
        stat.changed_ms,
        stat.inode as f64,
    ]
}
