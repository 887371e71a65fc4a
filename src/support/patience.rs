//! For how long somebody waits for what is being made.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::data::error::{Error, ErrorKind};

/// Set once nobody waits any more, if anybody can say so.
#[derive(Clone, Debug, Default)]
pub(crate) struct GivenUp(Option<Arc<AtomicBool>>);

impl GivenUp {
    pub(crate) fn new(flag: Arc<AtomicBool>) -> Self {
        Self(Some(flag))
    }

    pub(crate) fn is_set(&self) -> bool {
        self.0.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    /// Returns the flag.
    pub(crate) fn flag(&self) -> Option<Arc<AtomicBool>> {
        self.0.clone()
    }
}

/// How long packages may take to be imported for an image.
#[derive(Clone, Debug)]
pub(crate) struct Patience {
    limit: Duration,
    /// `None` if the limit is beyond what the clock can say.
    until: Option<Instant>,
    given_up: GivenUp,
}

impl Patience {
    /// How often to look whether it is over.
    pub(crate) const STEP: Duration = Duration::from_millis(50);

    pub(crate) fn new(limit: Duration, given_up: GivenUp) -> Self {
        Self { limit, until: Instant::now().checked_add(limit), given_up }
    }

    /// The same from now on.
    pub(crate) fn anew(&self) -> Self {
        Self::new(self.limit, self.given_up.clone())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.given_up.is_set() || self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// Returns how long it is at most.
    #[cfg(not(feature = "engine"))]
    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    #[cfg(not(feature = "engine"))]
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up.is_set()
    }

    /// The error of what has taken too long.
    pub(crate) fn error(&self) -> Error {
        if self.given_up.is_set() {
            let message = "the memory image was not made: nobody waits for it any more";
            return Error::new(ErrorKind::Start, message);
        }
        let limit = self.limit.as_secs_f64();
        let message = format!(
            "importing the packages for the memory image took too long: the limit is {limit} s \
             (`EngineBuilder::max_import_time`)"
        );
        Error::new(ErrorKind::Limit, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_at_its_limit_or_once_it_is_given_up_and_says_which() {
        let flag = Arc::<AtomicBool>::default();
        let given_up = GivenUp::new(Arc::clone(&flag));
        let none = Patience::new(Duration::ZERO, given_up.clone());
        let endless = Patience::new(Duration::MAX, given_up);
        assert!(none.is_over() && none.anew().is_over() && !endless.is_over());
        assert_eq!(none.error().kind(), ErrorKind::Limit);
        flag.store(true, Ordering::Relaxed);
        assert!(endless.is_over() && endless.anew().is_over());
        assert_eq!(endless.error().kind(), ErrorKind::Start);
        assert!(!GivenUp::default().is_set());
    }
}
