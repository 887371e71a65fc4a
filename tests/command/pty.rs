//! A terminal of 60 columns and 20 lines that runs the command, and the contents of its screen.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;

use isolet_test_support::{LONGEST, assets_dir, ended, program};

pub(crate) const COLUMNS: u16 = 60;
pub(crate) const ROWS: u16 = 20;

/// Runs a line of shell in a terminal, and forwards its input and output.
const RELAY: &str = "import os, pty, sys\n\
    start = f'stty cols {sys.argv[1]} rows {sys.argv[2]}; ' + sys.argv[3]\n\
    status = pty.spawn(['sh', '-c', start, 'sh', *sys.argv[4:]])\n\
    sys.exit(os.waitstatus_to_exitcode(status))";

/// A terminal with a running program.
pub(crate) struct Pty {
    child: Option<Child>,
    input: ChildStdin,
    shown: mpsc::Receiver<Vec<u8>>,
    /// All output so far.
    pub(crate) bytes: Vec<u8>,
    parser: vt100::Parser,
}

impl Pty {
    /// Starts `isolet` with these arguments.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::start_with(args, "exec \"$@\"", &[])
    }

    /// Starts a line of shell, which gets `isolet` and its arguments as `"$@"`, and additional
    /// variables.
    pub(crate) fn start_with(args: &[&str], line: &str, variables: &[(&str, &str)]) -> Self {
        let [columns, rows] = [COLUMNS, ROWS].map(|count| NonZero::new(count).unwrap());
        let size = [columns, rows].map(|count| count.to_string());
        let mut child = Command::new("python3")
            .args(["-c", RELAY])
            .args(size)
            .args([line, &program()])
            .args(args)
            .env(isolet_test_support::ASSETS_VARIABLE, assets_dir())
            .env("TERM", "xterm-256color")
            .env_remove("NO_COLOR")
            .env_remove("COLORTERM")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = child.stdout.take().unwrap();
        let (sender, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self {
            child: Some(child),
            input,
            shown,
            bytes: Vec::new(),
            parser: vt100::Parser::new(rows, columns, 0),
        }
    }

    /// Types a text.
    pub(crate) fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
        self.input.flush().unwrap();
    }

    /// Returns the contents of the screen: its lines without trailing blanks.
    pub(crate) fn screen(&self) -> String {
        self.parser.screen().contents()
    }

    /// Returns a character of the screen, with its colours.
    pub(crate) fn cell(&self, row: u16, column: u16) -> &vt100::Cell {
        self.parser.screen().cell(row, column).unwrap()
    }

    /// Waits until the screen matches, within the time limit of a test.
    pub(crate) fn wait_for(&mut self, is_there: impl Fn(&str) -> bool) {
        while !is_there(&self.screen()) {
            match self.shown.recv_timeout(LONGEST) {
                Ok(bytes) => self.show(&bytes),
                Err(error) => panic!("{error}; on the screen:\n{}", self.screen()),
            }
        }
    }

    /// Waits for the end of the program. The screen stays as it is.
    pub(crate) fn end(&mut self) -> Option<i32> {
        loop {
            match self.shown.recv_timeout(LONGEST) {
                Ok(bytes) => self.show(&bytes),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(error) => panic!("{error}; on the screen:\n{}", self.screen()),
            }
        }
        self.child.take().and_then(|child| ended(child).code())
    }

    fn show(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.parser.process(bytes);
    }
}

impl Drop for Pty {
    /// Closes the terminal, which ends the program, if a test has failed before its end.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
