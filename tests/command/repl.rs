//! Tests of `isolet repl` with its standard input from a pipe.

use isolet_test_support::{Ran, isolet_fed};

fn repl(input: &str) -> Ran {
    isolet_fed(["repl", "--timeout", "1s"], input)
}

#[test]
fn values_are_echoed_and_none_is_not() {
    let ran = repl("1 + 1\nNone\n'a'\nx = 5\nx; x + 1\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("2\n'a'\n6\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn blocks_end_with_an_empty_line() {
    let ran = repl(
        "def f(x):\n    y = x + 1\n\n    return y\n\nf(1)\nfor i in range(2):\n    print(i)\n\nf(2)\n",
    );
    assert!(ran.stderr.contains("IndentationError"), "as in python: {}", ran.stderr);
    let ran = repl(
        "def f(x):\n    y = x + 1\n    return y\n\nf(1)\nfor i in range(2):\n    print(i)\n\nf(2)\n",
    );
    assert_eq!((ran.stdout.as_str(), ran.code), ("2\n0\n1\n3\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn an_error_is_shown_and_the_session_goes_on() {
    let ran = repl("x = 1\n1/0\nx +\nx + 1\n_ + 1\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("2\n3\n", Some(0)), "{}", ran.stderr);
    assert!(ran.stderr.contains("ZeroDivisionError: division by zero\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("SyntaxError: invalid syntax\n"), "{}", ran.stderr);
}

#[test]
fn an_exit_ends_it_with_its_status() {
    let ran = repl("1\nimport sys\nsys.exit(3)\n2\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("1\n", Some(3)), "{}", ran.stderr);
    assert_eq!(repl("exit()\n2\n").code, Some(0));
}

#[test]
fn a_run_past_its_time_gives_way_to_a_new_session() {
    let ran = repl("x = 1\nprint('kept')\nx = sum(iter(int, 1))\n'x' in globals()\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("kept\nFalse\n", Some(0)), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("the limit is 1 s") && ran.stderr.contains("new one"),
        "{}",
        ran.stderr
    );
}

#[test]
fn tasks_and_awaits_work_at_the_prompt() {
    let ran = repl("import asyncio\nawait asyncio.sleep(0, 'slept')\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("'slept'\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn an_unfinished_block_at_the_end_of_the_input_is_run() {
    let ran = repl("if True:\n    print('last')");
    assert_eq!((ran.stdout.as_str(), ran.code), ("last\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn a_run_reads_the_line_that_it_asks_for_and_no_other() {
    let ran = repl("name = input()\nAda\nimport sys\nsys.stdin.readline()\nx\nprint('hi', name)\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("'x\\n'\nhi Ada\n", Some(0)), "{}", ran.stderr);
}
