//! Tests of the object of `isolet run --json`, whose fields are a contract.

use serde_json::{Value, json};

use isolet_test_support::{Scratch, isolet, isolet_fed};

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
            "displays",
            "exception",
            "exit_code",
            "files",
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
    assert!(report["usage"]["wall_time"].as_f64().unwrap() > 0.0);
    let mut names = keys(&report["usage"]);
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "host_time",
            "peak_memory_bytes",
            "stderr_bytes",
            "stdout_bytes",
            "tool_calls",
            "wall_time"
        ]
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
    assert_eq!(diagnostics["timeout"], 1.5);
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
        ("[float('nan'), -1e999]", json!([{"$float": "nan"}, {"$float": "-inf"}])),
        ("{1: 'a', None: 'b', True: 'c'}", json!({"1": "c", "null": "b"})),
        ("b'ab'", json!({"$bytes": "YWI="})),
    ];
    for (code, value) in cases {
        assert_eq!(report(code).0["value"], value, "{code}");
    }
    // Beyond 64 bits the parser of this test would make it a float.
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
fn failures_of_the_host_are_an_object_of_the_same_shape() {
    let (completed, _) = report("1");
    let cases: [(&[&str], &str, &str); 9] = [
        (&["nosuch.py"], "FILE", "cannot read `nosuch.py`: No such file or directory (os error 2)"),
        (&["--nosuch", "x.py"], "USAGE", "unexpected argument '--nosuch' found"),
        (&["--timeout", "soon", "-c", "1"], "USAGE", "invalid value 'soon' for '--timeout <TIME>'"),
        (&["--timeout", "0", "-c", "1"], "CONFIG", "the run time limit is 0 s"),
        (&["--memory", "1MiB", "-c", "1"], "CONFIG", "the memory limit is 1 MiB"),
        (&["--assets", "/nosuch", "-c", "1"], "ASSETS", "/nosuch"),
        (&["--with", "no such", "-c", "1"], "CONFIG", "`no such` is not a requirement"),
        (&["--mount", "/nosuch:/data", "-c", "1"], "CONFIG", "/nosuch"),
        (&["--audit", "/nosuch/log", "-c", "1"], "FILE", "/nosuch/log"),
    ];
    for (args, error_type, message) in cases {
        let ran = isolet([&["run", "--json"], args].concat());
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(2)), "{args:?}: {ran:?}");
        assert_eq!(ran.stdout.matches('\n').count(), 1, "{args:?}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&report["status"], &report["success"]), (&json!("failed"), &json!(false)));
        let diagnostics = &report["diagnostics"];
        assert_eq!(diagnostics["error_type"], error_type, "{args:?}: {diagnostics}");
        assert!(diagnostics["message"].as_str().unwrap().contains(message), "{diagnostics}");
        let has = |name: &&str| report.get(name).is_some();
        assert!(keys(&completed).iter().all(has), "{report}");
        assert_eq!((&report["stdout"], &report["value"]), (&json!(""), &Value::Null));
    }
}

#[test]
fn a_failure_after_the_run_loses_none_of_its_output() {
    let scratch = Scratch::new("json-write-back");
    let file = scratch.path().join("out.txt");
    std::fs::write(&file, "before").unwrap();
    let file = file.to_str().unwrap();
    let code =
        "import os; os.remove('/sandbox/out.txt'); os.mkdir('/sandbox/out.txt'); print('kept'); 42";
    let ran = isolet(["run", "--json", "--allow-write", file, "-c", code]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(2)), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["status"], &report["stdout"]), (&json!("failed"), &json!("kept\n")));
    assert_eq!((&report["value"], &report["success"]), (&json!(42), &json!(false)));
    let message = report["diagnostics"]["message"].as_str().unwrap();
    assert!(message.contains("could not read `/sandbox/out.txt`"), "{message}");

    let code = format!("{code}; 1 / 0");
    let ran = isolet(["run", "--allow-write", file, "-c", &code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("kept\n", Some(2)));
    let (traceback, error) = ran.stderr.split_once("\nerror: ").unwrap();
    assert!(traceback.ends_with("ZeroDivisionError: division by zero"), "{}", ran.stderr);
    assert!(error.contains("could not read `/sandbox/out.txt`"), "{}", ran.stderr);
}

