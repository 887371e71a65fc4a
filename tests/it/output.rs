//! Tests of the guest's output: separate streams, in order, within limits, and streamed.

use std::io::Write;
use std::time::Duration;

use isolet::{
    Cell, Limits, Outcome, Param, RunEvent, Session, Stdin, Stream, Termination, Tool, ToolSpec,
    Value,
};

use crate::util::{self, builder, eval, exec, run, sandbox, session};

#[tokio::test]
async fn stdout_and_stderr_are_kept_apart() {
    let code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nsys.stdout.write('more')";
    let execution = run(code).await;
    assert_eq!((execution.stdout(), execution.stderr()), ("out\nmore", "err\n"));
}

#[tokio::test]
async fn a_run_sees_only_its_own_output() {
    let mut session = session().await;
    exec(&mut session, "print('one', end='')").await;
    assert_eq!(exec(&mut session, "print('two')").await.stdout(), "two\n");
    assert_eq!(exec(&mut session, "1").await.stdout(), "");
}

#[tokio::test]
async fn output_before_an_exception_is_kept() {
    let execution = run("print('before', end='')\n1/0").await;
    assert!(execution.exception().is_some());
    assert_eq!((execution.stdout(), execution.stderr()), ("before", ""));
}

#[tokio::test]
async fn output_before_a_kill_is_kept() {
    let limits = Limits::default().max_run_time(Duration::from_millis(500));
    let code = "import sys\nprint('whole line')\nprint('half', end='')\n\
                print('err', end='', file=sys.stderr)\nwhile True: pass";
    let execution = sandbox(limits).run(code).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(_)));
    assert_eq!((execution.stdout(), execution.stderr()), ("whole line\nhalf", "err"));
}

#[tokio::test]
async fn output_past_its_limit_keeps_head_and_tail() {
    let limits = Limits::default().max_stdout_bytes(10).max_stderr_bytes(5);
    let code = "import string, sys\nfor c in string.ascii_lowercase: print(c, end='')\nprint()\n\
                print('12345', end='', file=sys.stderr)";
    let mut session = sandbox(limits).session().await.unwrap();
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.stdout(), "abcde\n[... 17 bytes dropped ...]\nwxyz\n");
    assert_eq!(execution.stderr(), "12345");
    let truncated = execution.truncated();
    assert_eq!((truncated.stdout_bytes, truncated.stderr_bytes), (17, 0));
    assert_eq!(execution.usage().stdout_bytes, 27);
    let execution = exec(&mut session, "print('x' * 9)").await;
    assert_eq!(execution.stdout(), "xxxxxxxxx\n");
    assert!(!execution.truncated().is_any());
}

#[tokio::test]
async fn all_output_is_streamed_whatever_is_kept() {
    let limits = Limits::default().max_stdout_bytes(100).max_stderr_bytes(10);
    let mut session = sandbox(limits).session().await.unwrap();
    let code = "import sys\nfor i in range(100):\n    print(i)\n    print(-i, file=sys.stderr)";
    let (chunks, execution) = collect(&mut session, code).await;
    let joined = |wanted: Stream| -> Vec<u8> {
        let of = chunks.iter().filter(|(stream, _)| *stream == wanted);
        of.flat_map(|(_, bytes)| bytes.clone()).collect()
    };
    let lines = |numbers: &mut dyn Iterator<Item = i32>| {
        numbers.flat_map(|number| format!("{number}\n").into_bytes()).collect::<Vec<u8>>()
    };
    assert_eq!(joined(Stream::Stdout), lines(&mut (0..100)));
    assert_eq!(joined(Stream::Stderr), lines(&mut (0..100).map(|number| -number)));
    assert_eq!(execution.truncated().stdout_bytes, 290 - 100);
    assert_eq!(execution.truncated().stderr_bytes, 389 - 10);
}

