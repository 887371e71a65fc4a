//! Tests of variables that the host sets, reads, lists and deletes.

use isolet::{Cell, Error, ErrorKind, Limits, Value};

use crate::util::{builder, eval, exec, sandbox, session};

fn refusal(error: &Error) -> (ErrorKind, bool, String) {
    (error.kind(), error.session_survives(), error.to_string())
}

#[tokio::test]
async fn what_is_set_is_what_python_and_the_host_get() {
    let mut session = session().await;
    let text = "it's \"quoted\"\n\\ '''''' {} % __import__('os') \u{1f600}\0";
    session.set("text", text).await.unwrap();
    assert_eq!(eval(&mut session, "text").await, Value::from(text));
    assert_eq!(session.get("text").await.unwrap(), Some(Value::from(text)));
    session.set_many([("a", 1), ("größe", 2)]).await.unwrap();
    assert_eq!(eval(&mut session, "a + größe").await, Value::Int(3));
    session.set("a", Value::None).await.unwrap();
    assert_eq!(session.get("a").await.unwrap(), Some(Value::None));
    assert_eq!(session.get("missing").await.unwrap(), None);
    assert_eq!(session.get("not a name").await.unwrap(), None);
}

#[tokio::test]
async fn a_name_that_python_cannot_use_is_refused_and_sets_nothing() {
    let mut session = session().await;
    for name in ["", "a b", "class", "1x", "x; import os", "x\n"] {
        let error = session.set_many([("fine", 1), (name, 2)]).await.unwrap_err();
        let sentence =
            format!("`{}` cannot be a variable, it is no Python identifier", name.escape_debug());
        assert_eq!(refusal(&error), (ErrorKind::Value, true, sentence));
    }
    assert_eq!(session.get("fine").await.unwrap(), None);
}

#[tokio::test]
async fn inputs_are_bound_before_the_code_and_remain() {
    let mut session = session().await;
    exec(&mut session, "b = 'old'").await;
    let cell = Cell::new("b, c = b + a, 3; b").inputs([("a", "x"), ("b", "y")]).inputs([("d", 4)]);
    let ran = session.run(cell).await.unwrap();
    assert_eq!(ran.value(), Some(&Value::from("yx")));
    let bound: Vec<&str> = ran.locals().iter().map(|local| local.name.as_str()).collect();
    assert_eq!(bound, ["b", "c"], "what the code has bound");
    assert_eq!(eval(&mut session, "a + b + str(d)").await, Value::from("xyx4"));
    // They are there when the code is wrong, too.
    let ran = session.run(Cell::new("1 +").inputs([("e", 5)])).await.unwrap();
    assert_eq!(ran.exception().unwrap().type_name, "SyntaxError");
    assert_eq!(session.get("e").await.unwrap(), Some(Value::Int(5)));
}

#[tokio::test]
async fn long_texts_arrive_as_they_are_and_in_their_order() {
    let mut session = session().await;
    let long = "All work and no play. ".repeat(10_000);
    let of_length = |length| "x".repeat(length);
    let texts = [
        ("a", long.clone()),
        ("b", "short".to_owned()),
        ("c", format!("{long}\u{e9}")),
        ("d", long.to_uppercase()),
        ("e", "\0".repeat(20_000)),
        ("f", of_length((16 << 10) - 1)),
        ("g", of_length(16 << 10)),
    ];
    session.run(Cell::new("None").inputs(texts.clone())).await.unwrap();
    session
        .set_many(texts.clone().map(|(name, text)| (format!("set_{name}"), text)))
        .await
        .unwrap();
    let bound = session.variables().await.unwrap();
    let names: Vec<&str> = bound.iter().map(|variable| variable.name.as_str()).collect();
    let expected = texts.iter().map(|(name, _)| format!("set_{name}")).collect::<Vec<_>>();
    assert_eq!(names[..7], texts.clone().map(|(name, _)| name));
    assert_eq!(names[7..], expected);
    for (name, text) in &texts {
        for name in [(*name).to_owned(), format!("set_{name}")] {
            assert_eq!(session.get(&name).await.unwrap().as_ref(), Some(&text.as_str().into()));
        }
    }
    // They are like any other: their hash, what they are equal to, what can be done with them.
    let code = "
same = 'All work and no play. ' * 10_000
[a == same, {same: 1}.get(a), hash(a) == hash(same), a.isascii(), a.encode() == same.encode(),
 a.upper() == d, a.find('play'), sorted([d, a])[0] is d, e.strip(chr(0)), a is set_a]";
    let expected: Vec<Value> = vec![
        true.into(),
        1.into(),
        true.into(),
        true.into(),
        true.into(),
        true.into(),
        16.into(),
        true.into(),
        "".into(),
        false.into(),
    ];
    assert_eq!(eval(&mut session, code).await, Value::List(expected));
}

