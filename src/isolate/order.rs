//! The order of a deterministic session: its clock, its entropy, and what happens next in it are
//! functions of a seed and of what the guest does.
//!
//! The clock stands still while the guest waits for a tool. It goes on with each look at it, with
//! the steps of the interpreter, and to the next timer when nothing else is left to do.
//!
//! A [recorded](recording) session has an order, too. What its program and its seed do not
//! determine is recorded. Its clocks are the host's, unless they are to be virtual.

pub(crate) mod event_log;
pub(crate) mod recording;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::event_log::EventLog;
use self::recording::Recording;
use super::extension::HostHandle;
use super::pending::PendingCalls;
use crate::protocol::happened::Event;
use crate::support::clock;

/// What the clock goes on by with each look, in milliseconds.
const LOOK: f64 = 0.001;

/// What the clock goes on by while the interpreter makes the steps between two checks for signals,
/// in milliseconds. They take about as long.
const STEPS: f64 = 0.002;

/// Who answers a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answerer {
    /// A tool, or the host itself. Its answers come in the order of the calls.
    Host,
    /// A server, whose answers come when they are there.
    Network,
}

/// What happens next.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// The answer to this call is handed to the guest.
    Answer(u32),
    /// The first timer of the guest is due.
    Timer,
    /// The guest waits for a tool, and its clock stands still.
    Tool,
    /// The guest waits for a server, for at most this long, and its clock goes on.
    Server(Option<Duration>),
    /// Nothing will happen, unless an interrupt comes.
    Nothing,
    /// An interrupt ends what the guest waits for.
    Interrupt,
    /// The guest carries out this peek.
    Peek(Vec<u8>),
    /// The program does something else than when it was recorded.
    Diverged(&'static str),
}

impl Next {
    /// Whether it comes from outside the guest, which may wait for nothing as before.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self, Self::Interrupt | Self::Peek(_))
    }
}

/// The state of a deterministic session.
pub(crate) struct Order {
    seed: u64,
    entropy: blake3::OutputReader,
    /// Since the session started, in milliseconds.
    now: f64,
    /// The time of day at which it started, in milliseconds since 1970.
    started: f64,
    /// When the alarm is due.
    alarm: Option<f64>,
    /// The calls whose answers the guest waits for.
    expected: BTreeMap<u32, Answerer>,
    /// What the clocks go by in a recorded session without virtual ones.
    real_time: Option<RealTime>,
    /// What happens in a recorded session.
    recording: Option<Recording>,
}

impl Order {
    /// Begins with the clocks at `now` and `started` + `now`, in milliseconds.
    pub(crate) fn new(seed: u64, started: f64, now: f64) -> Self {
        let (entropy, expected) = (entropy(seed), BTreeMap::new());
        Self {
            seed,
            entropy,
            now,
            started,
            alarm: None,
            expected,
            real_time: None,
            recording: None,
        }
    }

    /// Derives all further entropy from this seed, unless it is the one that there is.
    pub(crate) fn reseed(&mut self, seed: u64) -> bool {
        let is_other = self.seed != seed;
        if is_other {
            (self.seed, self.entropy) = (seed, entropy(seed));
        }
        is_other
    }

    /// Describes it between two runs.
    pub(crate) fn state(&self) -> String {
        let Self { seed, entropy, now, started, .. } = self;
        format!("{seed} {} {now} {started}", entropy.position())
    }

    /// Returns the one that was described so.
    pub(crate) fn resume(state: &str) -> Option<Self> {
        let mut parts = state.split(' ');
        let seed = parts.next()?.parse().ok()?;
        let position = parts.next()?.parse().ok()?;
        let [now, started] = [(); 2].map(|()| parts.next().and_then(|part| part.parse().ok()));
        let is_time = |time: &f64| time.is_finite();
        let mut order = Self::new(seed, started.filter(is_time)?, now.filter(is_time)?);
        order.entropy.set_position(position);
        parts.next().is_none().then_some(order)
    }

