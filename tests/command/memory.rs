//! Tests of the limit of a session's memory: what Python and JavaScript are refused, what ends the
//! session, and that other sessions are unaffected.

use isolet_test_support::isolet;

#[test]
fn the_command_shows_memory_error_and_exits_with_1() {
    let ran = isolet(["run", "--memory", "256MiB", "-c", "x = bytearray(10**9)"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected = "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n    \
                    x = bytearray(10**9)\nMemoryError\n\nhint: `--memory` says how much memory a session \
                    may have\n";
    assert_eq!(ran.stderr, expected);
}

#[test]
fn the_command_exits_with_3_when_javascript_fills_its_heap() {
    let code = "from pyodide.code import run_js\nrun_js('const k = []; for (;;) k.push({})')";
    let ran = isolet(["run", "--memory", "128MiB", "-c", code]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let line = ran.stderr.lines().last().unwrap();
    assert!(
        line.contains(
            "the limit is 67108864 bytes, which follows from `--memory`; the session is closed"
        ),
        "{line}"
    );
    let ran = isolet(["run", "--json", "--memory", "128MiB", "-c", code]);
    assert!(ran.stdout.contains(r#""error_type":"MEMORY""#), "{}", ran.stdout);
}

#[test]
fn the_command_refuses_a_memory_that_is_too_small() {
    for command in
        [["run", "--memory", "1MiB", "-c", "1"].as_slice(), &["repl", "--memory", "1MiB"]]
    {
        let ran = isolet(command);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("the memory limit is 1 MiB; the minimum is 64 MiB"), "{ran:?}");
    }
}
