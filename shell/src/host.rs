//! What the module imports. `lib.rs` says what each function does.

use std::io;

/// Why a function of the host failed, and the text that tools print for it.
///
/// The numbers are Linux's. `std` knows none on this target.
fn error(errno: i32) -> io::Error {
    use io::ErrorKind as Kind;
    let (kind, text) = match errno {
        1 => (Kind::PermissionDenied, "Operation not permitted"),
        2 => (Kind::NotFound, "No such file or directory"),
        13 => (Kind::PermissionDenied, "Permission denied"),
        17 => (Kind::AlreadyExists, "File exists"),
        18 => (Kind::CrossesDevices, "Invalid cross-device link"),
        20 => (Kind::NotADirectory, "Not a directory"),
        // bashkit looks for this text in small letters.
        21 => (Kind::IsADirectory, "is a directory"),
        22 => (Kind::InvalidInput, "Invalid argument"),
        26 => (Kind::ExecutableFileBusy, "Text file busy"),
        27 => (Kind::FileTooLarge, "File too large"),
        28 => (Kind::StorageFull, "No space left on device"),
        30 => (Kind::ReadOnlyFilesystem, "Read-only file system"),
        36 => (Kind::InvalidFilename, "File name too long"),
        38 | 95 => (Kind::Unsupported, "Operation not supported"),
        39 => (Kind::DirectoryNotEmpty, "Directory not empty"),
        40 => (Kind::Other, "Too many levels of symbolic links"),
        122 => (Kind::QuotaExceeded, "Disk quota exceeded"),
        _ => (Kind::Other, "Input/output error"),
    };
    io::Error::new(kind, text)
}

/// What a call gave: a number that is not negative, or the error.
pub(crate) fn check(result: i32) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| error(result.saturating_neg()))
}

/// The bytes that the last call has kept for us.
pub(crate) fn taken(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    // SAFETY: the host writes `length` bytes, which it named itself.
    unsafe { take(bytes.as_mut_ptr()) };
    bytes
}

#[link(wasm_import_module = "isolet")]
unsafe extern "C" {
    pub(crate) fn read_file(path: *const u8, path_len: usize) -> i32;
    pub(crate) fn write_file(path: *const u8, path_len: usize, at: *const u8, len: usize) -> i32;
    pub(crate) fn append_file(path: *const u8, path_len: usize, at: *const u8, len: usize) -> i32;
    pub(crate) fn mkdir(path: *const u8, path_len: usize, parents: u32) -> i32;
    pub(crate) fn remove(path: *const u8, path_len: usize, tree: u32) -> i32;
    pub(crate) fn stat(path: *const u8, path_len: usize, stat: *mut u8) -> i32;
    pub(crate) fn read_dir(path: *const u8, path_len: usize) -> i32;
    pub(crate) fn rename(from: *const u8, from_len: usize, to: *const u8, to_len: usize) -> i32;
    pub(crate) fn copy(from: *const u8, from_len: usize, to: *const u8, to_len: usize) -> i32;
    pub(crate) fn symlink(to: *const u8, to_len: usize, link: *const u8, link_len: usize) -> i32;
    pub(crate) fn link(to: *const u8, to_len: usize, link: *const u8, link_len: usize) -> i32;
    pub(crate) fn read_link(path: *const u8, path_len: usize) -> i32;
    pub(crate) fn chmod(path: *const u8, path_len: usize, mode: u32) -> i32;
    pub(crate) fn set_modified_time(path: *const u8, path_len: usize, micros: f64) -> i32;
    fn take(at: *mut u8);
    fn write(session: u32, descriptor: u32, at: *const u8, len: usize);
    fn now_micros() -> f64;
    fn random(at: *mut u8, len: usize);
    fn grow(pages: usize) -> i32;
}

/// Output of a session, as it comes.
pub(crate) fn output(session: u32, descriptor: u32, bytes: &[u8]) {
    if !bytes.is_empty() {
        // SAFETY: the host reads the bytes during the call.
        unsafe { write(session, descriptor, bytes.as_ptr(), bytes.len()) }
    }
}

/// Microseconds since 1970.
pub(crate) fn now() -> u64 {
    // SAFETY: it takes and returns a number.
    let micros = unsafe { now_micros() };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    {
        micros as u64
    }
}

/// Grows the memory by pages; returns how many there were.
pub(crate) fn grown(pages: usize) -> Option<usize> {
    // SAFETY: it takes and returns a number.
    usize::try_from(unsafe { grow(pages) }).ok()
}

/// bashkit's clock.
#[unsafe(no_mangle)]
extern "Rust" fn __bashkit_host_now_micros() -> u64 {
    now()
}

/// The source of random bytes of all crates.
#[unsafe(no_mangle)]
unsafe extern "Rust" fn __getrandom_v03_custom(
    at: *mut u8,
    len: usize,
) -> Result<(), getrandom::Error> {
    // SAFETY: the caller has `len` bytes there.
    unsafe { random(at, len) };
    Ok(())
}