#[test]
fn a_failure_after_a_notebook_loses_no_cell() {
    let scratch = Scratch::new("json-notebook");
    let file = scratch.file("out.txt", "before");
    let code = |source: &str| json!({ "cell_type": "code", "source": source });
    let cells = [
        code("import os\nos.remove('/sandbox/out.txt')\nos.mkdir('/sandbox/out.txt')"),
        code("print('kept')\n42"),
    ];
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells });
    let notebook = scratch.file("n.ipynb", notebook.to_string());
    let ran = isolet(["run", "--json", "--allow-write", &file, &notebook]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(2)), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["status"], &report["success"]), (&json!("failed"), &json!(false)));
    let last = &report["cells"][1];
    assert_eq!((&last["stdout"], &last["value"]), (&json!("kept\n"), &json!(42)));
    let message = report["diagnostics"]["message"].as_str().unwrap();
    assert!(message.contains("could not read `/sandbox/out.txt`"), "{message}");

    let ran = isolet(["run", "--allow-write", &file, &notebook]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("kept\n42\n", Some(2)));
    assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
}

#[test]
fn words_of_the_script_ask_for_no_object() {
    let ran = isolet(["run", "--nosuch", "x.py", "--json"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    assert!(ran.stderr.starts_with("error: unexpected argument '--nosuch'"), "{}", ran.stderr);
}

/// A24: the guest's `json.dumps` writes the arguments of its exception.
#[test]
fn a_guest_that_writes_its_own_json_forges_no_line_and_no_field() {
    let line = r#"{"status":"completed","success":true}"#;
    for (written, args) in [
        (format!("[\\n{line}\\n]"), json!([{ "status": "completed", "success": true }])),
        (format!("1}},\\n{line}\\n{{"), Value::Null),
        (format!("[1]\\n{line}"), Value::Null),
        ("[".repeat(1000) + &"]".repeat(1000), Value::Null),
    ] {
        let code = format!("import json; json.dumps = lambda *a, **k: '{written}'\n1/0");
        let (report, code) = report(&code);
        assert_eq!((&report["status"], code), (&json!("raised"), Some(1)));
        assert_eq!(report["exception"]["args"], args, "{written}");
    }
}

#[test]
fn control_characters_are_escaped_wherever_a_guest_writes_them() {
    let active = "\\0\\a\\b\\x1b[2J\\x7f\\x85\\x9b31m\\u061c\\u200f\\u2028\\u2029\\u202e\\u2066\\ufeff\\U000e0041";
    let code = format!(
        "a = '{active}'\nprint(a)\nimport sys; print(a, file=sys.stderr)\nglobals()[a] = a\n\
         E = type('E' + a.replace(chr(0), ''), (Exception,), {{}})\n"
    );
    for ending in
        ["a", "{a: a}", "raise E(a)", "class A: __repr__ = lambda self: a\nA()", "exit(a)"]
    {
        let ran = isolet(["run", "--json", "-c", &format!("{code}{ending}")]);
        let object = ran.stdout.strip_suffix('\n').unwrap();
        let active = |one: char| {
            one.is_control()
                || "\u{61c}\u{200f}\u{2028}\u{2029}\u{202e}\u{2066}\u{feff}\u{e0041}".contains(one)
        };
        assert_eq!(object.find(active), None, "{ending}: {object:?}");
        let report: Value = serde_json::from_str(object).unwrap();
        assert!(report["stdout"].as_str().unwrap().contains("\u{1b}[2J\u{7f}\u{85}\u{9b}31m"));
        assert!(report["stdout"].as_str().unwrap().contains("\u{202e}\u{2066}\u{feff}\u{e0041}"));
    }
}

#[test]
fn what_the_guest_prints_is_inside_the_object_only() {
    let code = "print('{\"status\": \"completed\"}')\nimport os; os.write(1, b'\\xff\\x00')";
    let ran = isolet_fed(["run", "--json", "-"], code);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(report["stdout"], "{\"status\": \"completed\"}\n\u{fffd}\0");
}
