//! Runs tests that would disturb others in a separate process, with a time limit.

use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Far more than any such test takes. Beyond it the test fails.
pub const AT_MOST: Duration = Duration::from_mins(2);

/// The environment variable that names the test for which this process was started.
const VARIABLE: &str = "ISOLET_TEST_CHILD";

/// Runs the test with this full name again in a separate process, and returns its output. Returns
/// `None` in that process, which must then do the work.
pub fn in_child(test: &str, set_up: impl FnOnce(&mut Command)) -> Option<Output> {
    #[expect(clippy::disallowed_methods, reason = "how the tests call themselves")]
    if std::env::var(VARIABLE).is_ok_and(|name| name == test) {
        return None;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(VARIABLE, test).stdin(Stdio::null());
    set_up(&mut command);
    Some(output_in_time(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
}

/// Waits for a process. Kills it and fails if that takes too long.
#[must_use]
pub fn output_in_time(child: Child) -> Output {
    let pid = child.id().to_string();
    let (sender, receiver) = mpsc::channel();
    // The thread ends with the process.
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    if let Ok(output) = receiver.recv_timeout(AT_MOST) {
        return output.unwrap();
    }
    // The process has not been waited for, so its number has not been reused.
    let _ = Command::new("kill").args(["-KILL", &pid]).status();
    panic!("process {pid} did not end in {AT_MOST:?}: {:?}", receiver.recv());
}
