//! How much memory a piece of work takes, as the allocator counts it.

use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// Bytes that a piece of work allocated.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    /// The most that it had at once.
    pub peak: usize,
    /// What it left behind, its result for the most part.
    pub kept: usize,
}

/// Does the work and says what it took. Nothing else runs meanwhile: the targets have one thread.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, Used) {
    let before = ALLOCATOR.current_usage();
    ALLOCATOR.reset_peak_usage();
    let result = work();
    let used = Used {
        peak: ALLOCATOR.peak_usage().saturating_sub(before),
        kept: ALLOCATOR.current_usage().saturating_sub(before),
    };
    (result, used)
}
