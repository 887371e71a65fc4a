//! Helpers without policy, on which the other folders build.

#[cfg(feature = "mcp")]
pub(crate) mod background;
pub(crate) mod block_on;
pub(crate) mod cache_dir;
pub(crate) mod clock;
#[cfg(feature = "mcp")]
pub(crate) mod http_connections;
pub(crate) mod lock;
pub(crate) mod offload;
#[cfg(target_os = "linux")]
pub(crate) mod shared_file;
#[cfg(not(target_os = "linux"))]
#[path = "shared_file_unsupported.rs"]
pub(crate) mod shared_file;
#[cfg(target_os = "linux")]
pub(crate) mod shared_words;
pub(crate) mod spin;
pub(crate) mod watchdog;
#[cfg(feature = "mcp")]
pub(crate) mod words;
