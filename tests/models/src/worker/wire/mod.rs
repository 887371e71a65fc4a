//! What the library has in `src/worker/wire`: the ring, which is small here, so that it is full
//! soon.

#[path = "../../../../../src/worker/wire/output_ring.rs"]
pub(crate) mod output_ring;

const RING: std::os::fd::RawFd = 5;

const OUTPUT_WORDS: usize = 8;
