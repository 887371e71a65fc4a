//! Tests that would spoil the others call themselves in a process of their own, whose end is waited
//! for so long and no longer.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Far more than any of them takes; past it the test has failed.
pub(crate) const AT_MOST: Duration = Duration::from_mins(2);

/// Names the test that this process was started for.
const VARIABLE: &str = "ISOLET_TEST_CHILD";

/// Runs the test of this full name again, in a process of its own, and returns what became of it;
/// `None` in that process, which is to do the work.
pub(crate) fn in_child(test: &str, set_up: impl FnOnce(&mut Command)) -> Option<Output> {
    #[expect(clippy::disallowed_methods, reason = "how the tests call themselves")]
    if std::env::var(VARIABLE).is_ok_and(|name| name == test) {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(VARIABLE, test).stdin(Stdio::null());
    set_up(&mut command);
    Some(output_in_time(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

/// Waits for a process, and kills it and fails if that takes too long.
pub(crate) fn output_in_time(child: Child) -> Output {
    let pid = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    // It ends with the process.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = receiver.recv_timeout(AT_MOST) {
        return output.unwrap();
    }
    // It has not been waited for, so the number is still its own.
    let _ = Command::new("kill").args(["-KILL", &pid]).status();
    panic!("process {pid} did not end in {AT_MOST:?}: {:?}", receiver.recv());
}
