//! Tests of OpenEnv's executor: `profile::python_executor`.

use std::time::Duration;

use isolet::profile::python_executor::{ExecutionResult, ExecutorOptions, PythonExecutor};
use isolet::{ErrorKind, Limits, Param, Tool, ToolError, ToolSpec, Value};

use crate::util::engine;

const HELPERS: [&str; 5] = ["FINAL", "FINAL_VAR", "SHOW_VARS", "format_exc", "safe_json_dumps"];

pub(crate) async fn executor() -> PythonExecutor {
    executor_with(|_| {}).await
}

async fn executor_with(set: impl FnOnce(&mut ExecutorOptions)) -> PythonExecutor {
    let mut options = ExecutorOptions::default();
    set(&mut options);
    PythonExecutor::new(engine(), options).await.unwrap()
}

pub(crate) async fn allowing(modules: &[&str]) -> PythonExecutor {
    let modules = modules.iter().map(|&module| module.to_owned()).collect();
    executor_with(|options| options.allowed_imports = Some(modules)).await
}

pub(crate) async fn execute(executor: &mut PythonExecutor, code: &str) -> ExecutionResult {
    executor.execute(code).await.unwrap()
}

/// Executes code that must complete.
pub(crate) async fn stdout(executor: &mut PythonExecutor, code: &str) -> String {
    let result = execute(executor, code).await;
    assert!(result.success, "{code}: {result:?}");
    result.stdout
}

pub(crate) fn double() -> Tool {
    let spec = ToolSpec::new("double").param(Param::new("x"));
    Tool::from_handler(spec, |arguments, _| async move {
        let number = arguments.get("x").and_then(Value::as_i64);
        let number = number.ok_or_else(|| ToolError::new("TypeError", "x is no number"))?;
        Ok(Value::Int(2 * number))
    })
}

#[tokio::test]
async fn a_result_is_the_six_fields_of_the_contract() {
    let mut executor = executor().await;
    let result = execute(&mut executor, "z = 'é'\na = [1]\nprint('hi')\nz").await;
    assert!(!result.execution_time.is_zero() && result.execution_time < Duration::from_secs(20));
    let json = serde_json::to_string(&result).unwrap();
    let expected = format!(
        concat!(
            r#"{{"stdout":"hi\n\n\"\\u00e9\"","stderr":"","locals_snapshot":{{"z":"'é'","a":"[1]"}},"#,
            r#""execution_time":{:?},"success":true,"exception":null}}"#
        ),
        result.execution_time.as_secs_f64()
    );
    assert_eq!(json, expected);
}

