//! Tests of values that cross to the host, and of the errors for those that do not.

use isolet::{Limits, Value};

use crate::util::{eval, exec, raised, run, sandbox, session};

fn list<const N: usize>(items: [Value; N]) -> Value {
    Value::List(items.into())
}

#[tokio::test]
async fn scalars_and_containers_arrive_as_they_are() {
    let dict = |items: &[(Value, Value)]| Value::Dict(items.to_vec());
    let cases = [
        ("True", Value::Bool(true)),
        ("-1", Value::Int(-1)),
        ("1.0", Value::Float(1.0)),
        ("-0.5e300", Value::Float(-0.5e300)),
        ("float('inf')", Value::Float(f64::INFINITY)),
        ("'a' 'b'", Value::from("ab")),
        ("''", Value::from("")),
        ("b'\\x00\\xff'", Value::Bytes(vec![0, 255])),
        ("bytearray(b'ab')", Value::Bytes(b"ab".to_vec())),
        ("memoryview(b'abc')[::2]", Value::Bytes(b"ac".to_vec())),
        ("[]", Value::List(Vec::new())),
        (
            "[1, [2.5, [None]], (True, 'x')]",
            list([
                Value::Int(1),
                list([Value::Float(2.5), list([Value::None])]),
                list([Value::Bool(true), Value::from("x")]),
            ]),
        ),
        ("{3}", list([Value::Int(3)])),
        ("frozenset()", Value::List(Vec::new())),
        (
            "{'b': 1, 'a': {'c': []}}",
            dict(&[
                ("b".into(), Value::Int(1)),
                ("a".into(), dict(&[("c".into(), Value::List(Vec::new()))])),
            ]),
        ),
        (
            "{1: 2, None: 3, 2.5: 4, b'k': 5}",
            dict(&[
                (Value::Int(1), Value::Int(2)),
                (Value::None, Value::Int(3)),
                (Value::Float(2.5), Value::Int(4)),
                (Value::Bytes(b"k".to_vec()), Value::Int(5)),
            ]),
        ),
    ];
    let mut session = session().await;
    for (code, value) in cases {
        assert_eq!(eval(&mut session, code).await, value, "{code}");
    }
    assert!(eval(&mut session, "float('nan')").await.as_f64().unwrap().is_nan());
    let zero = eval(&mut session, "-0.0").await.as_f64().unwrap();
    assert!(zero == 0.0 && zero.is_sign_negative());
}

#[tokio::test]
async fn ints_of_any_size_arrive() {
    let mut session = session().await;
    for number in [i64::MAX, i64::MIN, 0, 1 << 30, -(1 << 15), i64::from(i32::MIN)] {
        assert_eq!(eval(&mut session, number.to_string()).await, Value::Int(number));
    }
    let past = [i128::from(i64::MAX) + 1, i128::from(i64::MIN) - 1, 1 << 100, -(1 << 90) + 1];
    for number in past {
        let value = eval(&mut session, number.to_string()).await;
        assert_eq!(value, Value::BigInt(number.into()));
    }
    let Value::BigInt(number) = eval(&mut session, "-(10 ** 1000)").await else {
        panic!("10 ** 1000 is no big int");
    };
    assert_eq!(number.to_string(), format!("-1{}", "0".repeat(1000)));
}

#[tokio::test]
async fn subclasses_and_dataclasses_arrive_as_their_plain_form() {
    let mut session = session().await;
    let code = "import collections, dataclasses, enum\n\
                class Name(str): pass\n\
                class Level(enum.IntEnum):\n    LOW = 1\n\
                @dataclasses.dataclass\n\
                class Point:\n    x: int\n    y: list\n\
                Pair = collections.namedtuple('Pair', 'a b')\n\
                @dataclasses.dataclass(slots=True)\n\
                class Slim:\n    z: Point";
    exec(&mut session, code).await;
    let point =
        || Value::Dict(vec![("x".into(), Value::Int(1)), ("y".into(), list([Value::Int(2)]))]);
    let cases = [
        ("Name('n')", Value::from("n")),
        ("Level.LOW", Value::Int(1)),
        ("Pair(1, 2)", list([Value::Int(1), Value::Int(2)])),
        ("Point(1, [2])", point()),
        ("[Slim(Point(1, [2]))]", list([Value::Dict(vec![("z".into(), point())])])),
        ("collections.OrderedDict(a=1)", Value::Dict(vec![("a".into(), Value::Int(1))])),
        ("collections.Counter('aa')", Value::Dict(vec![("a".into(), Value::Int(2))])),
    ];
    for (code, value) in cases {
        assert_eq!(eval(&mut session, code).await, value, "{code}");
    }
}

