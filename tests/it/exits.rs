//! Tests of `SystemExit`, in all forms that python accepts.

use isolet::{Cell, Outcome, Syntax, Value};

use crate::util::{eval, session};

#[tokio::test]
async fn every_way_to_exit_gives_pythons_status() {
    let cases = [
        ("import sys; sys.exit()", 0, ""),
        ("raise SystemExit", 0, ""),
        ("raise SystemExit(None)", 0, ""),
        ("sys.exit(0)", 0, ""),
        ("sys.exit(7)", 7, ""),
        ("sys.exit(True)", 1, ""),
        ("sys.exit(-1)", -1, ""),
        ("exit(3)", 3, ""),
        ("quit()", 0, ""),
        ("sys.exit('bad input')", 1, "bad input\n"),
        ("sys.exit('')", 1, "\n"),
        ("sys.exit([1, 2])", 1, "[1, 2]\n"),
        ("raise SystemExit(1, 2)", 1, "(1, 2)\n"),
        ("class Quit(SystemExit): pass\nraise Quit(5)", 5, ""),
    ];
    let mut session = session().await;
    for (code, status, stderr) in cases {
        let execution = session.run(code).await.unwrap();
        assert_eq!(*execution.outcome(), Outcome::Exited(status), "{code}");
        assert_eq!((execution.stdout(), execution.stderr()), ("", stderr), "{code}");
        assert!(execution.session_alive(), "{code}");
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn an_exit_unwinds_as_python_does() {
    let mut session = session().await;
    let code = "import sys\ntry:\n    sys.exit(2)\nfinally:\n    print('cleaned')";
    let execution = session.run(code).await.unwrap();
    assert_eq!(*execution.outcome(), Outcome::Exited(2));
    assert_eq!(execution.stdout(), "cleaned\n");
    let code = "try:\n    sys.exit(2)\nexcept SystemExit as exit:\n    caught = exit.code\ncaught";
    assert_eq!(eval(&mut session, code).await, Value::Int(2));
}

#[tokio::test]
async fn a_hard_exit_leaves_the_next_session_unharmed() {
    for code in [
        "import os; os._exit(3)",
        "import os; os.abort()",
        "import os, signal; os.kill(os.getpid(), 9)",
    ] {
        let sandbox = crate::util::builder().build().unwrap();
        let mut session = sandbox.session().await.unwrap();
        // Any result is fine, as long as there is one.
        let _ = session.run(code).await;
        let mut next = sandbox.session().await.unwrap();
        assert_eq!(eval(&mut next, "1").await, Value::Int(1), "{code}");
    }
}

#[tokio::test]
async fn a_cell_of_ipython_leaves_what_sys_exit_is_given_to_the_exception() {
    let mut session = session().await;
    let cell = Cell::new("import sys; sys.exit('bad input')").syntax(Syntax::Ipython);
    let execution = session.run(cell).await.unwrap();
    assert_eq!(*execution.outcome(), Outcome::Exited(1));
    assert_eq!((execution.stdout(), execution.stderr()), ("", ""));
    assert_eq!(execution.system_exit().unwrap().message, "bad input");
}