#[tokio::test]
async fn values_are_shown_as_json_and_others_as_their_repr() {
    let mut executor = executor().await;
    execute(
        &mut executor,
        "import collections, dataclasses, datetime, decimal, enum\n\
         @dataclasses.dataclass\nclass Point:\n    x: int\n\
         class Color(enum.Enum):\n    RED = 1\n\
         class Level(enum.IntEnum):\n    HIGH = 3\n\
         class Word(enum.StrEnum):\n    NO = 'no'\n\
         Pair = collections.namedtuple('Pair', 'a b')\n\
         class Named:\n    def __repr__(self): return 'Named()'",
    )
    .await;
    let cases = [
        // Values that json.dumps accepts, in its output format.
        ("42", "42"),
        ("2**70", "1180591620717411303424"),
        ("True", "true"),
        ("1.0, 1e16, 0.00001", "[1.0, 1e+16, 1e-05]"),
        ("[float('nan'), float('inf'), -float('inf')]", "[NaN, Infinity, -Infinity]"),
        ("'it\\'s \"é\\n\\x7f\u{1f600}'", r#""it's \"\u00e9\n\u007f\ud83d\ude00""#),
        ("[None, [], {}, ()]", "[null, [], {}, []]"),
        ("(1, (2,))", "[1, [2]]"),
        (
            "{'a': 1, 2: 'b', None: True, 1.5: False, False: 0}",
            r#"{"a": 1, "2": "b", "null": true, "1.5": false, "false": 0}"#,
        ),
        ("'x' in globals()", "false"),
        ("collections.Counter('aab')", r#"{"a": 2, "b": 1}"#),
        ("collections.OrderedDict(a=1)", r#"{"a": 1}"#),
        ("collections.defaultdict(list, a=[1])", r#"{"a": [1]}"#),
        ("[Pair(1, 'x')]", r#"[[1, "x"]]"#),
        ("{Level.HIGH: Level.HIGH}", r#"{"3": 3}"#),
        ("Word.NO", r#""no""#),
        // Values that it rejects.
        ("{1, 2}", "{1, 2}"),
        ("[1, {2}]", "[1, {2}]"),
        ("set()", "set()"),
        ("b'a\\xff'", "b'a\\xff'"),
        ("{'a': b''}", "{'a': b''}"),
        ("range(3)", "range(0, 3)"),
        ("decimal.Decimal('1.5')", "Decimal('1.5')"),
        ("[datetime.date(2024, 5, 1)]", "[datetime.date(2024, 5, 1)]"),
        ("Point(1)", "Point(x=1)"),
        ("Color.RED", "<Color.RED: 1>"),
        ("{Color.RED: 1}", "{<Color.RED: 1>: 1}"),
        ("collections.deque([1])", "deque([1])"),
        ("bytearray(b'a')", "bytearray(b'a')"),
        ("Pair({1}, 2)", "Pair(a={1}, b=2)"),
        ("{b'a': 1}", "{b'a': 1}"),
        ("{(1, 2): 3}", "{(1, 2): 3}"),
        ("Named()", "Named()"),
        ("'\\ud800'", "'\\ud800'"),
        // No value.
        ("None", ""),
        ("x = 1", ""),
        ("print('a')", "a\n"),
        ("print('a', end=''); 1", "a\n1"),
    ];
    for (code, expected) in cases {
        assert_eq!(stdout(&mut executor, code).await, expected, "{code}");
    }
    let long = stdout(&mut executor, "list(range(100_000))").await;
    assert!(long.starts_with("[0, 1, 2, ") && long.ends_with("total 688890 chars)"), "{long}");
}

#[tokio::test]
async fn an_exception_is_told_with_its_traceback_and_the_output_is_kept() {
    let mut executor = executor().await;
    let code = "import sys\nprint('out')\nprint('err', file=sys.stderr)\nx = 1\nint('x')";
    let result = execute(&mut executor, code).await;
    let expected = "ValueError: invalid literal for int() with base 10: 'x'\n\
                    Traceback (most recent call last):\n  File \"<cell>\", line 5, in <module>\n    \
                    int('x')\n    ~~~^^^^^\n\
                    ValueError: invalid literal for int() with base 10: 'x'\n";
    assert_eq!((result.success, result.exception.as_deref()), (false, Some(expected)));
    assert_eq!(result.stdout, "out\n");
    assert_eq!(result.stderr, format!("err\n\n{expected}"));
    assert_eq!(result.locals_snapshot, [("x".to_owned(), "1".to_owned())]);
    // State is kept.
    assert_eq!(stdout(&mut executor, "x").await, "1");
    let result = execute(&mut executor, "1 +").await;
    assert!(result.exception.unwrap().starts_with("SyntaxError: invalid syntax"));
    let result = execute(&mut executor, "raise KeyError").await;
    assert!(result.exception.unwrap().starts_with("KeyError: \nTraceback"));
}

#[tokio::test]
async fn both_streams_are_cut_by_characters_with_a_note() {
    let mut executor = executor_with(|options| options.max_output_length = 10).await;
    let code = "import sys\nprint('é' * 12)\nprint('e' * 11, end='', file=sys.stderr)\n'v'";
    let result = execute(&mut executor, code).await;
    assert_eq!(result.stdout, format!("{}\n... (truncated, total 17 chars)", "é".repeat(10)));
    assert_eq!(result.stderr, format!("{}\n... (truncated, total 11 chars)", "e".repeat(10)));
    assert_eq!(stdout(&mut executor, "print('123456789')").await, "123456789\n");
    // The `exception` field is not truncated.
    let result = execute(&mut executor, "raise ValueError('a' * 100)").await;
    assert!(result.stderr.starts_with("ValueError\n... (truncated, total "), "{}", result.stderr);
    assert!(result.exception.unwrap().len() > 200);
}

#[tokio::test]
async fn the_limit_of_output_is_8192_by_default() {
    let mut executor = executor().await;
    assert_eq!(stdout(&mut executor, "print('x' * 8191)").await.len(), 8192);
    let cut = stdout(&mut executor, "print('x' * 8192)").await;
    assert_eq!(cut, format!("{}\n... (truncated, total 8193 chars)", "x".repeat(8192)));
}

#[tokio::test]
async fn the_snapshot_has_new_public_names_only() {
    let mut executor = executor().await;
    executor.set_variable("given", 1).await.unwrap();
    let names = |result: &ExecutionResult| -> Vec<String> {
        result.locals_snapshot.iter().map(|(name, _)| name.clone()).collect()
    };
    let code = "import math\nb = 1\n_private = __very = 2\na = 'x' * 600\ngiven = 2\nFINAL = 3";
    let result = execute(&mut executor, code).await;
    assert_eq!(names(&result), ["b", "a"]);
    assert_eq!(result.locals_snapshot[1].1, format!("'{}...", "x".repeat(499)));
    assert_eq!(names(&execute(&mut executor, "b = 2\nc = b").await), ["c"]);
    assert_eq!(names(&execute(&mut executor, "c").await), [""; 0]);
    executor.reset().await.unwrap();
    assert_eq!(names(&execute(&mut executor, "b = given = 1").await), ["b", "given"]);
}

#[tokio::test]
async fn variables_pass_as_values_and_never_as_source() {
    let mut executor = executor().await;
    let text = "it's \"quoted\"\n\\ ''' {} % __import__('os').abort()\0";
    executor.set_context(text).await.unwrap();
    executor.set_context_as("other", "document").await.unwrap();
    executor.set_variable("table", Value::dict([(1, vec![f64::INFINITY])])).await.unwrap();
    assert_eq!(
        stdout(&mut executor, "print(context); len(document)").await,
        format!("{text}\n\n5")
    );
    assert_eq!(executor.get_variable("context").await.unwrap(), Some(text.into()));
    execute(&mut executor, "table[2] = (1, 2)\nthing = object()").await;
    let table =
        Value::Dict(vec![(1.into(), vec![f64::INFINITY].into()), (2.into(), vec![1, 2].into())]);
    assert_eq!(executor.get_variable("table").await.unwrap(), Some(table));
    assert_eq!(executor.get_variable("missing").await.unwrap(), None);
    let error = executor.get_variable("thing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
    let error = executor.set_variable("x; import os", 1).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Value);
}

#[tokio::test]
async fn all_public_names_and_what_the_host_bound_are_listed() {
    let mut executor = executor().await;
    assert_eq!(executor.list_variables().await.unwrap(), HELPERS);
    executor.set_context("text").await.unwrap();
    executor.set_variable("_private", 1).await.unwrap();
    executor.inject_function(double()).await.unwrap();
    execute(&mut executor, "import math\nb = a = 1\n_hidden = 2\ndef f(): pass\ndel context").await;
    let mut expected = HELPERS.to_vec();
    expected.extend(["_private", "a", "b", "context", "double", "f"]);
    expected.sort_unstable();
    assert_eq!(executor.list_variables().await.unwrap(), expected);
}

#[tokio::test]
async fn injected_functions_are_called_from_the_code() {
    let mut executor = executor().await;
    executor.inject_function(double()).await.unwrap();
    let result = execute(&mut executor, "result = double(5)\n[double(x) for x in (1, 2)]").await;
    assert_eq!((result.success, result.stdout.as_str()), (true, "[2, 4]"));
    assert_eq!(executor.get_variable("result").await.unwrap(), Some(Value::Int(10)));
    let result = execute(&mut executor, "double('a')").await;
    assert!(result.exception.unwrap().starts_with("TypeError: x is no number\nTraceback"));
    let other = Tool::from_handler(ToolSpec::new("double"), |_, _| async { Ok("other".into()) });
    executor.inject_function(other).await.unwrap();
    assert_eq!(stdout(&mut executor, "double()").await, "\"other\"");
}

#[tokio::test]
async fn reset_drops_variables_and_functions_and_keeps_the_helpers() {
    let mut executor = allowing(&["math"]).await;
    executor.set_context("text").await.unwrap();
    executor.inject_function(double()).await.unwrap();
    execute(&mut executor, "x = 10\nFINAL = SHOW_VARS = None").await;
    executor.reset().await.unwrap();
    assert_eq!(executor.list_variables().await.unwrap(), HELPERS);
    assert_eq!(executor.get_variable("x").await.unwrap(), None);
    assert_eq!(stdout(&mut executor, "import math\nSHOW_VARS()").await, "[]");
    assert!(execute(&mut executor, "double(1)").await.exception.unwrap().contains("NameError"));
    assert!(execute(&mut executor, "import os").await.exception.unwrap().contains("ImportError"));
}

#[tokio::test]
async fn a_deadline_is_told_and_reset_starts_over() {
    let limits = Limits::default().max_run_time(Duration::from_millis(500));
    let limits = limits.max_grace(Duration::from_mins(1));
    let mut executor = executor_with(|options| options.limits = limits).await;
    let result = execute(&mut executor, "x = 1\nprint('so far')\nwhile True: pass").await;
    assert_eq!((result.success, result.stdout.as_str()), (false, "so far\n"));
    let sentence = result.exception.as_deref().unwrap();
    assert!(sentence.contains("the limit is 0.5 s"), "{sentence}");
    assert_eq!(result.stderr, sentence);
    assert_eq!(executor.final_answer(&result).await.unwrap(), None);
    assert_eq!(stdout(&mut executor, "x").await, "1");
    executor.reset().await.unwrap();
    assert_eq!(stdout(&mut executor, "'x' in globals()").await, "false");
}

#[tokio::test]
async fn exits_and_interrupts_are_told() {
    let mut executor = executor().await;
    let result = execute(&mut executor, "print('a')\nraise SystemExit('no')").await;
    assert_eq!((result.success, result.stdout.as_str()), (false, "a\n"));
    assert!(result.exception.unwrap().starts_with("SystemExit: no\nTraceback"));
    let handle = executor.interrupt_handle();
    let interrupter = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        handle.interrupt();
    });
    let result = execute(&mut executor, "while True: pass").await;
    interrupter.join().unwrap();
    assert_eq!(result.exception.as_deref(), Some("the run was interrupted"));
    assert_eq!(stdout(&mut executor, "1").await, "1");
    let result = execute(&mut executor, "import os; os._exit(3)").await;
    assert_eq!(result.exception.as_deref(), Some("the code exited with status 3"));
    executor.reset().await.unwrap();
    let result = execute(&mut executor, "import os; os.abort()").await;
    let sentence = result.exception.unwrap();
    assert!(!result.success && sentence.starts_with("the interpreter died"), "{sentence}");
}
