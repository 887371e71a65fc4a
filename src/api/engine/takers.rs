//! Who takes ready interpreters: while several tenants do, one is left to those that take less than
//! their share.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a tenant counts after it has asked for an interpreter.
const REMEMBERED: Duration = Duration::from_mins(1);

/// The most tenants that are remembered: those that have asked last.
const MOST_TENANTS: usize = 64;

/// From this many times on, only the more recent ones of all tenants count much.
const MANY_TIMES: u32 = 256;

/// The tenants that have asked for interpreters of a kind.
#[derive(Default)]
pub(super) struct Takers(Vec<Taker>);

struct Taker {
    tenant: Arc<str>,
    asked: Instant,
    times: u32,
}

impl Takers {
    /// Notes that a tenant asks for an interpreter. Returns `true` if it has to leave one to
    /// others.
    pub(super) fn note(&mut self, tenant: &Arc<str>, asked: Instant) -> bool {
        self.0.retain(|taker| taker.counts(asked));
        let at = self.0.iter().position(|taker| taker.tenant == *tenant);
        let mut own = at.map_or_else(
            || Taker { tenant: Arc::clone(tenant), asked, times: 0 },
            |at| self.0.remove(at),
        );
        (own.asked, own.times) = (asked, own.times + 1);
        let times = own.times;
        self.0.truncate(MOST_TENANTS - 1);
        self.0.insert(0, own);
        let (all, tenants) = (self.0.iter().map(|taker| taker.times).sum::<u32>(), self.0.len());
        if times >= MANY_TIMES {
            self.0.iter_mut().for_each(|taker| taker.times = taker.times.div_ceil(2));
        }
        u64::from(times) * tenants as u64 > u64::from(all)
    }

    /// Returns `true` if more than one tenant counts.
    pub(super) fn are_several(&self, now: Instant) -> bool {
        self.0.iter().filter(|taker| taker.counts(now)).nth(1).is_some()
    }
}

impl Taker {
    fn counts(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.asked) < REMEMBERED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(takers: &mut Takers, name: &str, at: Instant) -> bool {
        takers.note(&Arc::from(name), at)
    }

    #[test]
    fn whoever_takes_more_than_its_share_leaves_one_to_tenants_that_were_there_within_a_minute() {
        let (mut takers, start) = (Takers::default(), Instant::now());
        let mut asks = |name| note(&mut takers, name, start);
        assert_eq!(["a", "a", "a"].map(&mut asks), [false; 3], "it is alone");
        assert_eq!(["b", "a", "b", "a"].map(&mut asks), [false, true, false, true]);
        assert_eq!(["b", "b", "b"].map(&mut asks), [false, false, false], "they are equal");
        assert_eq!(["b", "a", "a"].map(&mut asks), [true, false, true]);
        assert!(takers.are_several(start));
        let later = start + REMEMBERED;
        assert!(!note(&mut takers, "a", later) && !takers.are_several(later));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut takers, start) = (Takers::default(), Instant::now());
        (0..1000).for_each(|number| _ = note(&mut takers, &number.to_string(), start));
        assert_eq!(takers.0.len(), MOST_TENANTS);
        (0..1000).for_each(|_| _ = note(&mut takers, "a", start));
        assert!(takers.0.iter().all(|taker| taker.times <= MANY_TIMES));
        assert!(!note(&mut takers, "b", start) && note(&mut takers, "a", start));
    }
}
