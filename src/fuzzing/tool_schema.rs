//! Schemas of tools, which servers of MCP give, and the arguments that guests give to the tools.

use super::memory::measured;
use crate::data::tool::param::Param;
use crate::data::tool::spec::ToolSpec;
use crate::data::tool::{TypeHint, stub};
use crate::data::value::{Value, marshal};
use crate::host::tools::bind::bind;

/// Parts an input; it is in no JSON.
const BETWEEN: u8 = 0xff;
/// How many times its length a schema may take to be read, and what it may take besides: types of
/// 1024 schemas.
const FACTOR: usize = 256;
const FIXED: usize = 4 << 20;
/// The most characters of the refusal of arguments.
const REFUSAL_CHARS: usize = 1000;

/// Reads a schema in JSON, and after a byte 0xFF arguments in marshal's format. The type is bounded
/// and is written as Python without a line of the schema's own; arguments that are bound are those
/// of the tool, and others are refused by one short text.
pub fn tool_schema(data: &[u8]) {
    let mut parts = data.splitn(2, |byte| *byte == BETWEEN);
    let Ok(schema) = serde_json::from_slice::<Value>(parts.next().unwrap_or_default()) else {
        return;
    };
    let (hint, used) = measured(|| TypeHint::from_json_schema(&schema));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let shown = hint.to_string();
    assert!(!shown.contains(['\n', '\r']), "{shown:?}");
    let name = schema.as_dict().and_then(|fields| fields.first()?.0.as_str()).unwrap_or("tool");
    let text = schema.as_str().unwrap_or(name);
    let param = Param::new("given").hint(hint.clone()).doc(text);
    let more = Param::new("more").hint(hint.clone()).var_keyword();
    let spec = ToolSpec::new(name).doc(text).param(param).param(more).returns(hint.clone());
    is_python(&stub("module", text, &[&spec, &ToolSpec::new("tool").returns(hint)]));
    if let Some(arguments) = parts.next()
        && let Ok(arguments) = marshal::decode_within(arguments, 1 << 20)
    {
        binds(&spec, arguments);
    }
}

/// Outside of its texts, each line is one of those that the stub writes, and no text ends early.
fn is_python(text: &str) {
    const QUOTES: &str = "\"\"\"";
    assert!(text.matches(QUOTES).count().is_multiple_of(2), "{text}");
    for outside in text.split(QUOTES).step_by(2) {
        for line in outside.lines() {
            let begins = ["class ", "def ", "async def ", "from ", "import ", "# ", "    ", "]"];
            let is_known = begins.iter().any(|known| line.starts_with(known))
                || line.split_once(' ').is_some_and(|(_, rest)| rest.starts_with("= TypedDict("));
            assert!(is_known || !line.starts_with(char::is_alphabetic), "{line:?} in {text}");
        }
    }
    let odd = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
    assert!(!text.contains(odd), "{text:?}");
}

fn binds(spec: &ToolSpec, arguments: Value) {
    match bind(spec, arguments.clone()) {
        Ok(Value::Dict(bound)) => {
            let names: Vec<&str> = bound.iter().filter_map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["given", "more"]);
            // What is bound is bound to the same again.
            let again = bind(spec, Value::Dict(bound.clone()));
            assert_eq!(format!("{again:?}"), format!("{:?}", Ok::<_, ()>(Value::Dict(bound))));
        }
        Ok(other) => unreachable!("{other} was bound"),
        Err(error) => {
            let text = error.to_string();
            assert!(text.chars().count() <= REFUSAL_CHARS + 100, "{text:?}");
        }
    }
}
