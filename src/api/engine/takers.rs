//! Who takes ready interpreters: while several tenants do, one is left to those that did not take
//! the last one.

use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a tenant counts after it has asked for an interpreter.
const REMEMBERED: Duration = Duration::from_mins(1);

/// The tenants that have asked for interpreters of a kind.
#[derive(Default)]
pub(super) struct Takers {
    last: Option<Taker>,
    /// The last one before it that was another tenant.
    other: Option<Taker>,
}

struct Taker {
    tenant: Arc<str>,
    asked: Instant,
}

impl Takers {
    /// Notes that a tenant asks for an interpreter. Returns `true` if it has to leave one to
    /// others.
    pub(super) fn note(&mut self, tenant: &Arc<str>, asked: Instant) -> bool {
        match &mut self.last {
            Some(last) if last.tenant == *tenant => {
                last.asked = asked;
                self.are_several(asked)
            }
            _ => {
                self.other = self.last.replace(Taker { tenant: Arc::clone(tenant), asked });
                false
            }
        }
    }

    /// Returns `true` if more than one tenant counts.
    pub(super) fn are_several(&self, now: Instant) -> bool {
        let other = self.other.as_ref();
        other.is_some_and(|other| now.saturating_duration_since(other.asked) < REMEMBERED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_took_the_last_one_leaves_one_to_a_tenant_that_was_there_within_a_minute() {
        let [a, b] = ["a", "b"].map(Arc::<str>::from);
        let (mut takers, start) = (Takers::default(), Instant::now());
        assert_eq!([takers.note(&a, start), takers.note(&a, start)], [false; 2], "it is alone");
        assert!(!takers.are_several(start));
        assert!(!takers.note(&b, start) && takers.are_several(start));
        assert_eq!([takers.note(&a, start), takers.note(&a, start)], [false, true]);
        let later = start + REMEMBERED;
        assert!(!takers.note(&a, later) && !takers.are_several(later));
        assert!(!takers.note(&b, later) && takers.note(&b, later));
    }
}
