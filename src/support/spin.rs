//! Spins briefly before blocking.
//!
//! Waking a thread on another processor takes 20 to 50 µs. Usually the awaited thread needs less
//! than that.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a thread spins.
const MOMENT: Duration = Duration::from_micros(100);

/// Pause instructions between two checks, because the awaited thread may run on the other half of
/// the same core.
const PAUSES: u32 = 16;

/// Checks `is_there` repeatedly, for at most `MOMENT` or `limit`. Returns `true` as soon as it
/// does.
pub(crate) fn spin(limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    let limit = budget().min(limit);
    let start = Instant::now();
    loop {
        if is_there() {
            return true;
        }
        if start.elapsed() >= limit {
            return false;
        }
        // The awaited thread may need this processor.
        std::thread::yield_now();
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
}

/// Returns how long a thread spins: not at all on a single processor, where no other thread could
/// make progress meanwhile. The first call asks the system.
pub(crate) fn budget() -> Duration {
    static WHERE: OnceLock<Duration> = OnceLock::new();
    *WHERE.get_or_init(|| match std::thread::available_parallelism() {
        Ok(processors) if processors.get() > 1 => MOMENT,
        _ => Duration::ZERO,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_seen_and_what_is_not_ends_the_look() {
        assert!(spin(Duration::ZERO, || true));
        assert!(!spin(Duration::ZERO, || false));
        assert!(!spin(Duration::MAX, || false));
    }
}
