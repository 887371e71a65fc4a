//! The clocks that a guest sees.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The finest step of them, which is that of JavaScript's `Date`. A finer one measures what the
/// guest must not know, such as what lies in the processor's caches.
const STEP: Duration = Duration::from_millis(1);

/// The time since `start`, in milliseconds.
pub(crate) fn since(start: Instant) -> f64 {
    coarse(start.elapsed())
}

/// The time since 1970, in milliseconds.
pub(crate) fn wall() -> f64 {
    coarse(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn coarse(time: Duration) -> f64 {
    let steps = (time.as_secs_f64() / STEP.as_secs_f64()).floor();
    steps * STEP.as_secs_f64() * 1e3
}
