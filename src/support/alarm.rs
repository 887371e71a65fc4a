//! A descriptor that other threads make readable, for a thread that waits for descriptors.

use std::cell::OnceCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Wakes a thread that waits until this is readable.
pub(crate) struct Alarm(OwnedFd);

thread_local! {
    static OWN: OnceCell<Option<Arc<Alarm>>> = const { OnceCell::new() };
}

impl Alarm {
    /// Returns the calling thread's alarm; `None` if the system gives none.
    pub(crate) fn of_this_thread() -> Option<Arc<Self>> {
        OWN.with(|own| own.get_or_init(|| Self::new().ok().map(Arc::new)).clone())
    }

    fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    /// Makes it readable.
    pub(crate) fn ring(&self) {
        // Fails only if it has been rung 2^64 times.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Makes it unreadable again.
    pub(crate) fn silence(&self) {
        // Fails if it was not rung.
        let _ = rustix::io::read(&self.0, &mut [0; size_of::<u64>()]);
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(alarm: &Alarm) -> bool {
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        poll(&mut [PollFd::new(alarm, PollFlags::IN)], Some(&now)).unwrap() == 1
    }

    #[test]
    fn it_is_readable_from_a_ring_until_it_is_silenced() {
        let alarm = Alarm::of_this_thread().unwrap();
        assert!(!is_readable(&alarm));
        let other = Arc::clone(&alarm);
        std::thread::spawn(move || (other.ring(), other.ring())).join().unwrap();
        assert!(is_readable(&alarm));
        alarm.silence();
        assert!(!is_readable(&alarm));
    }
}
