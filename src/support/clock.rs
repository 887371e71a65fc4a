//! The clocks that a guest sees.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The resolution of the guest's clocks, the same as that of JavaScript's `Date`. A finer clock
/// would allow timing attacks, for example on the processor's caches.
const STEP: Duration = Duration::from_millis(1);

/// Returns the time since `start`, in milliseconds.
pub(crate) fn since(start: Instant) -> f64 {
    coarse(start.elapsed())
}

/// Returns the time since 1970, in milliseconds.
pub(crate) fn wall() -> f64 {
    coarse(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns a time in milliseconds since 1970, negative before.
pub(crate) fn milliseconds(time: SystemTime) -> f64 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_secs_f64() * 1e3,
        Err(before) => before.duration().as_secs_f64() * -1e3,
    }
}

fn coarse(time: Duration) -> f64 {
    let steps = (time.as_secs_f64() / STEP.as_secs_f64()).floor();
    steps * STEP.as_secs_f64() * 1e3
}