    /// Takes over the clocks and the entropy of another one. What the guest waits for stays.
    pub(crate) fn go_on_from(&mut self, other: Self) {
        let (alarm, expected) = (self.alarm, std::mem::take(&mut self.expected));
        let (real_time, recording) = (self.real_time.take(), self.recording.take());
        *self = Self { alarm, expected, real_time, recording, ..other };
    }

    /// Has the clocks go by those of the host from here on, at this time of day.
    pub(crate) fn go_by_real_time(&mut self, time_of_day: f64) {
        self.started = time_of_day - self.now;
        self.real_time = Some(RealTime::new(self.started, self.now));
    }

    /// Records what happens, or replays what was recorded.
    pub(crate) fn record(&mut self, host: HostHandle, log: Arc<EventLog>) {
        self.recording = Some(Recording::new(host, log));
    }

    /// Returns the recording of a recorded session.
    pub(crate) fn recording(&mut self) -> Option<&mut Recording> {
        self.recording.as_mut()
    }

    /// Returns `true` if the clocks are virtual.
    pub(crate) fn is_virtual(&self) -> bool {
        self.real_time.is_none()
    }

    /// Looks at the monotonic clock.
    pub(crate) fn now(&mut self) -> f64 {
        self.now = match (&self.real_time, &mut self.recording) {
            (Some(real), Some(recording)) => recording.look(self.now, || real.now()),
            _ => self.now + LOOK,
        };
        self.now
    }

    /// Looks at the clock of the time of day.
    pub(crate) fn wall_clock(&mut self) -> f64 {
        self.started + self.now()
    }

    pub(crate) fn fill_entropy(&mut self, into: &mut [u8]) {
        self.entropy.fill(into);
    }

    /// Sets the alarm, which is due in so many milliseconds, or none.
    pub(crate) fn set_alarm(&mut self, delay: Option<f64>) {
        // A real clock may not have been looked at for a while.
        let now = if self.real_time.is_some() { self.now() } else { self.now };
        if let Some(recording) = &mut self.recording {
            recording.silence();
        }
        self.alarm = delay.map(|delay| now + delay);
    }

    /// Takes the alarm if it is due, or even before if `is_early`.
    pub(crate) fn take_alarm(&mut self, is_early: bool) -> bool {
        let has_rung = match (&self.real_time, &mut self.recording) {
            (Some(_), Some(recording)) => Some(recording.silence()),
            _ => None,
        };
        let is_due = |due: f64| has_rung.unwrap_or(due <= self.now);
        self.alarm.take_if(|due| is_early || is_due(*due)).is_some()
    }

    /// The interpreter has made some steps. Returns `true` if the alarm is due.
    pub(crate) fn steps(&mut self) -> bool {
        if let (Some(real), Some(recording)) = (&self.real_time, &mut self.recording) {
            return recording.check(|| self.alarm.is_some_and(|due| due <= real.now()));
        }
        self.now += STEPS;
        self.alarm.is_some_and(|due| due <= self.now)
    }

    /// The guest waits for the answer to a call from now on.
    pub(crate) fn expect(&mut self, call: u32, answerer: Answerer) {
        self.expected.insert(call, answerer);
    }

    /// The guest does not wait for the answer any more.
    pub(crate) fn forget(&mut self, call: u32) {
        self.expected.remove(&call);
    }

    /// Decides what happens next, when the guest's first timer is due at `due`. What happens is
    /// then no longer expected.
    pub(crate) fn next(&mut self, calls: &PendingCalls, due: Option<f64>) -> Next {
        let of = |answerer| {
            let expected = self.expected.iter().filter(move |(_, of)| **of == answerer);
            expected.map(|(call, _)| *call)
        };
        let from_network = of(Answerer::Network).find(|call| calls.is_answered(*call));
        let first = of(Answerer::Host).next();
        if let Some(call) = from_network.or(first.filter(|call| calls.is_answered(*call))) {
            self.expected.remove(&call);
            return Next::Answer(call);
        }
        if first.is_some() {
            return Next::Tool;
        }
        let waits_for_server = !self.expected.is_empty();
        match due {
            Some(due) if due <= self.now => Next::Timer,
            Some(due) if waits_for_server => {
                Next::Server(Duration::try_from_secs_f64((due - self.now) / 1000.0).ok())
            }
            Some(due) => {
                self.now = due;
                Next::Timer
            }
            None if waits_for_server => Next::Server(None),
            None => Next::Nothing,
        }
    }

