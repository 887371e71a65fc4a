//! Tests of values whose methods fail in every way: on each surface the output is kept, the answer
//! says what is wrong, and the session lives with its variables.

use isolet::{Cell, Outcome, Session, SessionState, Syntax, Value};
use isolet_test_support::odd_values::{AFTER, HERE, cell, setup};

use crate::util::{builder, eval, exec, session};

/// Methods that are called when a value is converted, if at all.
const UNASKED: [&str; 4] = ["__class__", "__bool__", "__eq__", "__len__"];

/// The names of all values.
async fn names() -> Vec<String> {
    let mut session = session().await;
    exec(&mut session, setup()).await;
    let names = eval(&mut session, "values.NAMES").await;
    names.as_list().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

async fn live(session: &mut Session, syntax: Syntax) {
    exec(session, setup()).await;
    let names = names().await;
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
    let cell = Cell::new(code).timeout(std::time::Duration::from_millis(500));
    let execution = session.run(cell).await.unwrap();
    assert!(execution.session_alive(), "{execution:?}");
    let names: Vec<_> = execution.locals().iter().map(|local| local.name.as_str()).collect();
    assert!(names.contains(&"number"), "{names:?}");
    assert_eq!(eval(&mut session, "number").await, Value::from(5));
}