#[tokio::test]
async fn what_cannot_cross_still_has_a_repr_and_a_reason() {
    let mut session = session().await;
    let code = "class Thing:\n    def __repr__(self): return 'a thing'\nx = []\nx.append(x)";
    exec(&mut session, code).await;
    let cases = [
        ("Thing()", "a thing", "Thing"),
        ("[1, Thing()]", "[1, a thing]", "Thing"),
        ("{(1, 2): 3}", "{(1, 2): 3}", "tuple"),
        ("len", "<built-in function len>", "builtin_function_or_method"),
        ("1j", "1j", "complex"),
        ("x", "[[...]]", "nested"),
        ("'\\ud800'", "'\\ud800'", "surrogate"),
        ("{'a': '\\udfff'}", "{'a': '\\udfff'}", "surrogate"),
        ("{'\\udfff': 1}", "{'\\udfff': 1}", "surrogate"),
    ];
    for (code, repr, reason) in cases {
        let execution = exec(&mut session, code).await;
        assert_eq!(execution.value(), None, "{code}");
        assert_eq!(execution.repr(), Some(repr), "{code}");
        let error = execution.value_error().unwrap();
        assert!(error.contains(reason), "{code}: {error}");
    }
}

#[tokio::test]
async fn a_lone_surrogate_cannot_be_printed() {
    let mut session = session().await;
    let exception = raised(&mut session, "print('\\ud800')").await;
    assert_eq!(exception.type_name, "UnicodeEncodeError");
    let exception = raised(&mut session, "raise ValueError('\\ud800')").await;
    assert_eq!(exception.message, "\\ud800");
}

#[tokio::test]
async fn a_value_nested_too_deep_has_a_reason() {
    let mut session = session().await;
    let code = "x = 0\nfor _ in range(1000): x = [x]\nx";
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.value(), None);
    assert!(execution.value_error().unwrap().contains("nested"));
    let code = "x = 0\nfor _ in range(100): x = {'k': x}\nx";
    let mut value = &eval(&mut session, code).await;
    for _ in 0..100 {
        value = value.get("k").unwrap();
    }
    assert_eq!(*value, Value::Int(0));
}

#[tokio::test]
async fn a_value_past_the_limit_stays_and_both_sizes_are_named() {
    let limits = Limits::default().max_value_bytes(1000);
    let mut session = sandbox(limits).session().await.unwrap();
    for code in ["'x' * 12345", "list(range(5000))", "b'x' * 12345", "[['x' * 999] * 2]"] {
        let execution = exec(&mut session, code).await;
        assert_eq!(execution.value(), None, "{code}");
        let error = execution.value_error().unwrap();
        assert!(error.contains(" 1000 bytes"), "{code}: {error}");
        assert_eq!(error.matches(" bytes").count(), 2, "{code}: {error}");
        assert!(execution.repr().is_some());
    }
    let error = exec(&mut session, "'x' * 12345").await;
    assert!(error.value_error().unwrap().contains("1235"), "{error:?}");
    let value = eval(&mut session, "'x' * 900").await;
    assert_eq!(value.as_str().map(str::len), Some(900));
}

#[tokio::test]
async fn a_value_of_many_megabytes_crosses_whole() {
    let mut session = session().await;
    let value = eval(&mut session, "'é' * (10 << 20)").await;
    assert!(value.as_str().unwrap() == "é".repeat(10 << 20));
    let value = eval(&mut session, "'a' * (20 << 20)").await;
    assert!(value.as_str().unwrap() == "a".repeat(20 << 20));
    let value = eval(&mut session, "list(range(100_000))").await;
    assert!(value == Value::List((0..100_000).map(Value::Int).collect()));
}

#[tokio::test]
async fn a_long_repr_is_cut_at_its_limit() {
    let limit = usize::try_from(Limits::REPR_CHARS).unwrap();
    for code in [
        "'x' * 200_000",
        "b'x' * 200_000",
        "list(range(200_000))",
        "'é' * 200_000",
        "type('T', (), {'__repr__': lambda self: 'x' * 200_000})()",
    ] {
        let execution = run(code).await;
        let repr = execution.repr().unwrap();
        let end = repr.trim_end_matches([']', '}']);
        assert!(end.ends_with("..."), "{code}: {}", &repr[repr.len() - 20..]);
        let chars = repr.chars().count();
        assert!(chars <= limit + 3, "{code}: {chars}");
    }
}
