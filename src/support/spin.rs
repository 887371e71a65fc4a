//! Spins briefly before blocking.
//!
//! Waking a thread on another processor takes 20 to 50 µs. Usually the awaited thread needs less
//! than that.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a thread spins, unless it has learnt something else.
const MOMENT: Duration = Duration::from_micros(100);

/// Pause instructions between two checks, because the awaited thread may run on the other half of
/// the same core.
const PAUSES: u32 = 16;

/// Checks `is_there` repeatedly, for at most `limit`. Returns `true` as soon as it does.
pub(crate) fn spin(limit: Duration, mut is_there: impl FnMut() -> bool) -> bool {
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

/// How long to spin for what comes again and again, such as the commands of a session. A caller
/// that needs a moment for the next one usually does so every time.
pub(crate) struct Habit {
    limit: Duration,
}

impl Habit {
    /// How long it spins if that was enough the last time.
    const MOST: Duration = Duration::from_micros(300);

    /// How long it spins if that has not been enough for long.
    const LEAST: Duration = Duration::from_micros(20);

    /// Begins a habit; one of never spinning unless `spins`.
    pub(crate) fn new(spins: bool) -> Self {
        Self { limit: if spins { budget() } else { Duration::ZERO } }
    }

    /// Returns how long to spin this time.
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Learns from how long the wait was, including the time after spinning.
    pub(crate) fn learn(&mut self, waited: Duration) {
        if self.limit.is_zero() {
            return;
        }
        self.limit = if waited <= Self::MOST { Self::MOST } else { self.limit / 2 };
        self.limit = self.limit.max(Self::LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_seen_and_what_is_not_ends_the_look() {
        assert!(spin(Duration::ZERO, || true));
        assert!(!spin(Duration::ZERO, || false));
        assert!(!spin(budget(), || false));
    }

    #[test]
    fn a_habit_is_to_spin_long_only_where_that_was_enough() {
        let mut habit = Habit { limit: MOMENT };
        habit.learn(Habit::MOST);
        assert_eq!(habit.limit(), Habit::MOST);
        for _ in 0..10 {
            habit.learn(Duration::from_secs(1));
        }
        assert_eq!(habit.limit(), Habit::LEAST);
        // A single processor.
        let mut none = Habit::new(false);
        none.learn(Duration::ZERO);
        assert_eq!(none.limit(), Duration::ZERO);
    }
}
