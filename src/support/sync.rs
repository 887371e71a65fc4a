//! The threads, locks and atomics of files that models check: `tests/models` compiles these files
//! with others in their place.

pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, TryLockError, atomic::AtomicBool, atomic::AtomicU64,
};
pub(crate) use std::thread::{self, Thread};
pub(crate) use std::thread_local;
