//! The node's lines on standard error: a queue that never blocks who writes to it, and a thread
//! that writes them.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// The maximum number of queued lines. More are dropped while nobody reads standard error.
const WAITING: usize = 4096;

/// The length from which queued lines are not gathered further before they are written.
const GATHERED_BYTES: usize = 32 << 10;

/// The maximum number of paced lines within [`WHILE`], because clients cause them.
const MOST: u32 = 10;
const WHILE: Duration = Duration::from_secs(10);

/// The longest time that [`StandardError::end`] waits for lines to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the thread gets.
enum Entry {
    Line(String),
    /// A line that is left out if there are many like it.
    Paced(String),
    /// Everything before it has to be written before this is answered.
    End(SyncSender<()>),
}

/// Says how many lines were left out because nobody has read standard error, or of many like the
/// next one.
pub(super) enum LeftOut {
    Unread(u64),
    Alike(u64),
}

/// Standard error. Its calls never block: lines that exceed the queue are dropped and counted.
#[derive(Clone)]
pub(super) struct StandardError {
    entries: SyncSender<Entry>,
    dropped: Arc<AtomicU64>,
}

impl StandardError {
    /// Starts the thread. `say` makes a line of what was left out.
    pub(super) fn open(say: impl Fn(LeftOut) -> String + Send + 'static) -> io::Result<Self> {
        let (entries, queue) = sync_channel(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let lost = Arc::clone(&dropped);
        thread::Builder::new().name("isolet-stderr".to_owned()).spawn(move || {
            // Standard error may be closed.
            write_all(&queue, &lost, say, |text| drop(io::stderr().lock().write_all(text)));
        })?;
        Ok(Self { entries, dropped })
    }

    /// Queues a line.
    pub(super) fn line(&self, line: String) {
        self.queue(Entry::Line(line));
    }

    /// Queues a line that clients can cause.
    pub(super) fn paced(&self, line: String) {
        self.queue(Entry::Paced(line));
    }

    fn queue(&self, entry: Entry) {
        match self.entries.try_send(entry) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Waits until what was queued is written, if somebody reads it.
    pub(super) fn end(&self) {
        let (done, written) = sync_channel(1);
        let entries = self.entries.clone();
        // The queue may be full, of lines that are read now.
        let waiting = thread::Builder::new().spawn(move || entries.send(Entry::End(done)));
        if waiting.is_ok() {
            // A reader that is too slow misses the rest.
            let _ = written.recv_timeout(FAREWELL);
        }
    }
}

/// Writes all lines of a queue, as many at once as there are.
fn write_all(
    queue: &Receiver<Entry>,
    lost: &AtomicU64,
    say: impl Fn(LeftOut) -> String,
    mut write: impl FnMut(&[u8]),
) {
    let mut pace = Pace::new(Instant::now());
    let (mut text, mut ends) = (String::new(), Vec::new());
    while let Ok(mut entry) = queue.recv() {
        text.clear();
        loop {
            let unread = lost.swap(0, Ordering::Relaxed);
            if unread > 0 {
                add(&mut text, &say(LeftOut::Unread(unread)));
            }
            match entry {
                Entry::Line(line) => add(&mut text, &line),
                Entry::Paced(line) => {
                    if let Some(left_out) = pace.next(Instant::now()) {
                        if left_out > 0 {
                            add(&mut text, &say(LeftOut::Alike(left_out)));
                        }
                        add(&mut text, &line);
                    }
                }
                Entry::End(done) => ends.push(done),
            }
            if text.len() >= GATHERED_BYTES {
                break;
            }
            let Ok(next) = queue.try_recv() else { break };
            entry = next;
        }
        write(text.as_bytes());
        for done in ends.drain(..) {
            // Whoever waits may have given up.
            let _ = done.try_send(());
        }
    }
}

fn add(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
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
    use std::sync::mpsc::channel;

    use super::*;

    /// How long a test waits for what it expects.
    const LONGEST: Duration = Duration::from_mins(1);

    #[test]
    fn clients_who_cause_many_lines_do_not_flood_the_operator() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let shown = (0..1000).filter(|_| pace.next(start).is_some()).count();
        assert_eq!(shown, MOST as usize);
        assert_eq!(pace.next(start + WHILE), Some(1000 - u64::from(MOST)));
        assert_eq!(pace.next(start + WHILE), Some(0));
    }

    #[test]
    fn the_end_waits_for_lines_that_fill_the_queue() {
        let (entries, queue) = sync_channel(1);
        let to = StandardError { entries, dropped: Arc::default() };
        to.line("only".to_owned());
        let (read, texts) = channel();
        let lost = Arc::clone(&to.dropped);
        thread::spawn(move || {
            write_all(&queue, &lost, |_| String::new(), |text| read.send(text.to_vec()).unwrap());
        });
        to.end();
        assert_eq!(texts.recv_timeout(LONGEST).unwrap(), b"only\n");
    }

    #[test]
    fn who_writes_to_a_full_pipe_does_not_wait_and_what_is_lost_is_counted() {
        let (entries, queue) = sync_channel(4);
        let to = StandardError { entries, dropped: Arc::default() };
        let lost = Arc::clone(&to.dropped);
        let ((read, pipe), (written, texts)) = (channel::<()>(), channel::<String>());
        let say = |left_out| match left_out {
            LeftOut::Unread(lines) => format!("{lines} lost"),
            LeftOut::Alike(lines) => format!("{lines} alike"),
        };
        let writer = thread::spawn(move || {
            write_all(&queue, &lost, say, |text| {
                written.send(String::from_utf8(text.to_vec()).unwrap()).unwrap();
                // As a pipe that is full until somebody reads it.
                let _ = pipe.recv();
            });
        });
        let next = || texts.recv_timeout(LONGEST).unwrap();
        to.line("first".to_owned());
        assert_eq!(next(), "first\n");
        for nth in 0..10 {
            to.line(nth.to_string());
        }
        read.send(()).unwrap();
        assert_eq!(next(), "6 lost\n0\n1\n2\n3\n");
        read.send(()).unwrap();
        to.line("last".to_owned());
        assert_eq!(next(), "last\n");
        drop((read, to));
        writer.join().unwrap();
    }
}
