//! Tests of `isolet monty` at its wire, for what Monty's own clients never send. What they do send
//! is tested with them: `python/tests/adapters/test_monty.py`.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc;

use isolet_test_support::{LONGEST, command, ended};

/// Fields of the protocol: `ParentRequest`.
const CONFIGURE: u8 = 1;
const FEED: u8 = 3;
const RESUME_CALL: u8 = 4;
const DUMP: u8 = 7;
const SHUTDOWN: u8 = 10;

/// `ChildEvent`.
const PRINT: u8 = 1;
const FUNCTION_CALL: u8 = 2;
const COMPLETE: u8 = 6;
const ERROR: u8 = 7;
const OK: u8 = 10;
const FATAL: u8 = 11;

/// A protobuf field of bytes.
fn field(number: u8, contents: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = contents.len();
    while length > 0x7f {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    bytes.extend_from_slice(contents);
    bytes
}

/// `Configure` of this version of the protocol.
fn configure(protocol: u8) -> Vec<u8> {
    field(CONFIGURE, &[9 << 3, protocol])
}

fn feed(code: &str) -> Vec<u8> {
    field(FEED, &field(1, code.as_bytes()))
}

struct Client {
    worker: Option<Child>,
    input: Option<ChildStdin>,
    events: mpsc::Receiver<Vec<u8>>,
}

impl Client {
    fn start() -> Self {
        let mut worker =
            command(["subprocess"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = worker.stdout.take().unwrap();
        let (sender, events) = mpsc::channel();
        std::thread::spawn(move || {
            let mut head = [0; 4];
            while output.read_exact(&mut head).is_ok() {
                let mut event = vec![0; u32::from_le_bytes(head) as usize];
                output.read_exact(&mut event).unwrap();
                if sender.send(event).is_err() {
                    break;
                }
            }
        });
        Self { input: worker.stdin.take(), worker: Some(worker), events }
    }

    /// Starts a worker with a session.
    fn with_session() -> Self {
        let mut client = Self::start();
        client.ask(&configure(6), OK, "");
        client
    }

    fn send(&mut self, request: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(&u32::try_from(request.len()).unwrap().to_le_bytes()).unwrap();
        input.write_all(request).unwrap();
    }

    /// Sends a request and waits for an event of this kind with this text in it.
    fn ask(&mut self, request: &[u8], kind: u8, text: &str) -> Vec<u8> {
        self.send(request);
        let event = self.events.recv_timeout(LONGEST).unwrap();
        let shown = String::from_utf8_lossy(&event).into_owned();
        assert_eq!(event[0] >> 3, kind, "{shown}");
        assert!(shown.contains(text), "{shown}");
        event
    }

    /// Waits for the end of the worker and returns its status.
    fn status(&mut self) -> Option<i32> {
        ended(self.worker.take().unwrap()).code()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        drop(self.input.take());
        if let Some(mut worker) = self.worker.take() {
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

#[test]
fn another_version_of_the_protocol_is_refused_with_both() {
    for version in [0, 4, 7] {
        let mut client = Client::start();
        let said = format!(
            "the client speaks version {version} of the worker protocol, isolet {} speaks 5 to 6",
            env!("CARGO_PKG_VERSION")
        );
        client.ask(&configure(version), FATAL, &said);
        assert_eq!(client.status(), Some(2));
    }
    Client::start().ask(&configure(5), OK, "");
}

#[test]
fn what_is_no_request_ends_the_worker_with_a_reason() {
    for (garbage, reason) in [
        (&[0xff_u8; 7][..], "a request cannot be read"),
        (&[0xa2, 1, 1, b'x'], "a request has no kind"),
    ] {
        let mut client = Client::start();
        client.ask(garbage, FATAL, reason);
        assert_eq!(client.status(), Some(2));
    }
}

#[test]
fn a_request_that_does_not_fit_is_refused_and_the_worker_goes_on() {
    let mut client = Client::start();
    client.ask(&feed("1"), ERROR, "protocol violation: Feed before Configure");
    client.ask(&configure(6), OK, "");
    client.ask(&configure(6), ERROR, "protocol violation: Configure in a session");
    let nothing_waits = "protocol violation: ResumeCall while nothing waits";
    client.ask(&field(RESUME_CALL, &[]), ERROR, nothing_waits);
    client.ask(&field(DUMP, &[]), ERROR, "a session of CPython cannot be saved");

    client.ask(&feed("ask(1)"), FUNCTION_CALL, "ask");
    let other_call = field(RESUME_CALL, &[1 << 3, 9]);
    client.ask(&other_call, ERROR, "the answer is to call 9, call 0 waits");
    client.ask(&feed("2"), ERROR, "Feed cannot answer a call");
    let not_found = field(RESUME_CALL, &field(2, &field(4, b"ask")));
    client.ask(&not_found, ERROR, "name 'ask' is not defined");
    client.ask(&feed("3"), COMPLETE, "");
    client.ask(&field(SHUTDOWN, &[]), OK, "");
    assert_eq!(client.status(), Some(0));
}

#[test]
fn a_guest_that_lies_about_its_values_is_refused_and_the_session_lives() {
    let lie = |nodes: &str| {
        format!(
            "import sys\nmodule = sys.modules['_monty_session']\nkept = module.completed\n\
             def completed():\n    module.completed = kept\n    return {nodes}\n\
             module.completed = completed"
        )
    };
    let mut client = Client::with_session();
    for (told, reason) in [
        ("['complete', [['list', 0]], 0]", "node 0 is malformed: it refers to node 0"),
        ("['complete', [1], 1]", "it refers to node 1"),
        ("['complete', [['date', 1 << 40, 1, 1]], 0]", "1099511627776 is out of range"),
        ("['raised', 'ValueError', 5, []]", "a field is an int, not a str"),
        ("['nothing']", "its kind is \"nothing\""),
        ("None", "it is no list"),
    ] {
        client.ask(&feed(&lie(told)), ERROR, reason);
    }
    for (asked, reason) in [
        ("['call', 'f', [0], [], [], None, None]", "it refers to node 0"),
        ("['system', 'sleep', [-1.0], None]", "a sleep of -1 seconds is out of range"),
        ("['system', 'remove_everything', [], None]", "is unknown"),
        ("5", "a question is a list"),
    ] {
        let code = format!("__import__('sys').modules['_monty_session'].ask({asked})");
        client.ask(&feed(&code), ERROR, reason);
    }
    client.ask(&feed("'still ' + 'here'"), COMPLETE, "still here");
}

#[test]
fn the_end_of_the_input_ends_a_busy_worker() {
    let mut client = Client::with_session();
    client.ask(&feed("print('begun')\nwhile True: pass"), PRINT, "begun");
    drop(client.input.take());
    assert_eq!(client.status(), Some(0));
}
