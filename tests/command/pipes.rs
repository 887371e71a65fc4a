//! Tests of the output of `isolet run`: complete to pipes and files, and with readers that are
//! slow, stuck or gone.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};

use crate::command::is_one_sentence;
use isolet_test_support::{Ran, command, ended, isolet};

#[test]
fn output_beyond_the_limit_is_said_to_be_left_out_and_the_status_is_3() {
    let code = "import sys; print('abcdefghijklmnopqrstuvwxyz'); print('é', file=sys.stderr)";
    let ran = isolet(["run", "--max-output", "10", "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("abcdefghij", Some(3)));
    let said = "é\nerror: of 27 bytes of standard output only the first 10 were passed on, as \
                `--max-output` says\n";
    assert_eq!(ran.stderr, said);
    let ran = isolet(["run", "--max-output", "27", "-c", code]);
    assert_eq!((ran.stdout.len(), ran.code), (27, Some(0)));
    // If the guest itself fails, that status stays.
    let ran = isolet(["run", "--max-output", "1", "-c", "print('ab'); 1/0"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("a", Some(1)));
    assert!(ran.stderr.ends_with("as `--max-output` says\n"), "{}", ran.stderr);
}

#[test]
fn output_passes_through_as_it_comes_byte_for_byte() {
    let mut child =
        command(["run", "-c", "import sys\nsys.stdout.buffer.write(b'\\xff\\n')\ninput()"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
    let mut line = [0; 2];
    child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
    assert_eq!(&line, b"\xff\n");
    // The guest can end only from here on.
    drop(child.stdin.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_reader_that_goes_away_ends_the_run_quietly() {
    let mut child = command(["run", "--timeout", "1h", "-c", "while True: print('y')"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "y\n");
    let ran: Ran = child.wait_with_output().unwrap().into();
    // 128 + SIGPIPE, as for other programs whose reader is gone.
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(141)));
}

#[test]
fn a_guest_that_goes_on_without_a_reader_is_ended() {
    let code =
        "while True:\n    try:\n        while True: print('y')\n    except BaseException: pass";
    let mut child = command(["run", "--timeout", "1h", "-c", code])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stderr = child.stderr.take().unwrap();
    assert_eq!(ended(child).code(), Some(141));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said, "");
}

/// The output is complete although it exceeds all buffers. The guest waits, so that our memory use
/// stays small.
#[test]
#[cfg(target_os = "linux")]
fn output_to_a_slow_reader_is_whole_and_takes_no_memory() {
    const LINES: u64 = 256;
    const LINE: u64 = 1 << 20;
    let code = format!("for i in range({LINES}):\n    print(format(i, '0>{}'))\ninput()", LINE - 1);
    let mut child = command(["run", "--timeout", "1h", "-c", &code])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::with_capacity(512, child.stdout.take().unwrap());
    let mut line = String::new();
    for number in 0..LINES {
        line.clear();
        stdout.read_line(&mut line).unwrap();
        assert_eq!(line.len() as u64, LINE);
        assert_eq!(
            line.trim_start_matches('0').trim_end(),
            number.to_string().trim_start_matches('0')
        );
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < LINES * LINE / 1024 / 2, "{peak}");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(ended(child).code(), Some(0));
}

/// Starts a command whose standard output nobody reads. Returns once the guest has begun to write.
fn unread(timeout: &str) -> (Child, ChildStdout, BufReader<ChildStderr>) {
    let code = "import sys\nprint('begun', file=sys.stderr)\nwhile True: print('y' * 99)";
    let mut child = command(["run", "--timeout", timeout, "-c", code])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.take().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert_eq!(line, "begun\n");
    (child, stdout, stderr)
}

#[test]
fn a_reader_that_takes_nothing_holds_up_no_deadline() {
    let (child, stdout, mut stderr) = unread("1s");
    assert_eq!(ended(child).code(), Some(3));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("the limit is 1 s"), "{said}");
    assert!(said.contains(" bytes of standard output are lost: "), "{said}");
    drop(stdout);
}

#[test]
#[cfg(unix)]
fn a_reader_that_takes_nothing_holds_up_no_interrupt() {
    let (child, stdout, mut stderr) = unread("1h");
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert_eq!(ended(child).code(), Some(130));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert!(said.contains("the run was interrupted"), "{said}");
    drop(stdout);
}

#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let output = command(["run", "-c", "while True: print('y')"]).stdout(full).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(is_one_sentence(&said) && said.contains("No space left on device"), "{said}");
    assert_eq!(output.status.code(), Some(2));
}