/// The guest waits for its reader. A reader that never reads delays neither the deadline nor the
/// result, and the session survives.
#[tokio::test]
async fn a_guest_that_waits_for_its_reader_is_stopped_at_its_deadline() {
    let mut session = session().await;
    let code = "n = 0\nwhile True:\n    print('x' * 999)\n    n += 1";
    let cell = Cell::new(code).timeout(Duration::from_millis(500));
    let mut run = session.run_streaming(cell);
    let mut output = run.take_output().unwrap();
    let execution = run.finish().await.unwrap();
    let Outcome::Terminated(Termination::Deadline { .. }) = execution.outcome() else {
        panic!("{execution:?}")
    };
    assert!(execution.session_alive());
    let mut read = 0;
    while let Some(chunk) = output.next().await.map(util::output) {
        read += chunk.bytes.len() as u64;
    }
    assert!(read <= Limits::QUEUED_OUTPUT_BYTES as u64, "{read}");
    assert_eq!(read + output.dropped().stdout_bytes, execution.usage().stdout_bytes);
    // In addition, only what waited in the socket of a worker was written.
    let written = eval(&mut session, "n * 1000").await.as_i64().unwrap();
    assert!(written < 8 << 20, "{written}");
}

/// A guest that catches its interrupts is killed while it waits.
#[tokio::test]
async fn a_guest_that_waits_for_its_reader_and_catches_everything_is_killed() {
    let mut session = session().await;
    let code = "while True:\n    try:\n        while True: print('x' * 999)\n    \
                except BaseException: pass";
    let cell = Cell::new(code).timeout(Duration::from_millis(500));
    let mut run = session.run_streaming(cell);
    let output = run.take_output().unwrap();
    let execution = run.finish().await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. })));
    assert!(!execution.session_alive());
    drop(output);
}

#[tokio::test]
async fn a_reader_that_goes_away_holds_up_nothing() {
    let mut session = session().await;
    let mut run = session.run_streaming("for _ in range(1000): print('x' * 9999)");
    let mut output = run.take_output().unwrap();
    let reader = tokio::spawn(async move { output.next().await });
    let execution = run.finish().await.unwrap();
    assert!(reader.await.unwrap().is_some());
    assert_eq!(execution.usage().stdout_bytes, 10_000_000);
    assert!(matches!(execution.outcome(), Outcome::Completed(None)));
}

#[tokio::test]
async fn chunks_of_both_streams_come_in_the_order_they_were_written() {
    let mut session = session().await;
    let code = "import os, sys\nprint('a')\nprint('b', file=sys.stderr)\nos.write(1, b'c\\n')\n\
                sys.stdout.buffer.write(b'd\\n')\nos.write(2, b'e\\n')\nprint('f')";
    let (chunks, _) = collect(&mut session, code).await;
    let text: String = chunks
        .iter()
        .flat_map(|(_, bytes)| bytes.iter().map(|byte| char::from(*byte)))
        .filter(|letter| *letter != '\n')
        .collect();
    assert_eq!(text, "abcdef");
}

#[tokio::test]
async fn output_is_seen_before_the_run_has_ended() {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let mut session = session().await;
    let cell = Cell::new("print('name?', end='')\nprint('hello', input())")
        .stdin(Stdin::from_reader(reader));
    let mut run = session.run_streaming(cell);
    let mut seen = Vec::new();
    while seen != b"name?" {
        seen.extend(util::output(run.next().await.unwrap()).bytes);
    }
    // The guest can continue only from here on.
    writer.write_all(b"Ada\n").unwrap();
    while let Some(chunk) = run.next().await.map(util::output) {
        seen.extend(chunk.bytes);
    }
    assert_eq!(run.finish().await.unwrap().stdout(), "name?hello Ada\n");
    assert_eq!(seen, b"name?hello Ada\n");
}

#[tokio::test]
async fn output_nobody_asked_for_is_kept_all_the_same() {
    let mut session = session().await;
    let execution = session.run_streaming("print('a')").finish().await.unwrap();
    assert_eq!(execution.stdout(), "a\n");
}

#[tokio::test]
async fn bytes_that_are_no_text_pass_unchanged() {
    let mut session = session().await;
    let code = "import sys\nn = sys.stdout.buffer.write(b'\\xff\\x00ok\\xc3')";
    let (chunks, execution) = collect(&mut session, code).await;
    let bytes: Vec<u8> = chunks.into_iter().flat_map(|(_, bytes)| bytes).collect();
    assert_eq!(bytes, b"\xff\x00ok\xc3");
    assert_eq!(execution.stdout(), "\u{fffd}\0ok\u{fffd}");
}