#[tokio::test]
async fn long_texts_come_back_as_they_are_up_to_the_limit() {
    let limits = Limits::default().max_value_bytes(100_000);
    let mut session = sandbox(limits).session().await.unwrap();
    for (code, text) in [
        ("'x' * 16_384", "x".repeat(16_384)),
        ("'x' * 16_383", "x".repeat(16_383)),
        ("'All work and no play. ' * 4000", "All work and no play. ".repeat(4000)),
        ("chr(0) * 70_000", "\0".repeat(70_000)),
        ("chr(233) + 'x' * 20_000", format!("\u{e9}{}", "x".repeat(20_000))),
        ("'x' * 99_995", "x".repeat(99_995)),
    ] {
        let text = Value::from(text);
        assert_eq!(eval(&mut session, format!("value = {code}; value")).await, text, "{code}");
        assert_eq!(session.get("value").await.unwrap(), Some(text), "{code}");
    }
    let ran = session.run("'x' * 100_000").await.unwrap();
    let reason = "a value of 100005 bytes cannot cross to the host, the limit is 100000 bytes";
    assert_eq!((ran.value(), ran.value_error()), (None, Some(reason)));
    assert!(ran.repr().is_some_and(|repr| repr.starts_with("'xxx")));
}

#[tokio::test]
async fn of_two_inputs_with_one_name_the_last_one_is_bound() {
    let mut session = session().await;
    let (long, short) = ("x".repeat(20_000), "short".to_owned());
    for texts in [[&long, &short], [&short, &long], [&long, &long.replace('x', "y")]] {
        let inputs = texts.map(|text| ("name", text.clone()));
        session.run(Cell::new("None").inputs(inputs)).await.unwrap();
        assert_eq!(session.get("name").await.unwrap(), Some(texts[1].as_str().into()));
    }
}

#[tokio::test]
async fn inputs_that_cannot_be_bound_are_refused_and_nothing_runs() {
    let mut session = sandbox(Limits::default().max_value_bytes(1000)).session().await.unwrap();
    let wrong = [("class", "x".to_owned()), ("large", "x".repeat(1000))];
    for (name, value) in wrong {
        let cell = Cell::new("ran = True").inputs([("fine", "x".to_owned()), (name, value)]);
        let error = session.run(cell).await.unwrap_err();
        assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Value, true), "{error}");
    }
    assert_eq!(session.get("ran").await.unwrap(), None);
    assert_eq!(session.get("fine").await.unwrap(), None);
}

#[tokio::test]
async fn inputs_that_do_not_fit_into_the_guests_memory_are_a_memory_error_of_the_run() {
    let limits = Limits::default().max_memory_bytes(96 << 20).max_value_bytes(256 << 20);
    let mut session = sandbox(limits).session().await.unwrap();
    let cell = Cell::new("ran = True").inputs([("large", "x".repeat(200 << 20))]);
    let ran = session.run(cell).await.unwrap();
    assert_eq!(ran.exception().unwrap().type_name, "MemoryError");
    assert!(ran.session_alive());
    assert_eq!(session.get("ran").await.unwrap(), None);
}

#[tokio::test]
async fn too_large_and_too_deep_values_are_refused_with_both_numbers() {
    let mut session = sandbox(Limits::default().max_value_bytes(1000)).session().await.unwrap();
    let error = session.set("x", "y".repeat(2000)).await.unwrap_err();
    assert_eq!(
        refusal(&error),
        (
            ErrorKind::Value,
            true,
            "a value of 2005 bytes cannot cross to the guest, the limit is 1000 bytes".to_owned()
        )
    );
    // The limit applies to the sum of all values.
    assert!(session.set_many([("a", "y".repeat(600)), ("b", "y".repeat(600))]).await.is_err());
    exec(&mut session, "big = 'y' * 2000").await;
    let (kind, alive, message) = refusal(&session.get("big").await.unwrap_err());
    assert_eq!((kind, alive), (ErrorKind::Value, true));
    assert!(message.contains("2005 bytes") && message.contains("1000 bytes"), "{message}");

    let nested = |depth| (1..depth).fold(Value::List(vec![]), |inner, _| Value::List(vec![inner]));
    let mut session = sandbox(Limits::default()).session().await.unwrap();
    session.set("deep", nested(100)).await.unwrap();
    assert_eq!(session.get("deep").await.unwrap(), Some(nested(100)));
    let (kind, alive, message) = refusal(&session.set("deep", nested(101)).await.unwrap_err());
    assert_eq!((kind, alive), (ErrorKind::Value, true));
    assert!(message.contains("100 levels"), "{message}");
    exec(&mut session, "deeper = [deep]").await;
    let (_, _, message) = refusal(&session.get("deeper").await.unwrap_err());
    assert_eq!(message, "a value nested deeper than 100 levels cannot cross to the host");
}

