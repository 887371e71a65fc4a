//! The threads, locks and atomics of files that models check: `tests/models` compiles these files
//! with others in their place.

#[cfg(feature = "engine")]
pub(crate) use std::sync::atomic::AtomicUsize;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;
