//! Work on many items, some at a time.

use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Result, bail};

/// Returns how many processors there are.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Calls `work` with each item and its number, for `jobs` items at a time, in their order. Stops
/// taking items after the first error, which it returns.
pub(crate) fn each<T: Send>(
    jobs: usize,
    items: impl IntoIterator<Item = T, IntoIter: Send>,
    work: impl Fn(usize, T) -> Result<()> + Sync,
) -> Result<()> {
    let due = Mutex::new(items.into_iter().enumerate().fuse());
    let next = || due.lock().unwrap_or_else(PoisonError::into_inner).next();
    let take = || -> Result<()> {
        while let Some((number, item)) = next() {
            if let Err(error) = work(number, item) {
                while next().is_some() {}
                return Err(error);
            }
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..jobs).map(|_| scope.spawn(take)).collect();
        let mut ends = workers.into_iter().map(thread::ScopedJoinHandle::join);
        ends.try_for_each(|end| end.unwrap_or_else(|_| bail!("a thread panicked")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_worked_on_once_with_its_number() {
        let seen = Mutex::new(Vec::new());
        each(3, 10..30, |number, item| {
            seen.lock().unwrap().push((number, item));
            Ok(())
        })
        .unwrap();
        let mut seen = seen.into_inner().unwrap();
        seen.sort_unstable();
        assert_eq!(seen, (10..30).enumerate().collect::<Vec<_>>());
    }

    #[test]
    fn the_first_error_ends_the_work() {
        let work = |_, item| if item == 2 { bail!("no") } else { Ok(()) };
        assert_eq!(each(1, 0..10, work).unwrap_err().to_string(), "no");
    }
}
