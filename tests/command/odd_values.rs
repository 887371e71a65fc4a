//! Tests of values whose methods fail in every way: on each surface the output is kept, the answer
//! says what is wrong, and the session lives with its variables.

use serde_json::json;

use crate::mcp::client::{self, Client};
use crate::node::Node;
use isolet_test_support::odd_values::{AFTER, HERE, cell, setup};
use isolet_test_support::{Scratch, isolet, isolet_fed};

/// The methods that something calls on every surface, and by which values are shown.
const SHOWN: [&str; 4] = ["__repr__", "[__repr__]", "_repr_html_", "_repr_mimebundle_"];

/// The names of the values that are shown by these methods.
fn names() -> Vec<String> {
    let ran = isolet(["run", "-c", &format!("{}\nprint(*values.NAMES, sep='\\n')", setup())]);
    let is_shown = |name: &&str| SHOWN.iter().any(|method| name.starts_with(&format!("{method} ")));
    let names: Vec<_> = ran.stdout.lines().filter(is_shown).map(str::to_owned).collect();
    assert!(names.len() > 100, "{ran:?}");
    names
}

#[test]
fn they_end_no_notebook_and_no_prompt() {
    let scratch = Scratch::new("odd-values");
    let names = names();
    let cells = [setup()].into_iter();
    let cells = cells.chain(names.iter().flat_map(|name| [cell(name), AFTER.to_owned()]));
    let cells: Vec<_> = cells
        .map(|source| {
            json!({
                "cell_type": "code", "source": source, "outputs": [],
                "metadata": {"tags": ["raises-exception"]},
            })
        })
        .collect();
    let file = json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells});
    let path = scratch.file("odd.ipynb", file.to_string());
    let ran = isolet(["run", "--json", &path]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let told = report["cells"].as_array().unwrap();
    assert_eq!((told.len(), ran.code), (cells.len(), Some(0)), "{:?}", told.last());
    let lived = told.iter().filter(|cell| cell["value"] == HERE).count();
    assert_eq!(lived, names.len());

    // As at python's prompt, a repr that exits is the end.
    let exits = |name: &&String| name.ends_with("SystemExit") || name.ends_with("Exits");
    let names: Vec<_> = names.iter().filter(|name| !exits(name)).collect();
    let lines = names.iter().map(|name| {
        let line = cell(name).replace('\n', "; ");
        format!("{line}\n{AFTER}\n")
    });
    let ran = isolet_fed(["repl"], setup() + "\n" + &lines.collect::<String>());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches(HERE).count(), names.len(), "{}", ran.stderr);
    assert_eq!(ran.stdout.matches("before\n").count(), names.len());
}

#[tokio::test]
async fn they_end_no_session_of_a_node_or_of_mcp() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    node.run(&id, &setup()).await;
    let mut mcp = Client::start(&[]);
    let handle = client::session(&mcp.run(&setup()));
    for name in names() {
        let (status, execution) = node.run(&id, &cell(&name)).await;
        assert_eq!((status, &execution["stdout"]), (200, &json!("before\n")), "{name}");
        assert_eq!(node.run(&id, AFTER).await.1["value"], HERE, "{name}: {execution}");
        let result = mcp.run_in(&handle, &cell(&name));
        assert!(client::text(&result).contains("before\n"), "{name}: {result}");
        let after = mcp.run_in(&handle, AFTER);
        assert!(client::text(&after).contains(HERE), "{name}: {result} {after}");
    }
}
