//! Tests of what code in `profile::python_executor` can use: the helpers, answers and the import
//! allowlist.

use isolet::profile::python_executor::{DEFAULT_ALLOWED_IMPORTS, PythonExecutor};
use isolet::{ErrorKind, Value};

use crate::profile_python_executor::{allowing, double, execute, executor, stdout};

async fn final_answer(executor: &mut PythonExecutor, code: &str) -> Option<String> {
    let result = execute(executor, code).await;
    executor.final_answer(&result).await.unwrap()
}

#[tokio::test]
async fn imports_outside_the_list_are_refused_in_the_codes_own_places() {
    let mut executor = allowing(&["math", "collections"]).await;
    let refused = [
        ("import os", "os"),
        ("import os.path", "os.path"),
        ("from json import dumps", "json"),
        ("import math, json", "json"),
        ("import mathematics", "mathematics"),
        ("def f():\n    import json\nf()", "json"),
        ("class A:\n    import json", "json"),
        ("await __import__('asyncio').sleep(0)", "asyncio"),
    ];
    for (code, module) in refused {
        let result = execute(&mut executor, code).await;
        let sentence = format!(
            "ImportError: import of '{module}' is not allowed, allowed imports: math, collections\n\
             Traceback (most recent call last):\n  File \"<cell>\", line "
        );
        let exception = result.exception.unwrap();
        assert!(exception.starts_with(&sentence), "{exception}");
        assert!(!exception.contains("isolet"), "{exception}");
    }
    let result =
        execute(&mut executor, "try:\n    import os\nexcept ImportError as e:\n    print(e.name)");
    assert_eq!(result.await.stdout, "os\n");
}

#[tokio::test]
async fn imports_of_the_list_work_with_submodules_and_what_they_import_themselves() {
    let mut executor = allowing(&["collections", "datetime", "pickle", "html", "statistics"]).await;
    let code = "from __future__ import annotations\n\
                import collections.abc, html.parser, statistics\n\
                from collections import Counter\n\
                from html import escape\n\
                import datetime, pickle\n\
                day = datetime.datetime.strptime('2024-05-01', '%Y-%m-%d').year\n\
                kept = pickle.loads(pickle.dumps(Counter('aab')))\n\
                [day, kept['a'], statistics.mean([1, 2]), escape('<')]";
    assert_eq!(stdout(&mut executor, code).await, r#"[2024, 2, 1.5, "&lt;"]"#);
}

#[tokio::test]
async fn an_empty_list_allows_no_import_and_none_all() {
    let result = execute(&mut allowing(&[]).await, "import math").await;
    let sentence = "ImportError: import of 'math' is not allowed, allowed imports: none\n";
    assert!(result.exception.unwrap().starts_with(sentence));
    assert_eq!(stdout(&mut executor().await, "import os, subprocess; os.sep").await, "\"/\"");
}

#[tokio::test]
async fn the_default_list_can_be_imported_whole() {
    let mut executor = allowing(&DEFAULT_ALLOWED_IMPORTS).await;
    for module in DEFAULT_ALLOWED_IMPORTS {
        stdout(&mut executor, &format!("import {module}")).await;
    }
    assert!(!execute(&mut executor, "import sys").await.success);
}

#[tokio::test]
async fn the_final_answer_is_found_in_the_output() {
    let mut executor = executor().await;
    execute(
        &mut executor,
        "answer_1, pair, nothing, text = 'it is 42', (1, 'a'), None, 'é \"q\"\\n)'",
    )
    .await;
    let cases = [
        ("print('FINAL(42)')", Some("42")),
        ("print(FINAL(answer_1))", Some("it is 42")),
        ("FINAL(f'{6 * 7}')", Some("42")),
        ("print('FINAL(f(x))')", Some("f(x)")),
        ("FINAL((1, 2, 3))", Some("(1, 2, 3)")),
        ("print('FINAL(2^(2^(2^(2))) = 65536)')", Some("2^(2^(2^(2))) = 65536")),
        ("print(FINAL({'a': (1, 2)}))", Some("{'a': (1, 2)}")),
        ("print('FINAL(42)\\nresult: (ok)')", Some("42")),
        ("print('one', FINAL(1)); FINAL(2)", Some("1")),
        ("print(FINAL('x' * 9000))", Some("x")),
        // Not in the JSON form that stdout has.
        ("FINAL('é \"quoted\"\\nline')", Some("é \"quoted\"\nline")),
        ("['FINAL(1)']", Some("1")),
        // By name.
        ("FINAL_VAR('answer_1')", Some("it is 42")),
        ("print(FINAL_VAR('\"pair\" '))", Some("(1, 'a')")),
        ("print('FINAL_VAR(answer_1)')", Some("it is 42")),
        ("print('FINAL_VAR(pair)')", Some("(1, 'a')")),
        ("print('FINAL_VAR(text)')", Some("é \"q\"\n)")),
        ("print('FINAL( FINAL_VAR(pair')", None),
        ("print('FINAL_VAR(missing)')", None),
        ("print('FINAL_VAR(nothing)')", None),
        ("FINAL_VAR('missing')", None),
        // None.
        ("print('write FINAL( to answer')", None),
        ("raise ValueError('FINAL(1)')", None),
        ("import sys; print('FINAL(1)', file=sys.stderr)", None),
        ("FINAL", None),
        ("1", None),
    ];
    for (code, expected) in cases {
        let answer = final_answer(&mut executor, code).await;
        let expected = if expected == Some("x") {
            Some("x".repeat(9000))
        } else {
            expected.map(str::to_owned)
        };
        assert_eq!(answer, expected, "{code}");
    }
}

#[tokio::test]
async fn the_answer_is_final_when_it_is_ready() {
    let mut executor = executor().await;
    executor
        .set_variable(
            "answer",
            Value::dict([("content", Value::from("")), ("ready", false.into())]),
        )
        .await
        .unwrap();
    let cases = [
        ("answer['content'] = 'my answer'", None),
        ("answer['ready'] = True", Some("my answer")),
        ("print('FINAL(other)')", Some("other")),
        ("x = 'named'; print('FINAL_VAR(x)')", Some("named")),
        ("print('FINAL_VAR(missing)')", Some("my answer")),
        ("answer = {'content': (1, object), 'ready': 1}", Some("(1, <class 'object'>)")),
        ("answer = {'ready': [0]}", Some("")),
        ("answer = {'content': 1, 'ready': ''}", None),
        ("answer = ['content', 'ready']", None),
        ("del answer", None),
    ];
    for (code, expected) in cases {
        assert_eq!(final_answer(&mut executor, code).await.as_deref(), expected, "{code}");
    }
    let code = "class Bad:\n    def __str__(self): raise ValueError('no')\n\
                answer = {'content': Bad(), 'ready': True}";
    let result = execute(&mut executor, code).await;
    let error = executor.final_answer(&result).await.unwrap_err();
    assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Raised, true));
    // Searching for an answer leaves no variables behind.
    assert_eq!(
        execute(&mut executor, "[n for n in globals() if 'argument' in n]").await.stdout,
        "[]"
    );
}

