//! The object of `isolet run --json`: its fields are a contract.

use serde_json::{Value, json};

use crate::util::{isolet, isolet_fed};

/// Runs `code` and returns the object and the status.
fn report(code: &str) -> (Value, Option<i32>) {
    let ran = isolet(["run", "--json", "--timeout", "5s", "-c", code]);
    assert_eq!(ran.stderr, "", "{code}");
    assert_eq!(ran.stdout.matches('\n').count(), 1, "{code}");
    (serde_json::from_str(&ran.stdout).unwrap(), ran.code)
}

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_completed_run_has_all_fields() {
    let (report, code) = report("x = 20; print(\"hi\"); x + 22");
    assert_eq!(code, Some(0));
    let mut names = keys(&report);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "duration_ms",
            "exception",
            "exit_code",
            "locals",
            "repr",
            "status",
            "stderr",
            "stdout",
            "success",
            "truncated",
            "usage",
            "value",
        ]
    );
    assert_eq!(report["status"], "completed");
    assert_eq!(report["success"], true);
    assert_eq!(report["stdout"], "hi\n");
    assert_eq!(report["stderr"], "");
    assert_eq!(report["value"], 42);
    assert_eq!(report["repr"], "42");
    assert_eq!(report["exception"], Value::Null);
    assert_eq!(report["exit_code"], Value::Null);
    assert_eq!(report["locals"], json!({"x": "20"}));
    assert_eq!(report["truncated"], false);
    assert!(report["duration_ms"].as_f64().unwrap() > 0.0);
    let mut names = keys(&report["usage"]);
    names.sort_unstable();
    assert_eq!(
        names,
        ["peak_memory_bytes", "stderr_bytes", "stdout_bytes", "tool_calls", "wall_time_ms"]
    );
    assert_eq!(report["usage"]["stdout_bytes"], 3);
}

#[test]
fn a_raised_run_has_its_exception() {
    let (report, code) = report("import sys; print('e', file=sys.stderr)\nraise KeyError('k', 1)");
    assert_eq!(
        (&report["status"], &report["success"], code),
        (&json!("raised"), &json!(false), Some(1))
    );
    assert_eq!(report["stderr"], "e\n");
    let exception = &report["exception"];
    assert_eq!(exception["type"], "KeyError");
    assert_eq!(exception["message"], "('k', 1)");
    assert_eq!(exception["args"], json!(["k", 1]));
    assert!(exception["traceback"].as_str().unwrap().ends_with("KeyError: ('k', 1)\n"));
    assert_eq!(exception["cause"], Value::Null);
    assert_eq!(report["diagnostics"]["error_type"], "KeyError");
    assert_eq!(report["value"], Value::Null);
}

#[test]
fn what_is_no_text_leaves_the_object_readable() {
    let (report, code) = report("raise ValueError('\\ud800')");
    assert_eq!((&report["exception"]["message"], code), (&json!("\\ud800"), Some(1)));
}

#[test]
fn an_exit_has_its_status() {
    let (exited, code) = report("import sys; sys.exit(7)");
    assert_eq!(
        (&exited["status"], &exited["exit_code"], code),
        (&json!("exited"), &json!(7), Some(7))
    );
    assert_eq!((&exited["success"], &exited["exception"]), (&json!(false), &Value::Null));
    let (exited, code) = report("raise SystemExit");
    assert_eq!(
        (&exited["success"], &exited["exit_code"], code),
        (&json!(true), &json!(0), Some(0))
    );
}

#[test]
fn a_run_past_its_time_has_diagnostics() {
    let ran =
        isolet(["run", "--json", "--timeout", "1500ms", "-c", "print('kept')\nwhile True: pass"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(3), ""));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["status"], &report["stdout"]), (&json!("terminated"), &json!("kept\n")));
    let diagnostics = &report["diagnostics"];
    assert_eq!(diagnostics["error_type"], "TIMEOUT");
    assert_eq!(diagnostics["timeout_seconds"], 1.5);
    assert!(diagnostics["message"].as_str().unwrap().contains("1.5 s"));
}

#[test]
fn a_value_that_cannot_cross_has_a_repr_and_diagnostics() {
    let (report, code) = report("class A:\n    def __repr__(self): return 'an A'\nA()");
    assert_eq!((&report["status"], code), (&json!("completed"), Some(0)));
    assert_eq!((&report["value"], &report["repr"]), (&Value::Null, &json!("an A")));
    assert_eq!(report["diagnostics"]["error_type"], "VALUE");
}

#[test]
fn values_are_written_as_json_can() {
    let cases = [
        ("None", json!(null)),
        ("[1, 2.5, 'é', True, (None,)]", json!([1, 2.5, "é", true, [null]])),
        ("2 ** 63 - 1", json!(i64::MAX)),
        ("float('nan')", json!(null)),
        ("{1: 'a', None: 'b', True: 'c'}", json!({"1": "c", "null": "b"})),
        ("b'ab'", json!([97, 98])),
    ];
    for (code, value) in cases {
        assert_eq!(report(code).0["value"], value, "{code}");
    }
    // Past 64 bits, where the parser of this test would make it a float.
    let ran = isolet(["run", "--json", "-c", "-2 ** 64"]);
    assert!(ran.stdout.contains(r#""value":-18446744073709551616,"#), "{}", ran.stdout);
}

#[test]
fn output_past_its_limit_is_marked() {
    let ran = isolet(["run", "--json", "--max-output", "4", "-c", "print('abcdefgh')"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["truncated"], true);
    assert_eq!(report["stdout"], "ab\n[... 5 bytes dropped ...]\nh\n");
    assert_eq!(report["usage"]["stdout_bytes"], 9);
}

#[test]
fn failures_of_the_host_are_no_object() {
    let ran = isolet(["run", "--json", "nosuch.py"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    assert!(ran.stderr.starts_with("error: "));
}

#[test]
fn what_the_guest_prints_is_inside_the_object_only() {
    let code = "print('{\"status\": \"completed\"}')\nimport os; os.write(1, b'\\xff\\x00')";
    let ran = isolet_fed(["run", "--json", "-"], code);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["stdout"], "{\"status\": \"completed\"}\n\u{fffd}\0");
}
