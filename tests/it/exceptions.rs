//! Tests of exceptions as the host sees them: type, message, arguments, and a traceback of the
//! guest's frames.

use isolet::{Cell, Value};

use crate::util::{eval, exec, raised, session};

#[tokio::test]
async fn type_message_and_arguments_are_told() {
    let mut session = session().await;
    let exception = raised(&mut session, "raise ValueError('a', 1, None, [2.5])").await;
    assert_eq!(exception.type_name, "ValueError");
    assert_eq!(exception.message, "('a', 1, None, [2.5])");
    assert_eq!(exception.args_json.as_deref(), Some(r#"["a", 1, null, [2.5]]"#));
    let exception = raised(&mut session, "raise KeyError('k')").await;
    assert_eq!(exception.to_string(), "KeyError: 'k'");
    assert_eq!(raised(&mut session, "raise OSError").await.to_string(), "OSError");
    let args = raised(&mut session, "raise OSError").await.args_json;
    assert_eq!(args.as_deref(), Some("[]"));
}

#[tokio::test]
async fn arguments_that_are_no_json_are_left_out() {
    let mut session = session().await;
    for args in ["object()", "float('nan')", "b'x'", "1j", "{(1, 2): 3}"] {
        let exception = raised(&mut session, format!("raise ValueError({args})")).await;
        assert_eq!(exception.args_json, None, "{args}");
        assert_eq!(exception.type_name, "ValueError");
    }
}

#[tokio::test]
async fn the_traceback_is_the_one_python_prints() {
    let mut session = session().await;
    let code = "def f(x):\n    return 1 / x\n\nf(0)\n";
    assert_eq!(
        raised(&mut session, code).await.traceback,
        "Traceback (most recent call last):\n  \
           File \"<cell>\", line 4, in <module>\n    \
             f(0)\n    \
             ~^^^\n  \
           File \"<cell>\", line 2, in f\n    \
             return 1 / x\n           \
                    ~~^~~\n\
         ZeroDivisionError: division by zero\n"
    );
    let named = Cell::new("nosuch").name("step 3");
    assert_eq!(
        raised(&mut session, named).await.traceback,
        "Traceback (most recent call last):\n  \
           File \"step 3\", line 1, in <module>\n    \
             nosuch\n\
         NameError: name 'nosuch' is not defined\n"
    );
}

#[tokio::test]
async fn a_traceback_shows_the_lines_of_an_earlier_cell() {
    let mut session = session().await;
    exec(&mut session, "def fail():\n    raise ValueError('early')\n").await;
    let traceback = raised(&mut session, "# one\n# two\nfail()\n# four").await.traceback;
    assert!(traceback.contains("    raise ValueError('early')\n"), "{traceback}");
    assert!(traceback.contains("    fail()\n"), "{traceback}");
    assert!(!traceback.contains("# two"), "{traceback}");
}

#[tokio::test]
async fn frames_of_the_standard_library_are_shown() {
    let mut session = session().await;
    let traceback = raised(&mut session, "import json\njson.loads('{')").await.traceback;
    assert!(traceback.contains("json/decoder.py\", line "), "{traceback}");
    assert!(traceback.contains("    obj, end = self.scan_once(s, idx)\n"), "{traceback}");
    assert!(traceback.ends_with(
        "json.decoder.JSONDecodeError: Expecting property name enclosed in double quotes: \
         line 1 column 2 (char 1)\n"
    ));
}

#[tokio::test]
async fn a_syntax_error_is_the_guests_own() {
    let mut session = session().await;
    let exception = raised(&mut session, "x = 1\ny = = 2").await;
    assert_eq!(exception.type_name, "SyntaxError");
    assert_eq!(
        exception.traceback,
        "  File \"<cell>\", line 2\n    y = = 2\n        ^\nSyntaxError: invalid syntax\n"
    );
    let exception = raised(&mut session, "if True:\nx").await;
    assert_eq!(exception.type_name, "IndentationError");
    let traceback = raised(&mut session, "exec('1 +')").await.traceback;
    assert!(traceback.starts_with("Traceback (most recent call last):\n  File \"<cell>\""));
    assert!(traceback.ends_with("SyntaxError: invalid syntax\n"), "{traceback}");
}

#[tokio::test]
async fn causes_and_contexts_are_a_chain() {
    let mut session = session().await;
    let code =
        "try:\n    1/0\nexcept ZeroDivisionError as error:\n    raise KeyError('k') from error";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.type_name, "KeyError");
    assert_eq!(exception.cause.unwrap().type_name, "ZeroDivisionError");
    assert!(exception.traceback.contains("The above exception was the direct cause"));
    let code = "try:\n    1/0\nexcept ZeroDivisionError:\n    nosuch";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.cause.unwrap().type_name, "ZeroDivisionError");
    assert!(exception.traceback.contains("During handling of the above exception"));
    let code = "try:\n    1/0\nexcept ZeroDivisionError:\n    raise KeyError('k') from None";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.cause, None);
    assert!(!exception.traceback.contains("ZeroDivisionError"));
}

