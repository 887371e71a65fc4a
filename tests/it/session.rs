//! Tests of one session: its state persists between runs, and is not shared.

use isolet::{Cell, ErrorKind, Outcome, Permissions, Value};

use crate::util::{builder, eval, exec, raised, run, session};

#[tokio::test]
async fn state_lasts_from_run_to_run() {
    let mut session = session().await;
    exec(&mut session, "import math\nx = 20\ndef f(): return x + 22").await;
    exec(&mut session, "open('/tmp/kept', 'w').write('still here')").await;
    assert_eq!(eval(&mut session, "f()").await, Value::Int(42));
    assert_eq!(eval(&mut session, "math.floor(2.5)").await, Value::Int(2));
    assert_eq!(eval(&mut session, "open('/tmp/kept').read()").await, Value::from("still here"));
}

#[tokio::test]
async fn state_lasts_past_an_exception_and_an_exit() {
    let mut session = session().await;
    raised(&mut session, "x = 1\nraise ValueError").await;
    let exited = session.run("y = 2\nraise SystemExit(3)").await.unwrap();
    assert_eq!(*exited.outcome(), Outcome::Exited(3));
    assert!(exited.session_alive());
    assert_eq!(eval(&mut session, "x + y").await, Value::Int(3));
}

#[tokio::test]
async fn sessions_see_nothing_of_each_other() {
    let sandbox = builder().build().unwrap();
    let mut one = sandbox.session().await.unwrap();
    let mut other = sandbox.session().await.unwrap();
    exec(
        &mut one,
        "import os, sys, json, builtins, types\n\
         secret = 1\n\
         os.environ['SECRET'] = '1'\n\
         sys.modules['secret'] = types.ModuleType('secret')\n\
         builtins.secret = json.secret = 1\n\
         for name in ('/tmp/secret', '/home/user/secret'): open(name, 'w').close()\n\
         os.chdir('/tmp')",
    )
    .await;
    let seen = eval(
        &mut other,
        "import os, sys, json, builtins\n\
         ['secret' in globals(), 'SECRET' in os.environ, 'secret' in sys.modules,\n\
          hasattr(builtins, 'secret'), hasattr(json, 'secret'), os.path.exists('/tmp/secret'),\n\
          os.path.exists('/home/user/secret'), os.getcwd() == '/tmp']",
    )
    .await;
    assert_eq!(seen, Value::from(vec![false; 8]));
    let later = sandbox.run("import os; 'secret' in globals() or os.listdir('/tmp')");
    assert_eq!(later.await.unwrap().value(), Some(&Value::List(Vec::new())));
}

#[tokio::test]
async fn sessions_draw_different_random_numbers() {
    let code = "import os, random, uuid; [random.random(), os.urandom(8).hex(), str(uuid.uuid4()), hash('a')]";
    let (one, other) = (run(code).await, run(code).await);
    let (one, other) = (one.value().unwrap(), other.value().unwrap());
    for (one, other) in one.as_list().unwrap()[..3].iter().zip(other.as_list().unwrap()) {
        assert_ne!(one, other);
    }
}

#[tokio::test]
async fn the_last_expression_is_the_value() {
    let mut session = session().await;
    assert_eq!(eval(&mut session, "1; 2; 3").await, Value::Int(3));
    assert_eq!(eval(&mut session, "x = 5\nx\n# the end\n").await, Value::Int(5));
    for code in ["x = 1", "", "# nothing", "\n\n", "for i in range(3): i", "if True:\n    5"] {
        let execution = exec(&mut session, code).await;
        assert_eq!(*execution.outcome(), Outcome::Completed(None), "{code:?}");
        assert_eq!((execution.repr(), execution.value_error()), (None, None));
    }
}

#[tokio::test]
async fn none_is_a_value() {
    let execution = run("None").await;
    assert_eq!(execution.value(), Some(&Value::None));
    assert_eq!(execution.repr(), Some("None"));
    assert_eq!(run("print()").await.value(), Some(&Value::None));
}

#[tokio::test]
async fn argv_stays_as_the_last_cell_left_it() {
    let mut session = session().await;
    let cell = Cell::new("import sys; sys.argv").argv(["prog", "-x", "é"]);
    let argv = Value::from(vec!["prog", "-x", "é"]);
    assert_eq!(eval(&mut session, cell).await, argv);
    assert_eq!(eval(&mut session, "sys.argv").await, argv);
}

#[tokio::test]
async fn only_a_script_has_a_file() {
    let mut session = session().await;
    let script = Cell::new("__file__, __name__").script("dir/script.py");
    assert_eq!(eval(&mut session, script).await, Value::from(vec!["dir/script.py", "__main__"]));
    assert_eq!(raised(&mut session, "__file__").await.type_name, "NameError");
}

#[tokio::test]
async fn future_imports_last_from_run_to_run() {
    let mut session = session().await;
    exec(&mut session, "from __future__ import annotations").await;
    exec(&mut session, "def f(x: nosuch): pass").await;
    let annotations = eval(&mut session, "f.__annotations__").await;
    assert_eq!(annotations.get("x"), Some(&Value::from("nosuch")));
}

#[tokio::test]
async fn only_an_interactive_cell_keeps_its_value_in_the_underscore() {
    let mut session = session().await;
    exec(&mut session, "1").await;
    assert_eq!(raised(&mut session, "_").await.type_name, "NameError");
    exec(&mut session, Cell::new("41 + 1").interactive()).await;
    exec(&mut session, Cell::new("None").interactive()).await;
    assert_eq!(eval(&mut session, "_").await, Value::Int(42));
}