#[tokio::test]
async fn variables_are_shown_without_modules_helpers_and_functions_of_the_host() {
    let mut executor = executor().await;
    executor.inject_function(double()).await.unwrap();
    executor.set_context("text").await.unwrap();
    execute(&mut executor, "import math\nb = a = 1\n_hidden = 2\ndef f(): pass\nclass C: pass")
        .await;
    let shown = stdout(&mut executor, "names = SHOW_VARS()\nnames").await;
    assert_eq!(shown, r#"["C", "a", "b", "context", "f"]"#);
    // A helper's name that was bound to something else is a variable.
    execute(&mut executor, "FINAL = double = math = 1\ndel a, b, C, f").await;
    let shown = stdout(&mut executor, "SHOW_VARS()").await;
    assert_eq!(shown, r#"["FINAL", "context", "double", "math", "names"]"#);
}

#[tokio::test]
async fn the_other_helpers_are_those_of_the_contract() {
    let mut executor = executor().await;
    let code = "try:\n    1/0\nexcept ZeroDivisionError:\n    print(format_exc())";
    let expected = "Traceback (most recent call last):\n  File \"<cell>\", line 2, in <module>\n    1/0\n    \
                    ~^~\nZeroDivisionError: division by zero\n\n";
    assert_eq!(stdout(&mut executor, code).await, expected);
    let code = "print(safe_json_dumps({'a': [1, None, {2}], 'b': b'x'}))";
    assert_eq!(stdout(&mut executor, code).await, "{\"a\": [1, null, \"{2}\"], \"b\": \"b'x'\"}\n");
}

#[tokio::test]
async fn helpers_work_whatever_the_code_calls_its_variables() {
    let mut executor = allowing(&["math"]).await;
    execute(&mut executor, "str = list = sorted = type = isinstance = json = any = 'mine'").await;
    execute(&mut executor, "answer = {'content': 5, 'ready': True}").await;
    assert_eq!(final_answer(&mut executor, "import math").await.as_deref(), Some("5"));
    assert_eq!(final_answer(&mut executor, "FINAL_VAR('str')").await.as_deref(), Some("mine"));
    assert_eq!(stdout(&mut executor, "'answer' in SHOW_VARS()").await, "true");
    assert_eq!(stdout(&mut executor, "safe_json_dumps({1: {2}})").await, r#""{\"1\": \"{2}\"}""#);
    assert!(!execute(&mut executor, "import os").await.success);
}
