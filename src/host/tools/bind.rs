//! Binds the arguments of a call to the parameters of its tool.

use std::collections::HashSet;

use crate::data::tool::param::{Check, Default, Kind, Param};
use crate::data::tool::{ToolError, ToolSpec};
use crate::data::value::Value;

/// The maximum length of a refusal, in characters. It repeats names and values of the guest.
const REFUSAL_CHARS: usize = 1000;

/// Returns the arguments by name: complete, checked and in the order of the parameters. Those of
/// `*name` are a list, those of `**name` a dict.
///
/// Python's own function object has already bound them. Arguments in any other form come from a
/// guest that bypassed it.
pub(crate) fn bind(spec: &ToolSpec, arguments: Value) -> Result<Value, ToolError> {
    let bound = bound(spec, arguments);
    bound.map_err(|reason| {
        let text = format!("{}() {reason}", spec.name);
        ToolError::new("TypeError", text.chars().take(REFUSAL_CHARS).collect::<String>())
    })
}

fn bound(spec: &ToolSpec, arguments: Value) -> Result<Value, String> {
    let Value::Dict(mut given) = arguments else {
        return Err("takes its arguments as a dict".to_owned());
    };
    let mut bound = Vec::with_capacity(spec.params.len());
    for param in &spec.params {
        let at = given.iter().position(|(key, _)| key.as_str() == Some(&param.name));
        let value = at.map(|at| given.swap_remove(at).1);
        let value = match (param.kind, value) {
            (Kind::VarPositional, value) => var_positional(spec, param, value)?,
            (Kind::VarKeyword, value) => var_keyword(spec, param, value)?,
            (_, Some(value)) => {
                check(param, &value, || format!("argument '{}'", param.name))?;
                value
            }
            (_, None) => match &param.default {
                Default::Is(value) => value.clone(),
                Default::Unknown | Default::Elsewhere(_) => continue,
                Default::Required => {
                    return Err(format!(
                        "missing 1 required positional argument: '{}'",
                        param.name
                    ));
                }
            },
        };
        bound.push((Value::from(param.name.as_str()), value));
    }
    match given.first() {
        Some((key, _)) => Err(format!("got an unexpected keyword argument {key}")),
        None => Ok(Value::Dict(bound)),
    }
}

fn var_positional(spec: &ToolSpec, param: &Param, value: Option<Value>) -> Result<Value, String> {
    let items = match value {
        None => Vec::new(),
        Some(Value::List(items)) => items,
        Some(_) => return Err(format!("takes '*{}' as a list", param.name)),
    };
    let before = spec.params.iter().filter(|param| param.kind.is_positional()).count();
    for (at, item) in items.iter().enumerate() {
        check(param, item, || format!("argument {}", before + at + 1))?;
    }
    Ok(Value::List(items))
}

fn var_keyword(spec: &ToolSpec, param: &Param, value: Option<Value>) -> Result<Value, String> {
    let items = match value {
        None => Vec::new(),
        Some(Value::Dict(items)) => items,
        Some(_) => return Err(format!("takes '**{}' as a dict", param.name)),
    };
    let others = spec.params.iter().filter(|param| param.kind.is_keyword());
    let mut names: HashSet<&str> = others.map(|param| param.name.as_str()).collect();
    for (key, item) in &items {
        let Some(name) = key.as_str() else {
            return Err(format!("takes names as keywords, not {key}"));
        };
        if !names.insert(name) {
            return Err(format!("got multiple values for argument '{name}'"));
        }
        check(param, item, || format!("argument '{name}'"))?;
    }
    Ok(Value::Dict(items))
}