    /// The guest's clock goes on by what a wait for a server has taken. A real one goes on by
    /// itself.
    pub(crate) fn waited(&mut self, time: Duration) {
        if self.real_time.is_some() {
            return;
        }
        let time = time.as_secs_f64() * 1000.0;
        self.now += time;
        match &mut self.recording {
            Some(recording) if !recording.is_replayed() => recording.push(&Event::Waited(time)),
            _ => {}
        }
    }

    /// Decides what happens next in a recorded session: what was recorded, or what comes first.
    /// `has_stalled` says that the guest knows already if nothing will happen, and `is_interrupted`
    /// that the host has asked for an interrupt.
    pub(crate) fn next_in_recording(
        &mut self,
        calls: &PendingCalls,
        due: Option<f64>,
        has_stalled: bool,
        is_interrupted: bool,
    ) -> Next {
        if due.is_none() && self.expected.is_empty() && !has_stalled {
            return Next::Nothing;
        }
        let Some(recording) = &mut self.recording else { return self.next(calls, due) };
        if recording.is_replayed() {
            return self.next_of_replay(calls, due);
        }
        if is_interrupted {
            recording.push(&Event::InterruptInWait);
            recording.interrupt();
            return Next::Interrupt;
        }
        let next = match &self.real_time {
            Some(real) => {
                let now = real.now();
                self.next_in_real_time(calls, due, now)
            }
            None => self.next(calls, due),
        };
        if let Some(recording) = &mut self.recording {
            match next {
                Next::Answer(call) => recording.push(&Event::Answer(call)),
                Next::Timer => recording.push(&Event::Timer),
                _ => {}
            }
        }
        next
    }

    /// Decides what comes first at this time.
    fn next_in_real_time(&mut self, calls: &PendingCalls, due: Option<f64>, now: f64) -> Next {
        let answered = self.expected.keys().copied().find(|call| calls.is_answered(*call));
        match (answered, due) {
            (Some(call), _) => {
                self.expected.remove(&call);
                Next::Answer(call)
            }
            (None, Some(due)) if due <= now => {
                self.now = self.now.max(due);
                Next::Timer
            }
            (None, Some(due)) => {
                Next::Server(Duration::try_from_secs_f64((due - now) / 1000.0).ok())
            }
            (None, None) if self.expected.is_empty() => Next::Nothing,
            (None, None) => Next::Tool,
        }
    }

    /// Decides what happens next as it was recorded.
    fn next_of_replay(&mut self, calls: &PendingCalls, due: Option<f64>) -> Next {
        let Some(recording) = &mut self.recording else { return Next::Nothing };
        match recording.next() {
            Some(&Event::Answer(call)) if self.expected.contains_key(&call) => {
                // The host sends it.
                if !calls.is_answered(call) {
                    return Next::Tool;
                }
                recording.pop();
                self.expected.remove(&call);
                Next::Answer(call)
            }
            Some(Event::Answer(_)) => {
                Next::Diverged("it waits for other calls than when it was recorded")
            }
            Some(Event::Timer) => match due {
                Some(due) => {
                    recording.pop();
                    self.now = self.now.max(due);
                    Next::Timer
                }
                None => Next::Diverged("it waits for no time, and did when it was recorded"),
            },
            Some(&Event::Waited(time)) => {
                recording.pop();
                self.now += time;
                self.next_of_replay(calls, due)
            }
            Some(Event::InterruptInWait) => {
                recording.pop();
                recording.interrupt();
                Next::Interrupt
            }
            Some(Event::Peek(_)) => match recording.pop() {
                Some(Event::Peek(frame)) => Next::Peek(frame),
                _ => Next::Nothing,
            },
            _ => Next::Diverged("it waits where it went on when it was recorded"),
        }
    }
}

/// The host's clock, from the start of the session on.
struct RealTime {
    /// When the session's clock stood where, in milliseconds since the session started.
    anchor: (Instant, f64),
}

