//! What the library has in `src/worker/parent`: the lease, and a reader whose frames are few.

#[path = "../../../../../src/worker/parent/reader_lease.rs"]
mod reader_lease;

pub(crate) mod lease;
mod reader;