#[tokio::test]
async fn beginnings_are_told_from_wholes_and_from_errors() {
    let mut session = session().await;
    let beginnings = [
        "def f():",
        "def f():\n",
        "def f():\n    return 1",
        "x = (",
        "x = [1,\n",
        "'''abc\n",
        "if x:\n    1\nelse:\n",
        "@wrap\n",
        "for x in y:",
        "class A:\n    def f(self):\n",
        "await f(",
        "1 + \\",
    ];
    for code in beginnings {
        assert!(session.is_incomplete(code).await.unwrap(), "{code:?}");
    }
    let wholes = [
        "x = 1",
        "x = 1\n",
        "",
        "# comment",
        "def f():\n    return 1\n\n",
        "await g()",
        "f(1)\n",
        "1 +",
        "x = )",
        "def 1",
        "'abc",
        "return",
    ];
    for code in wholes {
        assert!(!session.is_incomplete(code).await.unwrap(), "{code:?}");
    }
}

#[tokio::test]
async fn unicode_is_itself_everywhere() {
    let mut session = session().await;
    let execution = exec(&mut session, "größe = 'Ünï ☃ 🐍 \\0'\nprint(größe)\ngröße").await;
    assert_eq!(execution.stdout(), "Ünï ☃ 🐍 \0\n");
    assert_eq!(execution.value(), Some(&Value::from("Ünï ☃ 🐍 \0")));
    assert_eq!(execution.repr(), Some("'Ünï ☃ 🐍 \\x00'"));
    assert_eq!(execution.locals()[0].name, "größe");
    assert_eq!(raised(&mut session, "raise OSError('☃')").await.message, "☃");
}

#[tokio::test]
async fn code_may_hold_anything_text_can() {
    let mut session = session().await;
    assert_eq!(eval(&mut session, "'a'\r\n").await, Value::from("a"));
    assert_eq!(eval(&mut session, "1 \\\n+ 1").await, Value::Int(2));
    assert_eq!(raised(&mut session, "x = 1\0").await.type_name, "SyntaxError");
    let long = format!("x = 0\n{}x", "x += 1\n".repeat(20_000));
    assert_eq!(eval(&mut session, long).await, Value::Int(20_000));
}

#[tokio::test]
async fn what_was_used_is_counted() {
    let execution = run("import sys\nprint('ab')\nprint('c', file=sys.stderr)").await;
    let usage = execution.usage();
    assert_eq!((usage.stdout_bytes, usage.stderr_bytes, usage.tool_calls), (3, 2, 0));
    assert!(!usage.wall_time.is_zero() && usage.peak_memory_bytes > 0);
}

#[tokio::test]
async fn a_sandbox_refuses_a_policy_that_makes_no_sense() {
    let limits = isolet::Limits::default();
    let refused = [
        builder().limits(limits.clone().max_run_time(std::time::Duration::ZERO)),
        builder().limits(limits.max_host_time(std::time::Duration::ZERO)),
        builder().permissions(Permissions::none().env("", "x")),
        builder().permissions(Permissions::none().env("A=B", "x")),
        builder().permissions(Permissions::none().env("A", "x\0")),
    ];
    for builder in refused {
        assert_eq!(builder.build().unwrap_err().kind(), ErrorKind::Config);
    }
}

#[test]
fn callers_without_async_get_the_same() {
    let sandbox = builder().build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    session.run("x = 1").unwrap();
    let mut seen = Vec::new();
    let mut run = session.run_streaming("print('a', x)\nx");
    run.by_ref().for_each(|event| seen.extend(crate::util::output(event).bytes));
    let execution = run.finish().unwrap();
    assert_eq!(execution.value(), Some(&Value::Int(1)));
    assert_eq!(seen, b"a 1\n");
    assert!(session.is_incomplete("(").unwrap());
    session.files().put("kept", "text").unwrap();
    assert_eq!(session.files().get("kept").unwrap(), Some(b"text".to_vec()));
    assert_eq!(session.handle().get("x").unwrap(), Some(Value::Int(1)));
    assert_eq!(session.state(), isolet::SessionState::Ready);
    let value = sandbox.blocking().run("1 + 1").unwrap();
    assert_eq!(value.value(), Some(&Value::Int(2)));
}

#[tokio::test]
async fn an_execution_turns_into_a_value_or_an_error() {
    let kind = |execution: isolet::Execution| execution.into_result().map_err(|error| error.kind());
    assert_eq!(kind(run("1").await), Ok(Value::Int(1)));
    assert_eq!(kind(run("x = 1").await), Ok(Value::None));
    assert_eq!(kind(run("raise SystemExit").await), Ok(Value::None));
    assert_eq!(kind(run("raise SystemExit(2)").await), Err(ErrorKind::Raised));
    assert_eq!(kind(run("object()").await), Err(ErrorKind::Value));
    let error = run("1/0").await.into_result().unwrap_err();
    assert_eq!(error.to_string(), "ZeroDivisionError: division by zero");
    assert!(error.session_survives());
}

#[tokio::test]
async fn an_error_that_was_made_of_an_exception_has_it() {
    let class = |error: &isolet::Error| error.exception().map(|raised| raised.type_name.clone());
    let error = run("1/0").await.into_result().unwrap_err();
    assert_eq!(class(&error).as_deref(), Some("ZeroDivisionError"));
    assert!(error.exception().unwrap().traceback.contains("1/0"));
    let error = run("raise SystemExit('no')").await.into_result().unwrap_err();
    assert_eq!(class(&error).as_deref(), Some("SystemExit"));
    let error = run("object()").await.into_result().unwrap_err();
    assert_eq!(class(&error), None);
}