#[tokio::test]
async fn output_of_megabytes_is_whole() {
    let limits = Limits::default().max_stdout_bytes(u64::MAX);
    let execution = sandbox(limits).run("print('é' * (4 << 20))").await.unwrap();
    assert!(execution.stdout() == format!("{}\n", "é".repeat(4 << 20)));
    assert_eq!(execution.usage().stdout_bytes, (8 << 20) + 1);
}

#[tokio::test]
async fn a_replaced_stdout_is_the_guests_own() {
    let mut session = session().await;
    let code = "import contextlib, io\nbuffer = io.StringIO()\n\
                with contextlib.redirect_stdout(buffer):\n    print('inside')\n\
                print('outside')\nbuffer.getvalue()";
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.stdout(), "outside\n");
    assert_eq!(execution.value(), Some(&"inside\n".into()));
    let execution = exec(&mut session, "import sys\nsys.stdout = buffer\nprint('gone')").await;
    assert_eq!(execution.stdout(), "");
    let execution = exec(&mut session, "sys.stdout = sys.__stdout__\nprint('back')").await;
    assert_eq!(execution.stdout(), "back\n");
}

#[tokio::test]
async fn what_a_wrapped_stdout_buffers_is_flushed_at_the_end_of_the_run() {
    let code = "import io, sys\nsys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, 'w', \
                closefd=False)))\nn = sys.stdout.write('buffered')";
    assert_eq!(run(code).await.stdout(), "buffered");
}

#[tokio::test]
async fn texts_of_every_kind_arrive_as_they_were_written() {
    let code = "import random, sys
made = random.Random(7)
kinds = ['a', 'z~\\n\\0\\x7f', 'é', 'ÿ', 'Ā', '☃', '🐍', 'aé☃🐍']
class Text(str):
    def __str__(self): return 'not asked'
texts = [''.join(made.choices(kinds[n % 8], k=n % 300)) for n in range(1200)]
texts += [made.choice('ab') * n for n in (0, 1, 255, 256, 257, 4096, 100_000)]
counts = [sys.stdout.write(text) for text in texts] + [sys.stdout.write(Text('own'))]
assert counts == [len(text) for text in texts] + [3], 'another count'
for text in texts[:300]: print(text, end='', file=sys.stderr)
''.join(texts) + 'own', ''.join(texts[:300])";
    let execution = run(code).await;
    let expected = [execution.stdout(), execution.stderr()].map(Value::from);
    assert_eq!(execution.value(), Some(&Value::List(expected.into())), "{execution:?}");
}

#[tokio::test]
async fn what_is_no_text_is_a_type_error() {
    for value in ["b'bytes'", "7", "None", "object()", "'\\ud800'"] {
        let code = format!(
            "import sys\ntry: sys.stdout.write({value})\nexcept Exception as error: \
                            kind = type(error).__name__\nkind"
        );
        let execution = run(&*code).await;
        let kind = if value.starts_with('\'') { "UnicodeEncodeError" } else { "TypeError" };
        assert_eq!(execution.value(), Some(&kind.into()), "{value}");
        assert_eq!(execution.stdout(), "", "{value}");
    }
}

#[tokio::test]
async fn lines_of_every_kind_are_printed_as_into_any_other_file() {
    let code = "import contextlib, io, random
made = random.Random(8)
kinds = ['a', 'z~\\n\\0\\x7f', 'é', 'ÿ', 'Ā', '☃', '🐍', 'aé☃🐍']
class Text(str):
    def __str__(self): return 'asked'
lines = [''.join(made.choices(kinds[n % 8], k=n % 300)) for n in range(900)]
lines += [made.choice('ab') * n for n in (0, 1, 255, 256, 257, 4095, 4096, 4097, 100_000)]
lines += [Text('own'), 7, None, b'bytes', 1.5, print]
def everything():
    for line in lines: print(line)
    print()
    for line in lines: print(line, end='')
    print('two', 'texts'); print('one', flush=True); print('some', end='end'); print(*'ab', sep='')
    return print('none')
with contextlib.redirect_stdout(io.StringIO()) as file: everything()
assert everything() is None
file.getvalue()";
    let execution = run(code).await;
    assert_eq!(execution.value(), Some(&execution.stdout().into()), "{execution:?}");
}

