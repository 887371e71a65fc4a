//! The threads, locks and atomics of files that models check: `tests/models` compiles these files
//! with others in their place.

#[cfg(target_os = "linux")]
pub(crate) use std::sync::TryLockError;
pub(crate) use std::sync::atomic::AtomicBool;
#[cfg(target_os = "linux")]
pub(crate) use std::sync::atomic::AtomicU64;
#[cfg(feature = "engine")]
pub(crate) use std::sync::atomic::AtomicUsize;
#[cfg(any(feature = "engine", target_os = "linux"))]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;
