//! Tests of the guest's standard input.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Stdin, Termination, Value};

use crate::util::{eval, raised, run, sandbox, session};

fn fed(code: &str, input: impl Into<Vec<u8>>) -> Cell {
    Cell::new(code).stdin(Stdin::from_bytes(input))
}

#[tokio::test]
async fn every_way_to_read_gives_what_was_fed() {
    let mut session = session().await;
    let lines = || Value::from(vec!["a\n", "é\n", "c"]);
    let cases = [
        ("input(), input(), input()", Value::from(vec!["a", "é", "c"])),
        ("import sys\nsys.stdin.read()", Value::from("a\né\nc")),
        ("list(sys.stdin)", lines()),
        ("sys.stdin.readlines()", lines()),
        (
            "sys.stdin.readline(), sys.stdin.read(1), sys.stdin.read()",
            Value::from(vec!["a\n", "é", "\nc"]),
        ),
        ("sys.stdin.buffer.read()", Value::Bytes("a\né\nc".into())),
        ("import os\nos.read(0, 2)", Value::Bytes(b"a\n".to_vec())),
        ("open(0, closefd=False).read()", Value::from("a\né\nc")),
        ("import fileinput\nlist(fileinput.input('-'))", lines()),
    ];
    for (code, value) in cases {
        assert_eq!(eval(&mut session, fed(code, "a\né\nc")).await, value, "{code}");
    }
}

#[tokio::test]
async fn standard_input_has_the_name_it_has_in_python() {
    let name = run(fed("import sys\nsys.stdin.name, sys.stdin.buffer.raw.name", "")).await;
    assert_eq!(name.value(), Some(&Value::from(vec!["<stdin>", "<stdin>"])));
}

#[tokio::test]
async fn a_prompt_is_written_to_stdout() {
    let execution = run(fed("input('name? ')", "Ada\n")).await;
    assert_eq!(execution.value(), Some(&Value::from("Ada")));
    assert_eq!(execution.stdout(), "name? ");
}

#[tokio::test]
async fn nothing_fed_is_the_end_of_the_file() {
    let mut session = session().await;
    assert_eq!(raised(&mut session, "input()").await.type_name, "EOFError");
    assert_eq!(eval(&mut session, "import sys; sys.stdin.read()").await, Value::from(""));
    assert_eq!(raised(&mut session, fed("input(), input()", "a\n")).await.type_name, "EOFError");
}

#[tokio::test]
async fn what_one_run_leaves_unread_is_not_the_next_ones() {
    let mut session = session().await;
    assert_eq!(eval(&mut session, fed("input()", "a\nb\n")).await, Value::from("a"));
    assert_eq!(eval(&mut session, fed("input()", "c\n")).await, Value::from("c"));
    assert_eq!(raised(&mut session, "input()").await.type_name, "EOFError");
}

#[tokio::test]
async fn the_end_of_one_runs_input_is_not_the_next_ones() {
    let mut session = session().await;
    let code = "import sys; sys.stdin.read()";
    assert_eq!(eval(&mut session, fed(code, "a")).await, Value::from("a"));
    assert_eq!(eval(&mut session, fed(code, "b")).await, Value::from("b"));
}

#[tokio::test]
async fn bytes_that_are_no_text_are_read_as_bytes() {
    let mut session = session().await;
    let code = "import sys; sys.stdin.buffer.read()";
    let bytes: Vec<u8> = (0..=255).collect();
    assert_eq!(eval(&mut session, fed(code, bytes.clone())).await, Value::Bytes(bytes));
}

#[tokio::test]
async fn megabytes_are_read_whole() {
    let mut session = session().await;
    let input = vec![b'x'; 5 << 20];
    let value = eval(&mut session, fed("import sys; len(sys.stdin.read())", input)).await;
    assert_eq!(value, Value::Int(5 << 20));
}

#[tokio::test]
async fn a_blocked_read_is_ended_by_the_deadline() {
    let (reader, writer) = std::io::pipe().unwrap();
    let limits = Limits::default().max_run_time(Duration::from_millis(300));
    let mut session = sandbox(limits).session().await.unwrap();
    let cell = Cell::new("input()").stdin(Stdin::from_reader(reader));
    let execution = session.run(cell).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. })));
    drop(writer);
}

#[tokio::test]
async fn a_blocked_read_is_ended_by_an_interrupt() {
    for read in ["input()", "import sys; sys.stdin.read()", "import os; os.read(0, 1)"] {
        let (reader, writer) = std::io::pipe().unwrap();
        let mut session = session().await;
        let interrupt = session.interrupt_handle();
        let code = format!("x = 1\n__import__('os').write(1, b'ready')\n{read}");
        let cell = Cell::new(code).stdin(Stdin::from_reader(reader));
        let mut run = session.run_streaming(cell);
        run.next().await.unwrap();
        interrupt.interrupt();
        let execution = run.finish().await.unwrap();
        assert_eq!(*execution.outcome(), Outcome::Terminated(Termination::Interrupted), "{read}");
        assert_eq!(eval(&mut session, "x").await, Value::Int(1));
        drop(writer);
    }
}

#[tokio::test]
async fn a_reader_that_fails_is_the_end_of_the_file_or_an_error() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::ConnectionReset.into())
        }
    }
    let execution = run(Cell::new("input()").stdin(Stdin::from_reader(Broken))).await;
    let name = &execution.exception().unwrap().type_name;
    assert!(["EOFError", "OSError"].contains(&name.as_str()), "{name}");
}
