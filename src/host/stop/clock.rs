//! The clock of a command: counts the guest's time and the time of the host functions that it
//! calls, and knows when one of them is used up. A call can stop both.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::support::lock::lock;
use crate::support::watchdog::Armed;

/// How long the alarm waits at most while no time passes.
const PAUSED_ALARM: Duration = Duration::from_hours(1);

/// The two times of a command, each with its limit. Host time passes while a tool's function is
/// running that has not paused the clock. Without one, no time passes while a function is running
/// that has, and guest time passes otherwise.
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
    /// The number of tool functions that are running and have not paused the clock.
    calls: usize,
    /// The number of those that have.
    paused: usize,
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

/// A tool call as the clock knows it.
pub(crate) struct CallClock {
    clock: Arc<RunClock>,
    state: Mutex<CallState>,
}

#[derive(Default)]
struct CallState {
    is_running: bool,
    /// The number of pauses that have not ended.
    pauses: usize,
    /// Since when there is one.
    since: Option<Instant>,
    /// The time of all pauses before.
    paused: Duration,
}

/// A running tool function. Host time passes until it is dropped, unless the call is paused.
pub(crate) struct Serving(Arc<CallClock>);

/// Keeps all time of a command from passing, until it is dropped.
pub(crate) struct Standstill {
    _serving: Serving,
    _pause: ClockPause,
}

/// Keeps the run's clock from counting a tool call, until it is dropped.
///
/// [`ToolContext::pause_clock`](crate::ToolContext::pause_clock) makes it.
#[must_use = "the clock goes on when it is dropped"]
pub struct ClockPause(Arc<CallClock>);

impl RunClock {
    pub(crate) fn new(started: Instant, guest_limit: Duration, host_limit: Duration) -> Self {
        let state = State {
            guest: Duration::ZERO,
            host: Duration::ZERO,
            counted: started,
            calls: 0,
            paused: 0,
            wakes: started + guest_limit,
            alarm: None,
        };
        Self { guest_limit, host_limit, state: Mutex::new(state) }
    }

    /// Keeps all time from passing, until the result is dropped.
    pub(crate) fn stand_still(self: &Arc<Self>) -> Standstill {
        let call = CallClock::new(self);
        let pause = call.pause();
        Standstill { _serving: call.serve(), _pause: pause }
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

    /// Counts the time so far, then changes how many functions are running and paused.
    fn change(&self, now: Instant, change: impl FnOnce(&mut usize, &mut usize)) {
        let mut state = lock(&self.state);
        state.count(now);
        let State { calls, paused, .. } = &mut *state;
        change(calls, paused);
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
        } else if state.paused > 0 {
            PAUSED_ALARM
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
        } else if self.paused == 0 {
            self.guest += passed;
        }
        self.counted += passed;
    }
}

impl CallClock {
    pub(crate) fn new(clock: &Arc<RunClock>) -> Arc<Self> {
        Arc::new(Self { clock: Arc::clone(clock), state: Mutex::default() })
    }

    /// Begins host time, until the result is dropped.
    pub(crate) fn serve(self: &Arc<Self>) -> Serving {
        let mut state = lock(&self.state);
        state.is_running = true;
        let is_paused = state.pauses > 0;
        self.clock.change(Instant::now(), |calls, paused| {
            *(if is_paused { paused } else { calls }) += 1;
        });
        drop(state);
        Serving(Arc::clone(self))
    }

    /// Pauses the clock for this call, until the result is dropped. A call that has ended, or was
    /// cancelled, has no clock to pause: its function may go on, and must not stop the run's time.
    pub(crate) fn pause(self: &Arc<Self>) -> ClockPause {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.pauses += 1;
        state.since.get_or_insert(now);
        if state.is_running && state.pauses == 1 {
            self.clock.change(now, |calls, paused| {
                *calls = calls.saturating_sub(1);
                *paused += 1;
            });
        }
        drop(state);
        ClockPause(Arc::clone(self))
    }

    /// Returns the time for which the call was paused, and whether it is now.
    pub(crate) fn paused(&self, now: Instant) -> (Duration, bool) {
        let state = lock(&self.state);
        let current = state.since.map(|since| now.saturating_duration_since(since));
        (state.paused + current.unwrap_or_default(), current.is_some())
    }

    fn resume(&self) {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses > 0 {
            return;
        }
        if let Some(since) = state.since.take() {
            state.paused += now.saturating_duration_since(since);
        }
        if state.is_running {
            self.clock.change(now, |calls, paused| {
                *calls += 1;
                *paused = paused.saturating_sub(1);
            });
        }
    }

    fn end(&self) {
        let mut state = lock(&self.state);
        state.is_running = false;
        let is_paused = state.pauses > 0;
        self.clock.change(Instant::now(), |calls, paused| {
            let count = if is_paused { paused } else { calls };
            *count = count.saturating_sub(1);
        });
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Drop for ClockPause {
    fn drop(&mut self) {
        self.0.resume();
    }
}

impl fmt::Debug for ClockPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockPause").finish_non_exhaustive()
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
        clock.change(now, |calls, _| *calls += 1);
    }

    fn end(clock: &RunClock, now: Instant) {
        clock.change(now, |calls, _| *calls -= 1);
    }

    fn pause(clock: &RunClock, now: Instant) {
        clock.change(now, |calls, paused| (*calls, *paused) = (*calls - 1, *paused + 1));
    }

    fn resume(clock: &RunClock, now: Instant) {
        clock.change(now, |calls, paused| (*calls, *paused) = (*calls + 1, *paused - 1));
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
    #[test]
    fn no_time_passes_during_a_pause() {
        let (clock, start) = clock();
        begin(&clock, start + SECOND);
        pause(&clock, start + 2 * SECOND);
        assert_eq!(
            clock.ring(start + 1000 * SECOND),
            Alarm::At(start + 1000 * SECOND + PAUSED_ALARM)
        );
        resume(&clock, start + 2000 * SECOND);
        assert_eq!(clock.wakes(), start + 2004 * SECOND);
        end(&clock, start + 2001 * SECOND);
        assert_eq!(clock.ring(start + 2004 * SECOND), Alarm::At(start + 2010 * SECOND));
        assert_eq!(clock.ring(start + 2010 * SECOND), Alarm::GuestTime);
    }

    #[test]
    fn a_call_beside_a_paused_one_takes_host_time() {
        let (clock, start) = clock();
        begin(&clock, start);
        pause(&clock, start);
        begin(&clock, start + 2 * SECOND);
        assert_eq!(clock.ring(start + 7 * SECOND), Alarm::HostTime);
    }

    #[test]
    fn a_pause_that_outlives_its_call_stops_no_clock() {
        let (clock, _) = clock();
        let clock = Arc::new(clock);
        let counts = || {
            let state = lock(&clock.state);
            (state.calls, state.paused)
        };
        let call = CallClock::new(&clock);
        let early = call.pause();
        assert_eq!(counts(), (0, 0));
        drop(early);
        let serving = call.serve();
        let pauses = (call.pause(), call.pause());
        assert_eq!(counts(), (0, 1));
        drop(pauses.0);
        assert_eq!((counts(), call.paused(Instant::now()).1), ((0, 1), true));
        drop(serving);
        assert_eq!(counts(), (0, 0));
        drop((pauses.1, call.pause()));
        assert_eq!((counts(), call.paused(Instant::now()).1), ((0, 0), false));
    }
}
