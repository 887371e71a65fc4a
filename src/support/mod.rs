//! What the rest is built on and no rule of isolet's is in.

#[cfg(target_os = "linux")]
pub(crate) mod shared_file;
#[cfg(not(target_os = "linux"))]
#[path = "shared_file_unsupported.rs"]
pub(crate) mod shared_file;
