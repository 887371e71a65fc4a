//! The signals that ask the command to end.

use std::fs;
use std::io;

use rustix::process::{Signal, getpid};
use tokio::signal::unix::{SignalKind, signal};

/// The signals with which systems and terminals end programs, and what Ctrl-C sends.
const ENDING: [Signal; 3] = [Signal::TERM, Signal::HUP, Signal::INT];

/// Makes the signals end this process if it is the first one of a container. Without a handler the
/// kernel delivers none to such a process, whose default is to end. For commands that have nothing
/// to put in order at their end; a handler that is set later takes the place of this one.
pub(crate) fn end_as_first_process() {
    if getpid().is_init() {
        // Without the thread, it has to be killed.
        let _ = wait_in_thread();
    }
}

fn wait_in_thread() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let within = runtime.enter();
    let mut awaited = Vec::new();
    for ending in ENDING.into_iter().filter(|signal| !is_ignored(*signal)) {
        awaited.push((ending.as_raw(), signal(SignalKind::from_raw(ending.as_raw()))?));
    }
    drop(within);
    let wait = move || {
        let first = std::future::poll_fn(|context| {
            for (number, signal) in &mut awaited {
                if signal.poll_recv(context).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        });
        end(128 + runtime.block_on(first));
    };
    std::thread::Builder::new().name("isolet-signals".to_owned()).spawn(wait).map(drop)
}

#[expect(clippy::exit, reason = "as the signal does to any other process")]
fn end(status: i32) -> ! {
    std::process::exit(status)
}

/// Returns `true` if this process was started with a signal ignored, as `nohup` does with SIGHUP.
pub(crate) fn is_ignored(signal: Signal) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ignored(&status).is_some_and(|set| set & (1 << (signal.as_raw() - 1)) != 0)
}

/// Returns the set of ignored signals, from the kernel's status of a process.
fn ignored(status: &str) -> Option<u64> {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_set_of_ignored_signals_is_read() {
        assert_eq!(ignored("Name:\tx\nSigIgn:\t0000000000001001\nSigCgt:\t0\n"), Some(0x1001));
        assert_eq!(ignored("Name:\tx\n"), None);
        assert!(!is_ignored(Signal::TERM));
    }
}