#[tokio::test]
async fn what_print_calls_may_wait_for_a_tool() {
    let spec = ToolSpec::new("ask").param(Param::new("text"));
    let ask = Tool::from_handler(spec, |args, _| async move {
        tokio::task::yield_now().await;
        Ok(args.get("text").cloned().unwrap_or_default())
    });
    let sandbox = builder().tool(ask).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "import codecs, sys
class Slow:
    def __str__(self): return ask('slow')
class File:
    def write(self, text): return sys.__stdout__.write(ask(text))
class Encoder(codecs.IncrementalEncoder):
    def encode(self, text, final=False): return ask(text).encode()
def find(name):
    coded = lambda text, errors='strict': (ask(text).encode(), len(text))
    return codecs.CodecInfo(coded, None, incrementalencoder=Encoder) if name == 'asking' else None
codecs.register(find)
print(Slow())
print('a', Slow(), sep='-', end='.')
print()
sys.stdout = File()
print('line')
print('two', 'texts')
sys.stdout = sys.__stdout__
sys.stdout.reconfigure(encoding='asking')
print('last')
sys.stdout.write('of all')";
    let execution = exec(&mut session, code).await;
    let expected = "slow\na-slow.\nline\ntwo texts\nlast\nof all";
    assert_eq!(execution.stdout(), expected, "{execution:?}");
}

/// What a program can do to its output before it prints something.
struct Change {
    code: &'static str,
    /// What `print('héé\n', 'text')` prints then, or its error.
    texts: &'static str,
    /// The same for `print('line')`.
    line: &'static str,
}

const CLOSED: &str = "ValueError: I/O operation on closed file.";
const DETACHED: &str = "ValueError: underlying buffer has been detached";
const BAD_FILE: &str = "OSError: [Errno 9] Bad file descriptor";
const UNCHANGED: &str = "héé\n text\n";

#[rustfmt::skip]
const CHANGES: &[Change] = &[
    Change { code: "sys.stdout.close()", texts: CLOSED, line: CLOSED },
    Change { code: "sys.stdout.buffer.close()", texts: CLOSED, line: CLOSED },
    Change { code: "stream = sys.stdout; stream.detach()", texts: DETACHED, line: DETACHED },
    Change { code: "os.close(1)", texts: BAD_FILE, line: BAD_FILE },
    Change {
        code: "sys.stdout.reconfigure(newline='\\r\\n')",
        texts: "héé\r\n text\r\n",
        line: "line\r\n",
    },
    Change {
        code: "sys.stdout.reconfigure(encoding='ascii', errors='replace')",
        texts: "h??\n text\n",
        line: "line\n",
    },
    Change {
        code: "sys.stdout.reconfigure(encoding='utf-16-le')",
        texts: "h\0é\0é\0\n\0 \0t\0e\0x\0t\0\n\0",
        line: "l\0i\0n\0e\0\n\0",
    },
    Change {
        code: "sys.stdout.reconfigure(write_through=False); sys.stdout.write('first ')",
        texts: "first héé\n text\n",
        line: "first line\n",
    },
    Change {
        code: "sys.stdout.write = lambda text: sys.__stderr__.write(text.upper())",
        texts: "",
        line: "",
    },
    Change { code: "del sys.stdout.write", texts: UNCHANGED, line: "line\n" },
    Change {
        code: "write = sys.stdout.write; del sys.stdout.write; print('old'); sys.stdout.write = write",
        texts: "old\nhéé\n text\n",
        line: "old\nline\n",
    },
    Change {
        code: "for n in range(1000): setattr(sys.stdout, f'n{n}', n)\n\
               sys.stdout.write = lambda text: None",
        texts: "",
        line: "",
    },
    Change {
        code: "os.dup2(os.open('/tmp/printed', os.O_WRONLY | os.O_CREAT), 1)",
        texts: "",
        line: "",
    },
    Change {
        code: "import pyodide_js; from pyodide.ffi import to_js; from pyodide.code import run_js\n\
               pyodide_js.setStdout(run_js('({ batched() {} })'))",
        texts: "",
        line: "",
    },
    Change {
        code: "print('before', end=' '); os.write(1, b'between '); sys.stdout.flush()",
        texts: "before between héé\n text\n",
        line: "before between line\n",
    },
    Change { code: "sys.stdout = None", texts: "", line: "" },
    Change { code: "sys.stdout = sys.stderr", texts: "", line: "" },
    Change {
        code: "del sys.stdout",
        texts: "RuntimeError: lost sys.stdout",
        line: "RuntimeError: lost sys.stdout",
    },
    Change {
        code: "del sys.stdout, sys.stderr, sys.__stdout__",
        texts: "RuntimeError: lost sys.stdout",
        line: "RuntimeError: lost sys.stdout",
    },
    Change {
        code: "del sys.stdout; sys.stdout = sys.__stdout__",
        texts: UNCHANGED,
        line: "line\n",
    },
    Change {
        code: "for n in range(1000): setattr(sys, f'n{n}', n)\nprint('many'); sys.stdout = sys.stderr",
        texts: "many\n",
        line: "many\n",
    },
    Change {
        code: "vars(sys)[7] = 7; print('odd'); sys.stdout = sys.stderr",
        texts: "odd\n",
        line: "odd\n",
    },
    Change {
        code: "import builtins; builtins.print = lambda *texts: sys.stdout.write('mine')",
        texts: "mine",
        line: "mine",
    },
];

