//! Tests of scripts with neighbouring files, modules, and directories and zip files with a
//! `__main__.py`.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Termination, Value};

use crate::util::{sandbox, session};

#[tokio::test]
async fn modules_and_applications_run_in_a_session_and_stop_at_a_deadline() {
    let mut session = session().await;
    for (name, text) in [
        ("/app/__main__.py", "import helper, sys; value = helper.double(21), sys.argv"),
        ("/app/helper.py", "def double(x): return 2 * x"),
        ("/app/spin.py", "while True: pass"),
    ] {
        session.files().put(name, text).await.unwrap();
    }
    // The end of a program takes its variables along, unless they are kept.
    let application = Cell::application("/app").keep_variables();
    let execution = session.run(application).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    let told = Value::from(vec![Value::Int(42), Value::from(vec![Value::from("/app")])]);
    assert_eq!(session.get("value").await.unwrap(), Some(told));

    let missing = session.run(Cell::module("nosuch.module")).await.unwrap();
    assert!(matches!(missing.outcome(), Outcome::Exited(1)), "{missing:?}");
    assert!(missing.stderr().starts_with("isolet: "), "{}", missing.stderr());

    let spin = Cell::module("spin").timeout(Duration::from_millis(300));
    let stopped = session.run(spin).await.unwrap();
    let Outcome::Terminated(Termination::Deadline { .. }) = stopped.outcome() else {
        panic!("{stopped:?}")
    };
    assert!(stopped.session_alive());
    let nowhere = session.run(Cell::new("1").working_directory("/nosuch")).await.unwrap();
    let raised = nowhere.exception().map(|exception| exception.type_name.as_str());
    assert_eq!(raised, Some("FileNotFoundError"));
    let there = session.run(Cell::new("import os; os.getcwd()").working_directory("/app")).await;
    assert_eq!(there.unwrap().value(), Some(&Value::from("/app")));
}

#[tokio::test]
async fn code_that_is_too_long_for_a_cell_is_no_module_either() {
    let sandbox = sandbox(Limits::default().max_source_bytes(1000));
    let mut session = sandbox.session().await.unwrap();
    let error = session.run(Cell::module("x".repeat(1001))).await.unwrap_err();
    assert!(error.session_survives() && error.to_string().contains("1001"), "{error}");
}