#[tokio::test]
async fn a_value_that_cannot_cross_is_an_error_and_the_session_lives_on() {
    let mut session = session().await;
    exec(&mut session, "x, y = object(), '\\ud800'").await;
    let (kind, alive, message) = refusal(&session.get("x").await.unwrap_err());
    assert_eq!((kind, alive), (ErrorKind::Value, true));
    assert_eq!(message, "a value of type object cannot cross to the host");
    let (_, _, message) = refusal(&session.get("y").await.unwrap_err());
    assert_eq!(
        message,
        "a str with the lone surrogate '\\ud800' at index 0 cannot cross to the host"
    );
}

#[tokio::test]
async fn variables_are_listed_with_type_size_and_a_capped_repr() {
    let mut session = session().await;
    let code = "
import math, collections
_private = 1
text, items, number = 'x' * 1000, [1, 2, 3], 2.5
class Box:
    def __len__(self): return 10**9
    def __repr__(self): return '<box>'
box = Box()
def f(): pass
";
    exec(&mut session, code).await;
    let listed: Vec<_> = session
        .variables()
        .await
        .unwrap()
        .into_iter()
        .map(|variable| (variable.name, variable.type_name, variable.size, variable.repr.len()))
        .filter(|(name, ..)| name != "f")
        .collect();
    let expected = [
        ("text", "str", Some(1000), 503),
        ("items", "list", Some(3), 9),
        ("number", "float", None, 3),
        ("Box", "type", None, 22),
        ("box", "Box", None, 5),
    ];
    let expected =
        expected.map(|(name, kind, size, length)| (name.to_owned(), kind.to_owned(), size, length));
    assert_eq!(listed, expected);
}

#[tokio::test]
async fn host_functions_are_no_variables_until_they_are_rebound() {
    let tool = isolet::Tool::from_fn("search", |(): (), _| async { Ok(1) });
    let mut session = builder().tool(tool).submit([]).build().unwrap().session().await.unwrap();
    assert_eq!(session.variables().await.unwrap(), []);
    exec(&mut session, "search = search()").await;
    let variables = session.variables().await.unwrap();
    assert_eq!((variables.len(), variables[0].name.as_str()), (1, "search"));
}

#[tokio::test]
async fn deleting_says_whether_there_was_something() {
    let mut session = session().await;
    session.set("x", 1).await.unwrap();
    assert!(session.delete("x").await.unwrap());
    assert!(!session.delete("x").await.unwrap());
    assert_eq!(session.get("x").await.unwrap(), None);
}

#[tokio::test]
async fn a_reset_leaves_nothing_of_the_guest_and_reopens_a_closed_session() {
    let mut session = session().await;
    let code =
        "x = 1\nimport builtins, sys\nbuiltins.y = 2\nsys.z = 3\nopen('/tmp/f', 'w').write('4')";
    exec(&mut session, code).await;
    session.reset().await.unwrap();
    let code = "import os, sys\n['x' in globals(), hasattr(__builtins__, 'y'), hasattr(sys, 'z'), \
                os.path.exists('/tmp/f')]";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![false.into(); 4]));

    let cell =
        isolet::Cell::new("sum(range(10**12))").timeout(std::time::Duration::from_millis(50));
    assert!(!session.run(cell).await.unwrap().session_alive());
    assert_eq!(session.set("x", 1).await.unwrap_err().kind(), ErrorKind::Closed);
    session.reset().await.unwrap();
    assert_eq!(eval(&mut session, "40 + 2").await, Value::Int(42));
}

#[tokio::test]
async fn a_string_of_256_mib_goes_in_and_out() {
    // Up to five copies of it exist while it crosses.
    let limits = Limits::default().max_value_bytes((256 << 20) + 100).max_memory_bytes(2 << 30);
    let mut session = sandbox(limits).session().await.unwrap();
    let text = "0123456789abcdef".repeat(16 << 20);
    session.set("text", text.clone()).await.unwrap();
    let code = "len(text), text[-16:], text.isascii()";
    let expected = Value::List(vec![(256i64 << 20).into(), "0123456789abcdef".into(), true.into()]);
    assert_eq!(eval(&mut session, code).await, expected);
    let back = session.get("text").await.unwrap().unwrap();
    assert!(back.as_str() == Some(text.as_str()), "the text has changed");
}

