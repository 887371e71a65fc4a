//! Tests of values whose methods fail in every way: on each surface the output is kept, the answer
//! says what is wrong, and the session lives with its variables.

use isolet::{Cell, Outcome, Session, SessionState, Syntax, Value};
use serde_json::json;

use crate::mcp::client::{self, Client};
use crate::node::Node;
use crate::util::{Scratch, builder, eval, exec, isolet, isolet_fed, session};

const PROGRAM: &str = include_str!("programs/odd_values.py");

/// The methods that something calls on every surface, and by which values are shown.
const SHOWN: [&str; 4] = ["__repr__", "[__repr__]", "_repr_html_", "_repr_mimebundle_"];

/// Methods that are called when a value is converted, if at all.
const UNASKED: [&str; 4] = ["__class__", "__bool__", "__eq__", "__len__"];

/// Defines `odd` in a module, so that the cells' own variables are few.
fn setup() -> String {
    let source = json!(PROGRAM);
    format!(
        "import types\nvalues = types.ModuleType('values')\nexec({source}, vars(values))\n\
         odd = values.odd\nNone"
    )
}

/// A cell whose last value is the odd one of this name.
fn cell(name: &str) -> String {
    format!("print('before')\nkept = None\nkept = odd({name:?})\nkept")
}

const AFTER: &str = "'still ' + 'here' if kept is not None else 'lost'";
const HERE: &str = "still here";

/// The names of the values that are shown by these methods; of all if there are none.
async fn names(methods: &[&str]) -> Vec<String> {
    let mut session = session().await;
    exec(&mut session, setup()).await;
    let names = eval(&mut session, "values.NAMES").await;
    let names = names.as_list().unwrap().iter().filter_map(Value::as_str).map(str::to_owned);
    let is_wanted = |name: &String| {
        methods.is_empty() || methods.iter().any(|method| name.starts_with(&format!("{method} ")))
    };
    names.filter(is_wanted).collect()
}

async fn live(session: &mut Session, syntax: Syntax) {
    exec(session, setup()).await;
    let names = names(&[]).await;
    assert!(names.len() > 1000, "{}", names.len());
    for name in names {
        let execution = session.run(Cell::new(cell(&name)).syntax(syntax)).await.unwrap();
        assert_eq!(session.state(), SessionState::Ready, "{name}: {execution:?}");
        assert_eq!(execution.stdout(), "before\n", "{name}: {execution:?}");
        assert!(!execution.stderr().contains("<isolet>"), "{name}: {execution:?}");
        match execution.outcome() {
            Outcome::Completed(_) => assert!(execution.repr().is_some(), "{name}: {execution:?}"),
            Outcome::Raised(exception) => {
                assert!(!exception.traceback.contains("<isolet>"), "{name}: {exception:?}");
                assert!(!exception.type_name.is_empty(), "{name}: {exception:?}");
            }
            // What is awaited is the program's own.
            outcome => assert!(name.starts_with("__await__ "), "{name}: {outcome:?}"),
        }
        assert_eq!(eval(session, AFTER).await, Value::from(HERE), "{name}");
    }
}

#[tokio::test]
async fn values_that_fail_in_every_way_end_no_session() {
    live(&mut session().await, Syntax::Python).await;
}

#[tokio::test]
async fn values_that_fail_in_every_way_end_no_session_of_ipython() {
    live(&mut session().await, Syntax::Ipython).await;
}

#[tokio::test]
async fn what_a_repr_raises_is_told_once() {
    let mut session = session().await;
    exec(&mut session, setup()).await;
    for (name, told) in [
        ("__repr__ raises ValueError", "<values.Value object; repr raised ValueError: no>"),
        (
            "__repr__ raises Unprintable",
            "<values.Value object; repr raised Unprintable: <exception str() failed>>",
        ),
        (
            "__repr__ raises Sealed",
            "<values.Value object; repr raised Sealed: <exception str() failed>>",
        ),
        ("__repr__ returns a Text", "text"),
        ("__repr__ returns a surrogate", "a\\ud800z"),
    ] {
        let execution = exec(&mut session, cell(name)).await;
        assert_eq!(execution.repr(), Some(told));
    }
    for (act, kind) in [
        ("raises SystemExit", "SystemExit"),
        ("raises Exits", "Exits"),
        ("raises KeyboardInterrupt", "KeyboardInterrupt"),
        ("raises GeneratorExit", "GeneratorExit"),
        ("raises Own", "Own"),
    ] {
        for method in ["__repr__", "_repr_html_"] {
            let execution = session.run(cell(&format!("{method} {act}"))).await.unwrap();
            let Outcome::Raised(exception) = execution.outcome() else { panic!("{execution:?}") };
            assert_eq!(exception.type_name, kind);
        }
        // Nobody has asked for what these say; but the interrupt may be the host's.
        let methods = if kind == "KeyboardInterrupt" { &[] } else { &UNASKED[..] };
        for method in methods {
            let execution = exec(&mut session, cell(&format!("{method} {act}"))).await;
            assert!(execution.repr().unwrap().starts_with("<values.Value object at "));
        }
    }
}

#[tokio::test]
async fn reprs_of_variables_that_never_end_are_interrupted_together() {
    let limits = isolet::Limits::default().max_grace(std::time::Duration::from_mins(1));
    let sandbox = builder().limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "class Endless:\n    def __repr__(self):\n        while True: pass\n\
                a, b, c, number = Endless(), Endless(), Endless(), 5";
    let cell = Cell::new(code).max_run_time(std::time::Duration::from_millis(500));
    let execution = session.run(cell).await.unwrap();
    assert!(execution.session_alive(), "{execution:?}");
    let names: Vec<_> = execution.locals().iter().map(|local| local.name.as_str()).collect();
    assert!(names.contains(&"number"), "{names:?}");
    assert_eq!(eval(&mut session, "number").await, Value::from(5));
}

#[tokio::test]
async fn they_end_no_session_of_a_node_or_of_mcp() {
    let node = Node::start(&[]);
    let id = node.session(&json!({})).await;
    node.run(&id, &setup()).await;
    let mut mcp = Client::start(&[]);
    let handle = client::session(&mcp.run(&setup()));
    for name in names(&SHOWN).await {
        let (status, execution) = node.run(&id, &cell(&name)).await;
        assert_eq!((status, &execution["stdout"]), (200, &json!("before\n")), "{name}");
        assert_eq!(node.run(&id, AFTER).await.1["value"], HERE, "{name}: {execution}");
        let result = mcp.run_in(&handle, &cell(&name));
        assert!(client::text(&result).contains("before\n"), "{name}: {result}");
        let after = mcp.run_in(&handle, AFTER);
        assert!(client::text(&after).contains(HERE), "{name}: {result} {after}");
    }
}

#[tokio::test]
async fn they_end_no_notebook_and_no_prompt() {
    let scratch = Scratch::new("odd-values");
    let names = names(&SHOWN).await;
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
