//! Tests of the MCP server's executor: `profile::sandboxed_executor`.

use std::time::Duration;

use isolet::profile::sandboxed_executor::{
    Access, ExecutionResult, SandboxOptions, SandboxedExecutor,
};
use isolet::{ErrorKind, Value};
use serde_json::json;

use crate::util::{Scratch, engine};
use isolet_test_support::server::Server;

const TIMEOUT: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_millis(1500);

fn executor() -> SandboxedExecutor {
    SandboxedExecutor::new(engine(), SandboxOptions::default())
}

fn executor_of(max_output_chars: usize) -> SandboxedExecutor {
    let mut options = SandboxOptions::default();
    options.max_output_chars = max_output_chars;
    SandboxedExecutor::new(engine(), options)
}

async fn run(executor: &mut SandboxedExecutor, code: &str) -> ExecutionResult {
    executor.run(code, TIMEOUT, [("unused", Value::None); 0]).await.unwrap()
}

/// Returns a result as JSON, without the time that it took.
fn timeless(result: &ExecutionResult) -> serde_json::Value {
    let mut json = serde_json::to_value(result).unwrap();
    assert!(json.as_object_mut().unwrap().remove("duration_ms").unwrap().is_u64());
    json
}

fn diagnosis(result: &ExecutionResult) -> serde_json::Value {
    serde_json::to_value(&result.diagnostics).unwrap()
}

#[tokio::test]
async fn a_success_has_the_five_fields_and_no_diagnostics() {
    let result = run(&mut executor(), "import sys; print('é'); print('e', file=sys.stderr)").await;
    let expected = json!({"success": true, "stdout": "é\n", "stderr": "e\n", "diagnostics": null});
    assert_eq!(timeless(&result), expected);
    let text = serde_json::to_string(&result).unwrap();
    let expected = format!(
        r#"{{"success":true,"stdout":"é\n","stderr":"e\n","duration_ms":{},"diagnostics":null}}"#,
        result.duration_ms
    );
    assert_eq!(text, expected);
}

#[tokio::test]
async fn stdout_ends_in_the_value_on_a_line_of_its_own() {
    let mut executor = executor();
    let cases = [
        ("print('a'); 1 + 1", "a\n2"),
        ("print('a', end=''); 'it\\'s'", "a\nit's"),
        ("'é\\n'", "é\n"),
        ("''", ""),
        ("[1, 'a', None]", "[1, 'a', None]"),
        ("(1,)", "(1,)"),
        ("{1}", "{1}"),
        ("b'x'", "b'x'"),
        ("1.0", "1.0"),
        ("False", "False"),
        ("None", ""),
        ("x = 1", ""),
        ("import decimal; decimal.Decimal('1.50')", "Decimal('1.50')"),
        ("class A:\n    def __repr__(self): return 'an A'\nA()", "an A"),
        ("'\\ud800'", "'\\ud800'"),
    ];
    for (code, expected) in cases {
        let result = run(&mut executor, code).await;
        assert_eq!((result.success, result.stdout.as_str()), (true, expected), "{code}");
    }
}

#[tokio::test]
async fn an_exception_is_a_failure_that_keeps_the_output() {
    let code = "import sys\nprint('out')\nprint('err', end='', file=sys.stderr)\nint('x')";
    let result = run(&mut executor(), code).await;
    assert!(!result.success);
    assert_eq!(result.stdout, "out\n");
    let message = "ValueError: invalid literal for int() with base 10: 'x'";
    assert_eq!(result.stderr, format!("err\n{message}"));
    let traceback = format!(
        "Traceback (most recent call last):\n  File \"<cell>\", line 4, in <module>\n    int('x')\n    ~~~^^^^^\n{message}\n"
    );
    let expected = json!({"error_type": "ValueError", "traceback": traceback});
    assert_eq!(diagnosis(&result), expected);
}

#[tokio::test]
async fn a_timeout_is_a_failure_that_keeps_the_output_and_the_executor_lives_on() {
    let mut executor = executor();
    let code = "x = 1\nprint('so far')\nwhile True: pass";
    let result = executor.run(code, SHORT, [("y", 2)]).await.unwrap();
    let expected = json!({
        "success": false,
        "stdout": "so far\n",
        "stderr": "Execution timed out after 1.50s",
        "diagnostics": {"error_type": "TIMEOUT", "timeout_seconds": 1.5},
    });
    assert_eq!(timeless(&result), expected);
    assert!((1500..5000).contains(&result.duration_ms), "{}", result.duration_ms);
    // An interrupted run keeps its state, a killed one does not.
    let result = run(&mut executor, "(x, y)").await;
    assert_eq!((result.success, result.stdout.as_str()), (true, "(1, 2)"));
    let result = executor.run("sum(range(10**12))", SHORT, [("z", 3)]).await.unwrap();
    assert_eq!(result.stderr, "Execution timed out after 1.50s");
    let result = run(&mut executor, "[name for name in 'xyz' if name in globals()]").await;
    assert_eq!((result.success, result.stdout.as_str()), (true, "[]"));
}

