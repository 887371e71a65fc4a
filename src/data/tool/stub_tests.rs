//! Tests of `.pyi` files. `tests/it/tool_stubs.rs` has Python compile them.

use super::*;

fn field(name: &str, hint: TypeHint) -> ObjectHint {
    ObjectHint::new("").required(name, hint)
}

fn with(hint: TypeHint) -> ToolSpec {
    ToolSpec::new("f").param(Param::new("x").hint(hint))
}

/// Returns the file without its docstring.
fn body(specs: &[ToolSpec]) -> String {
    stub("m", "", specs).replacen("\"\"\"m\"\"\"\n", "", 1)
}

#[test]
fn every_kind_of_parameter_is_written() {
    let spec = ToolSpec::new("f")
        .param(Param::new("a").positional_only())
        .param(Param::new("b").hint(TypeHint::Int).default_value(2))
        .param(Param::new("rest").hint(TypeHint::Str).var_positional())
        .param(Param::new("c").hint(TypeHint::Float.or_none()).keyword_only().optional())
        .param(Param::new("more").var_keyword())
        .returns(TypeHint::List(Box::default()));
    let star = ToolSpec::new("g").param(Param::new("a").keyword_only().default_value("x"));
    let only = ToolSpec::new("h").param(Param::new("a").positional_only()).asynchronous();
    let expected = "
from typing import Any

def f(a: Any, /, b: int = 2, *rest: str, c: float | None = ..., **more: Any) -> list[Any]: ...

def g(*, a: Any = \"x\") -> Any: ...

async def h(a: Any, /) -> Any: ...
";
    assert_eq!(body(&[spec, star, only]), expected);
}

#[test]
fn dicts_become_classes_with_names_of_their_own() {
    let inner = field("from", TypeHint::Int).optional("x-y", TypeHint::Str);
    let page = ObjectHint::new("Page")
        .required("title", TypeHint::Str)
        .optional("at", TypeHint::Object(inner));
    let hidden = field("list", TypeHint::List(Box::new(TypeHint::Int)));
    let spec = ToolSpec::new("Page")
        .param(Param::new("some_page").hint(TypeHint::Object(page.clone())))
        .param(Param::new("other").hint(TypeHint::Object(page)))
        .returns(TypeHint::Object(hidden));
    let expected = "
from typing import NotRequired, TypedDict

PageSomePageAt = TypedDict(\"PageSomePageAt\", {
    \"from\": int,
    \"x-y\": NotRequired[str],
})

class Page2(TypedDict):
    title: str
    at: NotRequired[PageSomePageAt]

PageResult = TypedDict(\"PageResult\", {
    \"list\": list[int],
})

def Page(some_page: Page2, other: Page2) -> PageResult: ...
";
    assert_eq!(body(&[spec]), expected);
}

#[test]
fn a_tool_that_is_called_like_a_type_hides_none() {
    let list = ToolSpec::new("list").returns(TypeHint::List(Box::new(TypeHint::Str)));
    let any = ToolSpec::new("Any").param(Param::new("_typing"));
    let expected = "
import builtins as _builtins
import typing as _typing

def list() -> _builtins.list[str]: ...

def Any(_typing: _typing.Any) -> _typing.Any: ...

def _builtins2() -> _typing.Any: ...
";
    assert_eq!(body(&[list, any, ToolSpec::new("_builtins2")]), expected);
}

#[test]
fn values_that_no_literal_can_have_are_their_types() {
    let long = "x".repeat(MAX_VALUE_CHARS + 1);
    let mixed = vec!["a\"\n".into(), 1.into(), true.into(), Value::None, 1.5.into()];
    let cases = [
        (mixed, "Literal[\"a\\\"\\n\", 1, True, None] | float"),
        (vec![Value::List(Vec::new()), 1.into()], "Any"),
        (vec![long.into()], "str"),
        (Vec::new(), "Any"),
        ((0..200).map(Value::Int).collect(), "int"),
    ];
    for (values, expected) in cases {
        let text = body(&[with(TypeHint::Literal(values))]);
        assert!(text.contains(&format!("def f(x: {expected}) ->")), "{text}");
    }
}

#[test]
fn defaults_are_written_if_they_are_short_and_of_the_type() {
    let param = |hint, value: Value| Param::new("x").hint(hint).default_value(value);
    let cases = [
        (param(TypeHint::Int, "ten".into()), "int = ..."),
        (param(TypeHint::Str, "it's \"x\"".into()), "str = \"it's \\\"x\\\"\""),
        (param(TypeHint::Str, "x".repeat(1000).into()), "str = ..."),
        (param(TypeHint::Float, f64::NAN.into()), "float = ..."),
        (param(TypeHint::Float, 1e300.into()), "float = 1e+300"),
        (param(TypeHint::List(Box::default()), Value::List(Vec::new())), "list[Any] = []"),
        (param(TypeHint::Any, Value::List(vec![1.into()])), "Any = ..."),
        (param(TypeHint::Str.or_none(), Value::None), "str | None = None"),
    ];
    for (param, expected) in cases {
        let text = body(&[ToolSpec::new("f").param(param)]);
        assert!(text.contains(&format!("def f(x: {expected}) ->")), "{text}");
    }
}

#[test]
fn texts_cannot_end_their_strings() {
    let cases = [
        ("plain \"quoted\" text", "plain \"quoted\" text"),
        ("\"\"\"\nimport os\n\"\"\"", "\"\\\"\"\n    import os\n    \"\\\"\\\""),
        ("ends with \\", "ends with \\\\"),
        ("ends with \"", "ends with \\\""),
        ("\\\"\"\"", "\\\\\"\\\"\\\""),
        ("a\r\nb\rc\0d\u{202e}e\u{e0041}", "a\n    b\n    c\\x00d\\u202ee\\U000e0041"),
        ("a  \n\n  b", "a\n\n      b"),
    ];
    for (doc, expected) in cases {
        assert_eq!(docstring(doc, "    "), expected, "{doc:?}");
    }
}

#[test]
fn what_python_could_not_define_is_a_comment() {
    let specs = [
        ToolSpec::new("a-b\n): import os"),
        ToolSpec::new("f").param(Param::new("x y")),
        ToolSpec::new("m.f"),
        ToolSpec::new("f"),
    ];
    let expected = "
from typing import Any

# \"a-b\\n): import os\" cannot be called by its name

# \"f\" cannot be called by its name

def f() -> Any: ...

# \"f\" cannot be called by its name
";
    assert_eq!(body(&specs), expected);
}