/// Checks an argument against the type of its parameter. `shown` describes it for the refusal.
fn check(param: &Param, value: &Value, shown: impl FnOnce() -> String) -> Result<(), String> {
    match param.check {
        Check::AnnotationOnly => Ok(()),
        Check::Checked => param.hint.check(value).map_err(|reason| format!("{} {reason}", shown())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tool::TypeHint;

    /// `f(a, /, b=2, *rest: int, c, **more: str)`
    fn spec() -> ToolSpec {
        let params = [
            Param::new("a").positional_only(),
            Param::new("b").default_value(2),
            Param::new("rest").hint(TypeHint::Int).var_positional(),
            Param::new("c").keyword_only(),
            Param::new("more").hint(TypeHint::Str).var_keyword(),
        ];
        params.into_iter().fold(ToolSpec::new("f"), ToolSpec::param)
    }

    fn refused(arguments: impl IntoIterator<Item = (&'static str, Value)>) -> String {
        bind(&spec(), Value::dict(arguments)).unwrap_err().to_string()
    }

    fn given(name: &'static str, value: Value) -> [(&'static str, Value); 3] {
        [("a", 1.into()), ("c", 3.into()), (name, value)]
    }

    #[test]
    fn what_was_not_passed_is_filled_in_and_the_order_is_that_of_the_parameters() {
        let bound = bind(&spec(), Value::dict([("c", 3), ("a", 1)])).unwrap();
        let expected = Value::dict([
            ("a", 1.into()),
            ("b", 2.into()),
            ("rest", Value::List(Vec::new())),
            ("c", 3.into()),
            ("more", Value::Dict(Vec::new())),
        ]);
        assert_eq!(bound, expected);
    }

    #[test]
    fn each_of_many_arguments_is_checked() {
        let rest = Value::List(vec![1.into(), "x".into()]);
        let more = Value::dict([("d", Value::from("x")), ("e", 1.into())]);
        assert_eq!(refused(given("rest", rest)), "TypeError: f() argument 4 must be int, not str");
        assert_eq!(
            refused(given("more", more)),
            "TypeError: f() argument 'e' must be str, not int"
        );
    }

    #[test]
    fn arguments_that_no_function_of_python_would_send_are_refused() {
        let twice = Value::Dict(vec![("d".into(), "x".into()), ("d".into(), "y".into())]);
        let cases = [
            (given("rest", "text".into()), "takes '*rest' as a list"),
            (given("rest", Value::Dict(Vec::new())), "takes '*rest' as a list"),
            (given("more", Value::List(Vec::new())), "takes '**more' as a dict"),
            (given("more", Value::None), "takes '**more' as a dict"),
            (given("more", twice), "got multiple values for argument 'd'"),
            (given("more", Value::dict([("b", "x")])), "got multiple values for argument 'b'"),
            (given("more", Value::dict([("c", "x")])), "got multiple values for argument 'c'"),
            (
                given("more", Value::Dict(vec![(Value::Int(1), "x".into())])),
                "takes names as keywords, not 1",
            ),
            (given("a", 2.into()), "got an unexpected keyword argument 'a'"),
            (given("d", 2.into()), "got an unexpected keyword argument 'd'"),
        ];
        for (arguments, reason) in cases {
            assert_eq!(refused(arguments), format!("TypeError: f() {reason}"));
        }
        // These names are no parameters that a keyword can mean.
        let more = Value::dict([("a", "x"), ("rest", "y"), ("more", "z")]);
        let bound = bind(&spec(), Value::dict(given("more", more.clone()))).unwrap();
        assert_eq!(bound.get("more"), Some(&more));
    }

    #[test]
    fn a_refusal_repeats_little_of_the_guests_text() {
        let long = "x".repeat(1 << 20);
        let key = Value::Dict(vec![(long.as_str().into(), Value::None)]);
        let literal =
            ToolSpec::new("f").param(Param::new("x").hint(TypeHint::Literal(vec!["a".into()])));
        let refusals = [
            bind(&ToolSpec::new("f"), key).unwrap_err(),
            bind(&literal, Value::dict([("x", long)])).unwrap_err(),
        ];
        for refusal in refusals {
            assert_eq!(refusal.message().chars().count(), REFUSAL_CHARS);
        }
    }
}