#[tokio::test]
async fn each_run_has_a_timeout_of_its_own() {
    let mut executor = executor();
    let code = "import time; time.sleep(0.3); 1";
    let none = [("unused", Value::None); 0];
    let long = executor.run(code, TIMEOUT, none.clone()).await.unwrap();
    let short = executor.run(code, Duration::from_millis(100), none.clone()).await.unwrap();
    let longest = executor.run(code, Duration::MAX, none).await.unwrap();
    assert_eq!([long.success, short.success, longest.success], [true, false, true]);
    assert_eq!(short.stderr, "Execution timed out after 0.10s");
}

#[tokio::test]
async fn a_guest_that_never_takes_variables_cannot_outlast_the_timeout() {
    let mut executor = executor();
    let code = "import gc, types\ngc.unfreeze()\n\
                def spin(*args):\n    while True: pass\n\
                for found in gc.get_objects():\n    \
                if type(found) is types.FunctionType and found.__name__ == 'main_namespace':\n        \
                found.__globals__['main_namespace'] = spin\n        print('rewritten')";
    assert_eq!(run(&mut executor, code).await.stdout, "rewritten\n");
    let result = executor.run("1", Duration::from_millis(500), [("x", 1)]).await.unwrap();
    assert_eq!(
        (result.success, result.stderr.as_str()),
        (false, "Execution timed out after 0.50s")
    );
    assert_eq!(diagnosis(&result), json!({"error_type": "TIMEOUT", "timeout_seconds": 0.5}));
    let result = executor.run("x", TIMEOUT, [("x", 2)]).await.unwrap();
    assert_eq!((result.success, result.stdout.as_str()), (true, "2"));
}

#[tokio::test]
async fn a_timeout_of_zero_is_an_error() {
    let error = executor().run("1", Duration::ZERO, [("x", 1)]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.to_string(), "timeout must be greater than zero seconds");
}

#[tokio::test]
async fn state_lasts_from_run_to_run() {
    let mut executor = executor();
    run(&mut executor, "import math\nx = 20\ndef f(): return x + 22").await;
    assert!(!run(&mut executor, "1/0").await.success);
    assert_eq!(run(&mut executor, "math.floor(f())").await.stdout, "42");
}

#[tokio::test]
async fn variables_arrive_as_they_are() {
    let text = "it's \"quoted\"\n\\ ''' {} % __import__('os')\0\u{1f600}";
    let variables = [
        ("text", Value::from(text)),
        ("numbers", Value::from(vec![f64::NAN, f64::INFINITY])),
        ("nothing", Value::None),
        ("table", Value::Dict(vec![(Value::Int(1), Value::bytes(*b"\xff"))])),
    ];
    let code = "assert nothing is None\nprint(numbers, table)\ntext";
    let result = executor().run(code, TIMEOUT, variables).await.unwrap();
    assert_eq!(result.stdout, format!("[nan, inf] {{1: b'\\xff'}}\n{text}"));
}

#[tokio::test]
async fn a_variable_that_cannot_be_bound_is_an_error_and_the_session_lives_on() {
    let mut executor = executor();
    run(&mut executor, "x = 1").await;
    let variables = [("fine", Value::Int(1)), ("not fine", Value::Int(2))];
    let error = executor.run("x = 2", TIMEOUT, variables).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    assert_eq!(run(&mut executor, "x, 'fine' in globals()").await.stdout, "(1, False)");
}

#[tokio::test]
async fn long_output_is_cut_by_characters_and_says_how_many_are_missing() {
    let mut executor = executor_of(10);
    let code = "import sys\nprint('é' * 12)\nprint('e' * 11, end='', file=sys.stderr)\n'value'";
    let result = run(&mut executor, code).await;
    assert_eq!(result.stdout, format!("{}... [truncated 8 chars]", "é".repeat(10)));
    assert_eq!(result.stderr, format!("{}... [truncated 1 chars]", "e".repeat(10)));
    let result = run(&mut executor, "'0123456789'").await;
    assert_eq!(result.stdout, "0123456789");
    // The error text is truncated separately.
    let code = "import sys\nprint('e' * 11, end='', file=sys.stderr)\nraise ValueError('no')";
    let result = run(&mut executor, code).await;
    assert_eq!(
        result.stderr,
        "eeeeeeeeee... [truncated 1 chars]\nValueError... [truncated 4 chars]"
    );
}