#[tokio::test]
async fn a_circle_of_causes_has_an_end() {
    let mut session = session().await;
    let code = "a, b = ValueError('a'), KeyError('b')\na.__cause__, b.__cause__ = b, a\nraise a";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.type_name, "ValueError");
    let cause = exception.cause.unwrap();
    assert_eq!((cause.type_name.as_str(), &cause.cause), ("KeyError", &None));
    let code = "error = None\nfor i in range(1000):\n    next = ValueError(i)\n    \
                next.__cause__, error = error, next\nraise error";
    assert_eq!(raised(&mut session, code).await.message, "999");
}

#[tokio::test]
async fn an_exception_that_cannot_be_shown_is_told_all_the_same() {
    let mut session = session().await;
    let code = "class Bad(Exception):\n    def __str__(self): 1/0\nraise Bad";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.type_name, "Bad");
    assert_eq!(exception.message, "<exception str() failed>");
    assert!(exception.traceback.ends_with("Bad: <exception str() failed>\n"));
}

#[tokio::test]
async fn exceptions_that_are_no_exception_are_told_too() {
    let mut session = session().await;
    let exception =
        raised(&mut session, "class Stop(BaseException): pass\nraise Stop('now')").await;
    assert_eq!(exception.to_string(), "Stop: now");
    for name in ["KeyboardInterrupt", "GeneratorExit", "StopIteration", "StopAsyncIteration"] {
        assert_eq!(raised(&mut session, format!("raise {name}")).await.type_name, name);
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn exception_groups_are_shown_with_their_parts() {
    let mut session = session().await;
    let code = "raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.type_name, "ExceptionGroup");
    assert_eq!(exception.message, "several (2 sub-exceptions)");
    assert_eq!(
        exception.traceback,
        "  + Exception Group Traceback (most recent call last):\n  \
           |   File \"<cell>\", line 1, in <module>\n  \
           |     raise ExceptionGroup('several', [ValueError('a'), TypeError('b')])\n  \
           | ExceptionGroup: several (2 sub-exceptions)\n  \
           +-+---------------- 1 ----------------\n    \
             | ValueError: a\n    \
             +---------------- 2 ----------------\n    \
             | TypeError: b\n    \
             +------------------------------------\n"
    );
}

#[tokio::test]
async fn notes_and_suggestions_are_in_the_traceback() {
    let mut session = session().await;
    let code = "error = ValueError('x')\nerror.add_note('look here')\nraise error";
    let traceback = raised(&mut session, code).await.traceback;
    assert!(traceback.ends_with("ValueError: x\nlook here\n"), "{traceback}");
    let traceback = raised(&mut session, "value = 1\nvalu").await.traceback;
    assert!(traceback.contains("Did you mean: 'value'?"), "{traceback}");
}

#[tokio::test]
async fn too_deep_a_recursion_is_an_exception() {
    let mut session = session().await;
    let code = "def f(): return f()\nf()";
    let exception = raised(&mut session, code).await;
    assert_eq!(exception.type_name, "RecursionError");
    assert!(exception.traceback.contains("[Previous line repeated "));
    assert!(exception.traceback.len() < 10_000);
    let code = "import ast\nast.parse('(' * 100_000 + ')' * 100_000)";
    assert!(
        ["MemoryError", "SyntaxError", "RecursionError"]
            .contains(&raised(&mut session, code).await.type_name.as_str())
    );
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn an_error_of_javascript_is_an_exception_without_our_frames() {
    let mut session = session().await;
    let code = "from pyodide.code import run_js\nrun_js('nosuch')";
    let exception = raised(&mut session, code).await;
    assert!(exception.message.contains("nosuch is not defined"), "{exception:?}");
    assert!(exception.traceback.contains("line 2, in <module>"), "{}", exception.traceback);
    assert!(!exception.traceback.contains("isolet"), "{}", exception.traceback);
}

#[tokio::test]
async fn long_strings_cross_between_python_and_javascript() {
    let mut session = session().await;
    exec(&mut session, "from pyodide.code import run_js\nlength = run_js('s => s.length')").await;
    for code in ["length('x' * 1000)", "length('é' * 1000)", "length('☃' * 1000)"] {
        assert_eq!(eval(&mut session, code).await, Value::Int(1000), "{code}");
    }
    assert_eq!(eval(&mut session, "length('🐍' * 1000)").await, Value::Int(2000));
}