#[tokio::test]
async fn what_the_guest_has_no_memory_for_is_an_error_and_the_session_lives_on() {
    let mut session = session().await;
    exec(
        &mut session,
        "hog = []\ntry:\n    while True: hog.append(bytearray(64 << 20))\nexcept MemoryError: pass",
    )
    .await;
    exec(&mut session, "hog.pop(); hog.pop(); None").await;
    let (kind, alive, message) =
        refusal(&session.set("text", "x".repeat(200 << 20)).await.unwrap_err());
    assert_eq!((kind, alive), (ErrorKind::Value, true), "{message}");
    assert!(message.contains("MemoryError"), "{message}");
    exec(&mut session, "hog.clear()").await;
    session.set("text", "x".repeat(200 << 20)).await.unwrap();
    assert_eq!(eval(&mut session, "len(text)").await, Value::Int(200 << 20));
}

#[tokio::test]
async fn pythons_richer_types_turn_into_plain_ones_on_the_way_out() {
    let mut session = session().await;
    let code = "
import array, collections, dataclasses, datetime, decimal, enum, fractions, pathlib, types, uuid
@dataclasses.dataclass
class Point:
    x: int
    y: list
class Color(enum.Enum): RED = 'red'
class Level(enum.IntEnum): HIGH = 3
class Named(collections.namedtuple('Named', 'a b')): pass
class Model:  # as pydantic's
    __pydantic_fields__ = {}
    def model_dump(self): return {'m': Point(1, [])}
class Scalar:  # as numpy's
    def tolist(self): return 7
class Text(str): pass
";
    exec(&mut session, code).await;
    let list = |items: &[i64]| Value::List(items.iter().copied().map(Value::from).collect());
    let cases = [
        ("(1, 2)", list(&[1, 2])),
        ("{3}", list(&[3])),
        ("frozenset([3])", list(&[3])),
        ("range(3)", list(&[0, 1, 2])),
        ("collections.deque([1])", list(&[1])),
        ("{1: 2}.keys()", list(&[1])),
        ("{1: 2}.values()", list(&[2])),
        ("array.array('i', [1, 2])", list(&[1, 2])),
        ("Named(1, 2)", list(&[1, 2])),
        ("Point(1, (2,))", Value::Dict(vec![("x".into(), 1.into()), ("y".into(), list(&[2]))])),
        (
            "Model()",
            Value::Dict(vec![(
                "m".into(),
                Value::Dict(vec![("x".into(), 1.into()), ("y".into(), list(&[]))]),
            )]),
        ),
        ("Scalar()", 7.into()),
        ("Color.RED", "red".into()),
        ("Level.HIGH", 3.into()),
        ("True", true.into()),
        ("Text('t')", "t".into()),
        ("bytearray(b'b')", Value::Bytes(b"b".to_vec())),
        ("memoryview(b'b')", Value::Bytes(b"b".to_vec())),
        ("datetime.datetime(2026, 1, 2, 3, 4, 5)", "2026-01-02T03:04:05".into()),
        ("datetime.date(2026, 1, 2)", "2026-01-02".into()),
        ("datetime.time(3, 4)", "03:04:00".into()),
        ("datetime.timedelta(minutes=1.5)", Value::Float(90.0)),
        ("decimal.Decimal('1.10')", "1.10".into()),
        ("fractions.Fraction(1, 3)", "1/3".into()),
        ("pathlib.Path('/a') / 'b'", "/a/b".into()),
        ("uuid.UUID(int=1)", "00000000-0000-0000-0000-000000000001".into()),
        ("types.MappingProxyType({'a': 1})", Value::Dict(vec![("a".into(), 1.into())])),
        ("collections.Counter('aa')", Value::Dict(vec![("a".into(), 2.into())])),
    ];
    for (code, expected) in cases {
        assert_eq!(eval(&mut session, code).await, expected, "{code}");
    }
    // Also as keys, and inside any container.
    let nested = "{Color.RED: [{Level.HIGH: datetime.date(2026, 1, 2)}]}";
    let expected = Value::Dict(vec![(
        "red".into(),
        Value::List(vec![Value::Dict(vec![(3.into(), "2026-01-02".into())])]),
    )]);
    assert_eq!(eval(&mut session, nested).await, expected);
}