#[tokio::test]
async fn the_limit_of_output_is_32768_by_default_and_zero_is_none() {
    let long = "print('x' * 40_000, end='')";
    let cut = run(&mut executor(), long).await.stdout;
    assert_eq!(cut, format!("{}... [truncated 7232 chars]", "x".repeat(32_768)));
    assert_eq!(run(&mut executor_of(0), long).await.stdout.len(), 40_000);
    // More than a session keeps by default.
    let much = run(&mut executor_of(2_000_000), "print('é' * 2_000_001, end='')").await.stdout;
    assert!(much.ends_with("é... [truncated 1 chars]") && much.starts_with("éé"));
    assert_eq!(much.matches('é').count(), 2_000_000);
}

#[tokio::test]
async fn an_exit_is_a_failure_unless_its_status_is_zero() {
    let mut executor = executor();
    run(&mut executor, "x = 1").await;
    let result = run(&mut executor, "print('a')\nraise SystemExit(3)").await;
    assert_eq!((result.success, result.stdout.as_str()), (false, "a\n"));
    assert_eq!(result.stderr, "SystemExit: 3");
    let diagnosis = diagnosis(&result);
    assert_eq!(diagnosis["error_type"], "SystemExit");
    assert!(diagnosis["traceback"].as_str().unwrap().ends_with("SystemExit: 3\n"));
    let result = run(&mut executor, "print('a')\nraise SystemExit").await;
    assert_eq!((result.success, result.stdout.as_str()), (true, "a\n"));
    assert_eq!(run(&mut executor, "x").await.stdout, "1");
    // This also ends the interpreter.
    let result = run(&mut executor, "import os; os._exit(3)").await;
    assert_eq!((result.success, result.stderr.as_str()), (false, "SystemExit: 3"));
    assert_eq!(run(&mut executor, "'x' in globals()").await.stdout, "False");
}

#[tokio::test]
async fn a_lost_interpreter_is_a_failure_and_the_executor_lives_on() {
    let mut executor = executor();
    let result = run(&mut executor, "print('a')\nimport os; os.abort()").await;
    assert_eq!((result.success, result.stdout.as_str()), (false, "a\n"));
    assert!(result.stderr.contains("\nthe interpreter died: "), "{}", result.stderr);
    assert_eq!(diagnosis(&result)["error_type"], "DIED");
    assert_eq!(run(&mut executor, "1 + 1").await.stdout, "2");
}

#[tokio::test]
async fn an_abandoned_run_leaves_the_executor_usable() {
    let mut executor = executor();
    let run_forever = run(&mut executor, "while True: pass");
    assert!(tokio::time::timeout(Duration::from_millis(500), run_forever).await.is_err());
    assert_eq!(run(&mut executor, "1 + 1").await.stdout, "2");
}

#[tokio::test]
async fn permissions_are_in_force_and_nothing_else_is() {
    let scratch = Scratch::new("sandboxed-executor");
    let server = Server::with_text("inside");
    let mut options = SandboxOptions::default();
    options.enable_network_access = true.into();
    options.enable_env_vars = vec!["PATH".to_owned()].into();
    options.enable_read_paths = vec![scratch.file("in.txt", "read").into()];
    options.enable_write_paths = vec![scratch.path().join("out.txt")];
    let mut executor = SandboxedExecutor::new(engine(), options);
    assert_eq!(executor.options().enable_network_access, Access::All);
    let code = format!(
        "import os, urllib.request\nopen('/sandbox/out.txt', 'w').write('written')\n\
         [open('/sandbox/in.txt').read(), 'PATH' in os.environ, 'HOME' in os.environ, len(os.environ), \
         os.path.exists('/etc'), urllib.request.urlopen({:?}).read()]",
        server.url("/")
    );
    let result = run(&mut executor, &code).await;
    assert_eq!(result.stdout, "['read', True, True, 2, False, b'inside']", "{result:?}");
    assert_eq!(std::fs::read_to_string(scratch.path().join("out.txt")).unwrap(), "written");
    let refused = run(&mut executor, "urllib.request.urlopen('http://example.com/')").await;
    assert_eq!(refused.diagnostics.unwrap().error_type, "PermissionError");
}

#[test]
fn access_is_a_bool_or_a_list() {
    assert_eq!([Access::from(true), Access::from(false)], [Access::All, Access::Denied]);
    let hosts = vec!["localhost".to_owned()];
    assert_eq!(Access::from(hosts.clone()), Access::Only(hosts));
    assert_eq!(SandboxOptions::default().enable_network_access, Access::Denied);
}
