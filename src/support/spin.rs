//! Looking for something for a moment before sleeping until it comes.
//!
//! To wake a thread on another processor takes some 20 to 50 µs, more than what one thread of ours
//! mostly waits for another one to do.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a thread looks.
const MOMENT: Duration = Duration::from_micros(100);

/// Pauses between two looks: what is waited for may be done on the other half of the same core.
const PAUSES: u32 = 16;

/// Looks whether it is there, over and over, but no longer than a moment or `limit`. Returns
/// whether it is.
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
        // Whoever is to bring it may be waiting for this processor.
        std::thread::yield_now();
        for _ in 0..PAUSES {
            std::hint::spin_loop();
        }
    }
}

/// How long a thread looks: not at all where there is one processor, since nobody else could do
/// anything meanwhile. The first call asks the system.
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
