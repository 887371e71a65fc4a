//! The clock of a command: counts the guest's time and the time of the host functions that it
//! calls, and knows when one of them is used up.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::lock::lock;
use crate::support::watchdog::Armed;

/// The two times of a command, each with its limit. Host time passes while a tool's function is
/// running, guest time passes otherwise.
pub(crate) struct RunClock {
    guest_limit: Duration,
    host_limit: Duration,
    state: Mutex<State>,
}

struct State {
    guest: Duration,
    host: Duration,
    /// Until when the times are counted.
    counted: Instant,
    /// The number of tool functions that are running.
    calls: usize,
    /// When the alarm is set for. Where one of the times may be used up earlier, it is moved.
    wakes: Instant,
    alarm: Option<Armed>,
}

/// The times of a command that has ended.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RunTimes {
    pub(crate) guest: Duration,
    pub(crate) host: Duration,
}

/// What the alarm has to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Alarm {
    /// Nothing: it was moved to an earlier time, and has been called then.
    Moved,
    /// It is to be called again at this time, as neither limit has been reached.
    At(Instant),
    /// The guest's time is used up.
    GuestTime,
    /// The time of the host's functions is used up.
    HostTime,
}

/// A running tool function. Host time passes until it is dropped.
pub(crate) struct Serving(Arc<RunClock>);

impl RunClock {
    pub(super) fn new(started: Instant, guest_limit: Duration, host_limit: Duration) -> Self {
        let state = State {
            guest: Duration::ZERO,
            host: Duration::ZERO,
            counted: started,
            calls: 0,
            wakes: started + guest_limit,
            alarm: None,
        };
        Self { guest_limit, host_limit, state: Mutex::new(state) }
    }

    /// Returns the time that the alarm is set for at first: the deadline of a guest that calls no
    /// tool.
    pub(super) fn wakes(&self) -> Instant {
        lock(&self.state).wakes
    }

    /// Sets the alarm, which calls [`ring`](Self::ring).
    pub(super) fn set_alarm(&self, alarm: Armed) {
        lock(&self.state).alarm = Some(alarm);
    }

    /// Begins host time, until the result is dropped.
    pub(crate) fn serve(self: &Arc<Self>) -> Serving {
        self.change(Instant::now(), |calls| calls + 1);
        Serving(Arc::clone(self))
    }

    /// Says what the alarm has to do.
    pub(super) fn ring(&self, now: Instant) -> Alarm {
        let mut state = lock(&self.state);
        if now < state.wakes {
            return Alarm::Moved;
        }
        state.count(now);
        let due = self.due(&state);
        if due > now {
            state.wakes = due;
            return Alarm::At(due);
        }
        if state.calls > 0 { Alarm::HostTime } else { Alarm::GuestTime }
    }

    /// Stops the alarm and returns the times. Waits for a call of the alarm that is under way.
    pub(super) fn end(&self) -> RunTimes {
        let mut state = lock(&self.state);
        state.count(Instant::now());
        let times = RunTimes { guest: state.guest, host: state.host };
        let alarm = state.alarm.take();
        // After unlocking, because the alarm locks the state.
        drop(state);
        drop(alarm);
        times
    }

    fn change(&self, now: Instant, calls: impl FnOnce(usize) -> usize) {
        let mut state = lock(&self.state);
        state.count(now);
        state.calls = calls(state.calls);
        let due = self.due(&state);
        // A time that is due later than the alarm needs no change: the alarm then asks for itself.
        // Otherwise each call would have to move it.
        if due < state.wakes {
            state.wakes = due;
            if let Some(alarm) = &state.alarm {
                alarm.call_at(due);
            }
        }
    }

    /// Returns when the time that passes at present is used up.
    fn due(&self, state: &State) -> Instant {
        let left = if state.calls > 0 {
            self.host_limit.saturating_sub(state.host)
        } else {
            self.guest_limit.saturating_sub(state.guest)
        };
        state.counted + left
    }
}

impl State {
    fn count(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.counted);
        if self.calls > 0 {
            self.host += passed;
        } else {
            self.guest += passed;
        }
        self.counted += passed;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.change(Instant::now(), |calls| calls.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn clock() -> (RunClock, Instant) {
        let started = Instant::now();
        (RunClock::new(started, 10 * SECOND, 5 * SECOND), started)
    }

    fn begin(clock: &RunClock, now: Instant) {
        clock.change(now, |calls| calls + 1);
    }

    fn end(clock: &RunClock, now: Instant) {
        clock.change(now, |calls| calls - 1);
    }

    #[test]
    fn the_guests_time_stands_still_during_calls() {
        let (clock, start) = clock();
        begin(&clock, start + 3 * SECOND);
        end(&clock, start + 7 * SECOND);
        assert_eq!(clock.ring(start + 10 * SECOND), Alarm::At(start + 14 * SECOND));
        assert_eq!(clock.ring(start + 14 * SECOND), Alarm::GuestTime);
    }

    #[test]
    fn calls_side_by_side_count_once() {
        let (clock, start) = clock();
        begin(&clock, start + SECOND);
        begin(&clock, start + 2 * SECOND);
        end(&clock, start + 3 * SECOND);
        assert_eq!(clock.wakes(), start + 6 * SECOND);
        assert_eq!(clock.ring(start + 6 * SECOND), Alarm::HostTime);
    }

    #[test]
    fn the_time_of_several_calls_is_added_up() {
        let (clock, start) = clock();
        begin(&clock, start);
        end(&clock, start + 4 * SECOND);
        begin(&clock, start + 6 * SECOND);
        assert_eq!(clock.wakes(), start + 5 * SECOND);
        // The alarm was set when four seconds of the call's five were left, and comes early now.
        assert_eq!(clock.ring(start + 6 * SECOND), Alarm::At(start + 7 * SECOND));
        assert_eq!(clock.ring(start + 7 * SECOND), Alarm::HostTime);
    }

    #[test]
    fn an_alarm_that_was_moved_is_not_called_at_its_old_time_again() {
        let (clock, start) = clock();
        begin(&clock, start + SECOND);
        end(&clock, start + 2 * SECOND);
        assert_eq!(clock.ring(start + 6 * SECOND), Alarm::At(start + 11 * SECOND));
        // It had been set for this time at first.
        assert_eq!(clock.ring(start + 10 * SECOND), Alarm::Moved);
        assert_eq!(clock.ring(start + 11 * SECOND), Alarm::GuestTime);
    }
}
