//! Tests that without permissions a guest sees nothing of the host.
//!
//! Passing tests show that the obvious ways out of Python and JavaScript are closed. They show
//! nothing about bugs in V8.

use isolet_test_support::{command, isolet};

const CANARY: &str = "canary-5f1d0c9e";

#[test]
fn the_commands_environment_is_not_the_guests() {
    let ran = command(["run", "-c", "import os; print(dict(os.environ), os.popen)"])
        .env("SECRET", CANARY)
        .output()
        .unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    assert!(stdout.starts_with("{'HOME': '/home/user'} "), "{stdout}");
}

#[test]
fn javascript_cannot_write_past_the_captured_streams() {
    let code = "from pyodide.code import run_js\n\
                for s in ['Deno.core.ops.op_print(\"leak\",false)', 'Deno.core.print(\"leak\")']:\n    \
                    try: run_js(s)\n    except Exception: pass";
    let ran = isolet(["run", "--json", "-c", code]);
    assert!(ran.stdout.starts_with('{'), "{}", ran.stdout);
}

#[test]
fn javascript_cannot_end_the_hosts_process() {
    let code = "from pyodide.code import run_js\nrun_js('Deno.core.ops.op_panic(\"x\")')";
    let ran = isolet(["run", "-c", code]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}
