//! Helpers without policy, on which the other folders build.

#[cfg(target_os = "linux")]
pub(crate) mod alarm;
#[cfg(not(target_os = "linux"))]
#[path = "alarm_unsupported.rs"]
pub(crate) mod alarm;
#[cfg(feature = "fetch")]
pub(crate) mod asset_fetch;
pub(crate) mod block_on;
pub(crate) mod cache_dir;
pub(crate) mod clock;
pub mod control_groups;
#[cfg(all(target_os = "linux", feature = "engine"))]
pub(crate) mod free_memory;
pub(crate) mod lock;
#[cfg(all(target_os = "linux", feature = "engine"))]
pub(crate) mod niceness;
#[cfg(all(not(target_os = "linux"), feature = "engine"))]
#[path = "niceness_unsupported.rs"]
pub(crate) mod niceness;
#[cfg(target_os = "linux")]
pub(crate) mod obstacles;
#[cfg(not(target_os = "linux"))]
#[path = "obstacles_unsupported.rs"]
pub(crate) mod obstacles;
pub(crate) mod offload;
pub(crate) mod patience;
#[cfg(target_os = "linux")]
pub(crate) mod processor;
#[cfg(target_os = "linux")]
pub(crate) mod shared_file;
#[cfg(not(target_os = "linux"))]
#[path = "shared_file_unsupported.rs"]
pub(crate) mod shared_file;
#[cfg(target_os = "linux")]
pub(crate) mod shared_words;
pub(crate) mod signals;
pub(crate) mod size;
pub(crate) mod spin;
pub(crate) mod sync;
pub(crate) mod watchdog;