#[tokio::test]
async fn what_a_program_does_to_its_output_holds_for_what_it_prints_then() {
    for Change { code: change, texts, line } in CHANGES {
        for (print, expected) in [("print('héé\\n', 'text')", texts), ("print('line')", line)] {
            let code = format!(
                "import os, sys\nprint('', end='')\nprint('line before')\ntry:\n    exec({change:?})\n    \
                 {print}\nexcept Exception as error:\n    \
                 sys.__stderr__.write(f'{{type(error).__name__}}: {{error}}')"
            );
            let mut session = session().await;
            let execution = exec(&mut session, &*code).await;
            let is_error = expected.contains("Error: ");
            let found = if is_error {
                execution.stderr()
            } else {
                execution.stdout().strip_prefix("line before\n").unwrap_or("no line before")
            };
            let latin = |text: &str| text.replace("\u{e9}\0", "\u{fffd}\0");
            assert_eq!(found, latin(expected), "{change}; {print}");
            // The next run has whole streams again, unless the program wanted it otherwise.
            if is_error {
                let execution = exec(&mut session, "print('again')").await;
                assert_eq!(execution.stdout(), "again\n", "{change}");
            }
        }
    }
}

#[tokio::test]
async fn warnings_and_logs_go_to_stderr() {
    let code = "import logging, warnings\nlogging.error('log')\nwarnings.warn('careful')";
    let execution = run(code).await;
    assert_eq!(execution.stdout(), "");
    assert!(execution.stderr().starts_with("ERROR:root:log\n<cell>:3: UserWarning: careful"));
}

async fn collect(session: &mut Session, code: &str) -> (Vec<(Stream, Vec<u8>)>, isolet::Execution) {
    let mut run = session.run_streaming(code);
    let mut chunks = Vec::new();
    while let Some(chunk) = run.next().await.map(util::output) {
        chunks.push((chunk.stream, chunk.bytes));
    }
    (chunks, run.finish().await.unwrap())
}

#[tokio::test]
async fn a_run_and_its_output_are_streams_of_futures() {
    use futures_util::StreamExt;

    let text = |events: Vec<RunEvent>| {
        let bytes = events.into_iter().filter_map(|event| match event {
            RunEvent::Output(chunk) => Some(chunk.bytes),
            _ => None,
        });
        String::from_utf8(bytes.flatten().collect()).unwrap()
    };
    let code = "for i in range(3): print(i)\ni";
    let mut session = session().await;
    let mut run = session.run_streaming(code);
    let events = run.by_ref().collect().await;
    assert_eq!(text(events), "0\n1\n2\n");
    assert_eq!(run.finish().await.unwrap().value(), Some(&Value::Int(2)));

    let mut run = session.run_streaming(code);
    let output = run.take_output().unwrap();
    let (events, execution) = tokio::join!(output.collect(), run.finish());
    assert_eq!((text(events).as_str(), execution.unwrap().stdout()), ("0\n1\n2\n", "0\n1\n2\n"));
}
