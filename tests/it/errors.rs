//! Tests of errors: their causes, and the Python exceptions that they were made from.

use std::error::Error as _;
use std::io;

use isolet::profile::python_executor::{ExecutorOptions, PythonExecutor};
use isolet::profile::python_interpreter::{
    InterpreterError, InterpreterOptions, Output, PythonInterpreter,
};
use isolet::{ErrorKind, Limits, Mount, Param, Tool, ToolError, ToolSpec, Value};

use crate::util::{Scratch, builder, engine, eval, session};

fn io_kind(error: &dyn std::error::Error) -> Option<io::ErrorKind> {
    error.source()?.downcast_ref::<io::Error>().map(io::Error::kind)
}

fn class(exception: Option<&isolet::PyException>) -> Option<&str> {
    exception.map(|exception| exception.type_name.as_str())
}

#[tokio::test]
async fn the_cause_of_an_error_can_be_matched() {
    let scratch = Scratch::new("error-cause");
    let missing = scratch.path().join("missing");
    let error = Mount::read_only(&missing).unwrap_err();
    assert_eq!(io_kind(&error), Some(io::ErrorKind::NotFound), "{error}");
    let options = InterpreterOptions::default();
    let mut options = options;
    options.enable_read_paths = vec![missing];
    let error = PythonInterpreter::new(engine(), options).start().await.unwrap_err();
    assert_eq!(io_kind(&error), Some(io::ErrorKind::NotFound), "{error}");
    let error = engine().prewarm(usize::MAX).unwrap_err();
    assert!(error.source().is_none(), "{error:?}");
}

#[tokio::test]
async fn a_tool_that_fails_with_an_error_of_isolet_says_its_cause_once() {
    let fail = Tool::from_handler(ToolSpec::new("fail"), |_, _| async {
        let mount = Mount::read_only("/nowhere/at/all")?;
        Err::<Value, ToolError>(ToolError::new("AssertionError", format!("{mount:?}")))
    });
    let mut session = builder().tool(fail).build().unwrap().session().await.unwrap();
    let code =
        "try: fail()\nexcept RuntimeError as error: text = str(error)\ntext.count('No such')";
    assert_eq!(eval(&mut session, code).await, Value::Int(1));
}

#[tokio::test]
async fn a_call_that_raises_in_the_guest_keeps_the_exception() {
    let mut session = session().await;
    let error = session.files().get("/tmp").await.unwrap_err();
    assert_eq!(class(error.exception()), Some("IsADirectoryError"), "{error}");
    assert!(error.session_survives());
}

#[test]
fn a_blocking_call_that_raises_in_the_guest_keeps_the_exception() {
    let sandbox = builder().build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    let error = session.files().get("/tmp").unwrap_err();
    assert_eq!(class(error.exception()), Some("IsADirectoryError"), "{error}");
    let error = session.run("1/0").unwrap().into_result().unwrap_err();
    assert_eq!(class(error.exception()), Some("ZeroDivisionError"), "{error}");
}

#[tokio::test]
async fn an_answer_whose_str_raises_keeps_the_exception() {
    let mut executor = PythonExecutor::new(engine(), ExecutorOptions::default()).await.unwrap();
    let code = "class Bad:\n def __str__(self): raise LookupError('no')\n\
                answer = {'ready': True, 'content': Bad()}";
    let result = executor.execute(code).await.unwrap();
    let error = executor.final_answer(&result).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Raised);
    assert_eq!(class(error.exception()), Some("LookupError"), "{error}");
}

#[tokio::test]
async fn an_interpreter_error_keeps_the_exception_and_the_error() {
    const NOTHING: [(&str, Value); 0] = [];
    let mut options = InterpreterOptions::default();
    options.output_fields = vec![Param::new("output")];
    options.limits = Limits::default()
        .max_run_time(std::time::Duration::from_secs(2))
        .max_grace(std::time::Duration::ZERO);
    let mut interpreter = PythonInterpreter::new(engine(), options);
    let error = interpreter.execute("1/0", NOTHING).await.unwrap_err();
    assert_eq!(class(error.exception()), Some("ZeroDivisionError"));
    let error = interpreter.execute("raise SystemExit(3)", NOTHING).await.unwrap_err();
    assert_eq!(class(error.exception()), Some("SystemExit"));
    let error = interpreter.get_file("/tmp").await.unwrap_err();
    assert_eq!(class(error.exception()), Some("IsADirectoryError"));
    assert_eq!(interpreter.execute("2", NOTHING).await.unwrap(), Output::Value(Value::Int(2)));
    let error = interpreter.execute("while True: pass", NOTHING).await.unwrap_err();
    let InterpreterError::Interpreter(inner) = &error else { panic!("{error}") };
    assert_eq!(inner.kind(), ErrorKind::Limit);
    assert_eq!(inner.to_string(), error.to_string());
}