impl RealTime {
    /// Begins at `now`, or later if more time has passed since `started`, both in milliseconds.
    fn new(started: f64, now: f64) -> Self {
        Self { anchor: (Instant::now(), (clock::wall() - started).max(now)) }
    }

    fn now(&self) -> f64 {
        let (instant, then) = self.anchor;
        (then + clock::since(instant)).round()
    }
}

fn entropy(seed: u64) -> blake3::OutputReader {
    let mut hasher = blake3::Hasher::new_derive_key("isolet entropy of a deterministic session");
    hasher.update(&seed.to_le_bytes());
    hasher.finalize_xof()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn order() -> Order {
        Order::new(7, 1_000_000.0, 0.0)
    }

    #[test]
    fn entropy_and_clocks_depend_on_the_seed_and_the_looks_only() {
        let draw = |seed| {
            let mut order = Order::new(seed, 5.0, 0.0);
            let mut bytes = [0; 40];
            order.fill_entropy(&mut bytes[..3]);
            order.fill_entropy(&mut bytes[3..]);
            (bytes, order.now(), order.wall_clock())
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).0, draw(8).0);
        assert!(draw(7).2 > 5.0 + draw(7).1);
    }

    #[test]
    fn it_goes_on_from_its_state() {
        let mut order = order();
        let mut bytes = [[0; 100]; 3];
        order.fill_entropy(&mut bytes[0][..77]);
        order.now();
        let mut resumed = Order::resume(&order.state()).unwrap();
        order.fill_entropy(&mut bytes[1]);
        resumed.fill_entropy(&mut bytes[2]);
        assert_eq!(bytes[1], bytes[2]);
        assert!((order.wall_clock() - resumed.wall_clock()).abs() < 1e-9);
        assert!(!resumed.reseed(7) && resumed.reseed(8));
        order.expect(1, Answerer::Host);
        order.go_on_from(resumed);
        assert_eq!(order.next(&PendingCalls::default(), None), Next::Tool);
        for state in ["", "7", "7 1 2", "7 1 2 3 4", "7 -1 2 3", "7 1 NaN 3", "7 1 2 inf"] {
            assert!(Order::resume(state).is_none(), "{state}");
        }
    }

    #[test]
    fn tools_answer_in_the_order_of_the_calls_and_time_waits_for_them() {
        let (mut order, mut calls) = (order(), PendingCalls::default());
        let [one, two] = [(); 2].map(|()| calls.open(Answerer::Host).unwrap());
        order.expect(two, Answerer::Host);
        order.expect(one, Answerer::Host);
        calls.answer(two, Bytes::new());
        assert_eq!(order.next(&calls, Some(5.0)), Next::Tool);
        calls.answer(one, Bytes::new());
        assert_eq!(order.next(&calls, Some(5.0)), Next::Answer(one));
        assert_eq!(order.next(&calls, Some(5.0)), Next::Answer(two));
        assert!(order.now() < 5.0);
        assert_eq!(order.next(&calls, Some(5.0)), Next::Timer);
        assert!(order.now() > 5.0);
        assert_eq!(order.next(&calls, None), Next::Nothing);
    }

    #[test]
    fn a_timer_and_a_server_are_waited_for_together() {
        let (mut order, mut calls) = (order(), PendingCalls::default());
        let call = calls.open(Answerer::Network).unwrap();
        order.expect(call, Answerer::Network);
        assert_eq!(order.next(&calls, None), Next::Server(None));
        let Next::Server(Some(wait)) = order.next(&calls, Some(5.0)) else { panic!("it waits") };
        order.waited(wait);
        assert_eq!(order.next(&calls, Some(5.0)), Next::Timer);
        calls.answer(call, Bytes::new());
        assert_eq!(order.next(&calls, Some(50.0)), Next::Answer(call));
    }

    #[test]
    fn an_alarm_is_due_after_the_steps_that_take_as_long() {
        let mut order = order();
        order.set_alarm(Some(1.0));
        assert!(!order.take_alarm(false));
        let steps = (0..1000).take_while(|_| !order.steps()).count();
        assert!((400..=500).contains(&steps), "{steps}");
        assert!(order.take_alarm(false) && !order.take_alarm(true));
    }
}
