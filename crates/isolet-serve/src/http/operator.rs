//! Messages of a serving node to its operator: lines on standard error.

use std::io::{self, Write};
use std::sync::mpsc::{TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use isolet_service::node::Operator;
use isolet_support::text::on_one_line;

/// The maximum number of queued lines. More are dropped while nobody reads standard error.
const WAITING: usize = 64;

/// The maximum number of lines within [`WHILE`], because clients cause them.
const MOST: u32 = 10;
const WHILE: Duration = Duration::from_secs(10);

/// Returns the operator, whose calls never block. Lines that exceed the queue or the rate are
/// dropped.
pub(super) fn on_standard_error() -> io::Result<Operator> {
    let (sender, lines) = sync_channel::<String>(WAITING);
    thread::Builder::new().name("isolet-operator".to_owned()).spawn(move || {
        let mut pace = Pace::new(Instant::now());
        for line in lines {
            let Some(left_out) = pace.next(Instant::now()) else { continue };
            // Standard error may be closed.
            let mut to = io::stderr().lock();
            if left_out > 0 {
                let _ = writeln!(to, "{left_out} lines like the next one were left out");
            }
            // Parts of it come from clients.
            let _ = writeln!(to, "{}", on_one_line(&line));
        }
    })?;
    Ok(Box::new(move |line| match sender.try_send(line.to_owned()) {
        Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
    }))
}

/// Limits the rate of lines.
struct Pace {
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl Pace {
    fn new(now: Instant) -> Self {
        Self { since: now, lines: 0, left_out: 0 }
    }

    /// Returns the number of lines dropped before this one. `None` if this one is dropped, too.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if now.saturating_duration_since(self.since) >= WHILE {
            (self.since, self.lines) = (now, 0);
        }
        if self.lines == MOST {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_who_cause_many_lines_do_not_flood_the_operator() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let shown = (0..1000).filter(|_| pace.next(start).is_some()).count();
        assert_eq!(shown, MOST as usize);
        assert_eq!(pace.next(start + WHILE), Some(1000 - u64::from(MOST)));
        assert_eq!(pace.next(start + WHILE), Some(0));
    }
}
