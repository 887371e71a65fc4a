//! Tests of the command with `--isolation thread`: each kind of surface works on threads too.

use serde_json::{Value, json};

use crate::mcp::client::{self, Client};
use crate::node::Node;
use crate::serve;
use isolet_test_support::{Ran, Scratch, isolet, isolet_fed};

const THREAD: [&str; 2] = ["--isolation", "thread"];

/// Runs a subcommand on threads.
fn on_a_thread(subcommand: &str, args: &[&str]) -> Ran {
    isolet([&[subcommand][..], &THREAD, args].concat())
}

#[test]
fn code_has_output_and_an_exit_status() {
    let ran = on_a_thread("run", &["-c", "import sys; print(40 + 2); sys.exit(7)"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("42\n", "", Some(7)));
}

#[test]
fn a_time_limit_ends_a_run() {
    let ran = on_a_thread("run", &["--timeout", "500ms", "-c", "while True: pass"]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("the limit is 0.5 s (`--timeout`)"), "{ran:?}");
}

#[test]
fn a_memory_limit_is_kept_for_python_and_for_javascript() {
    let python = "try: bytes(10**9)\nexcept MemoryError: print('refused')";
    let ran = on_a_thread("run", &["--memory", "256MiB", "-c", python]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("refused\n", Some(0)), "{ran:?}");
    let javascript = "import js\nkept = js.Array.new()\n\
        while True: kept.push(js.Array.new(1000).fill(0.5))";
    let ran = on_a_thread("run", &["--memory", "256MiB", "-c", javascript]);
    assert_eq!(ran.code, Some(3), "{ran:?}");
}

#[test]
fn a_mount_is_read_and_nothing_beside_it() {
    let scratch = Scratch::new("thread-mount");
    scratch.file("there", "canary");
    let mount = format!("{}:/data", scratch.path().display());
    let code = "print(open('/data/there').read())\nopen('/data/new', 'w')";
    let ran = on_a_thread("run", &["--mount", &mount, "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("canary\n", Some(1)), "{ran:?}");
    assert!(!scratch.path().join("new").exists());
}

#[test]
fn the_network_is_denied_until_it_is_allowed() {
    let server = isolet_test_support::server::Server::with_text("hello");
    let code = format!(
        "import urllib.request; print(urllib.request.urlopen('{}').read())",
        server.url("/")
    );
    let ran = on_a_thread("run", &["-c", &code]);
    assert_eq!((server.connections(), ran.code), (0, Some(1)), "{ran:?}");
    let ran = on_a_thread("run", &["--allow-net", &server.rule(), "-c", &code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("b'hello'\n", Some(0)), "{ran:?}");
}

#[test]
fn a_report_is_json() {
    let ran = on_a_thread("run", &["--json", "-c", "[1, 2.5, None]"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&report["status"], &report["value"]),
        (&json!("completed"), &json!([1, 2.5, null]))
    );
}

#[test]
fn a_notebook_runs_cell_by_cell() {
    let scratch = Scratch::new("thread-notebook");
    let cell = |source: &str| json!({ "cell_type": "code", "source": source, "metadata": {} });
    let cells = [cell("a = 40"), cell("print(a + 2)")];
    let notebook = json!({ "nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells });
    let ran = on_a_thread("run", &[&scratch.file("n.ipynb", notebook.to_string())]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("42\n", Some(0)), "{ran:?}");
}

#[test]
fn a_prompt_keeps_its_variables() {
    let args = [&["repl"][..], &THREAD].concat();
    let ran = isolet_fed(args, "a = 40\na + 2\n");
    assert!(ran.stdout.contains("42"), "{ran:?}");
}

#[test]
fn a_package_is_loaded() {
    let scratch = Scratch::new("thread-package");
    isolet_test_support::wheel(scratch.path(), "greeting", "1", "WORD = 'hello'\n");
    let wheels = scratch.path().to_str().unwrap();
    let args = ["--offline", "--wheels", wheels, "--with", "greeting", "-c"];
    let args = [&args[..], &["import greeting; print(greeting.WORD)"]].concat();
    let ran = on_a_thread("run", &args);
    assert_eq!((ran.stdout.as_str(), ran.code), ("hello\n", Some(0)), "{ran:?}");
}

#[tokio::test]
async fn a_node_serves_sessions() {
    let node = Node::start(&THREAD);
    let id = node.session(&json!({})).await;
    node.run(&id, "a = 40").await;
    let (status, execution) = node.run(&id, "a + 2").await;
    assert_eq!((status, &execution["value"]), (200, &json!(42)));
}

#[test]
fn a_model_runs_python_over_mcp() {
    let mut mcp = Client::start(&THREAD);
    let result = mcp.run("print(40 + 2)");
    assert!(client::text(&result).contains("42"), "{result}");
}

#[test]
fn a_pipe_serves_sessions() {
    let mut client = serve::Client::greeted(&THREAD);
    assert_eq!(client.ask(&json!(["sandbox", 2, 1, {}])), json!({}));
    let isolation = client.ask(&json!(["session", 3, 1, 1]));
    assert_eq!(isolation["isolation"], "thread");
    assert_eq!(client.ask(&json!(["run", 4, 1, "40 + 2"]))["value"], 42);
    assert_eq!(client.end(), Some(0));
}
