//! `js/ops.d.ts`: what JavaScript may pass to isolet's ops and what it gets, out of their Rust.
//!
//! Reads the few forms that ops have, as rustfmt leaves them, and refuses any other.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};

/// Where the ops are, and where their declarations.
pub(crate) const SOURCES: &str = "src/isolate/ops/";
pub(crate) const DECLARATIONS: &str = "js/ops.d.ts";

const HEAD: &str = "\
// The module `ext:core/ops`. Generated from `src/isolate/ops` by `cargo xtask generate`.
";

/// Longer declarations are spread over lines.
const MAX_COLUMNS: usize = 100;

/// An op as JavaScript sees it.
struct Op {
    documentation: Vec<String>,
    arguments: Vec<String>,
    result: String,
}

/// Returns the declarations of the ops in these files.
pub(crate) fn declarations<'a>(sources: impl Iterator<Item = &'a str>) -> Result<String> {
    let mut ops = BTreeMap::new();
    for source in sources {
        let mut before = Vec::new();
        for (at, line) in source.lines().enumerate() {
            if line.starts_with("#[op2") {
                let (name, op) = read(source, at, std::mem::take(&mut before))?;
                ops.insert(name, op);
            }
            match line.strip_prefix("/// ") {
                Some(text) => before.push(text.to_owned()),
                None => before.clear(),
            }
        }
    }
    let mut text = HEAD.to_owned();
    for (name, op) in ops {
        text.push_str(&op.declaration(&name));
    }
    Ok(text)
}

impl Op {
    fn declaration(&self, name: &str) -> String {
        let documentation = self.documentation.iter().map(|line| format!(" * {line}\n"));
        let documentation = match documentation.collect::<String>() {
            none if none.is_empty() => none,
            lines => format!("/**\n{lines} */\n"),
        };
        let (arguments, result) = (self.arguments.join(", "), &self.result);
        let mut line = format!("export function {name}({arguments}): {result};\n");
        if line.lines().any(|line| line.len() > MAX_COLUMNS) {
            let arguments = self.arguments.join(",\n  ");
            line = format!("export function {name}(\n  {arguments},\n): {result};\n");
        }
        format!("\n{documentation}{line}")
    }
}

/// Reads the op whose attribute is in line `at`.
fn read(source: &str, at: usize, documentation: Vec<String>) -> Result<(String, Op)> {
    let mut lines = source.lines().skip(at + 1);
    let mut attribute = None;
    let mut signature = String::new();
    for line in &mut lines {
        if signature.is_empty() && line.starts_with("#[") {
            attribute = Some(line.trim_start_matches("#[").trim_end_matches(']'));
            continue;
        }
        signature += line.trim();
        signature.push(' ');
        if line.ends_with('{') || line.ends_with('}') {
            break;
        }
    }
    let (head, rest) = signature.split_once("fn ").context("an op is no function")?;
    let (name, rest) = rest.split_once('(').context("an op has no arguments")?;
    let name = name.split('<').next().unwrap_or(name).to_owned();
    let op = || -> Result<Op> {
        let end = closing(rest).context("its arguments do not end")?;
        let (arguments, rest) = rest.split_at(end);
        let arguments = split(arguments).into_iter().filter_map(|each| argument(each).transpose());
        let arguments = arguments.collect::<Result<_>>()?;
        let result = rest.trim_start_matches(')').split('{').next().unwrap_or_default().trim();
        let result = result.strip_prefix("->").map_or("()", str::trim);
        let result = match inside(result, "Result<") {
            Some(parts) => parts.first().copied().unwrap_or_default(),
            None => result,
        };
        let result = kind(attribute, result, source)?;
        let result = if head.contains("async") { format!("Promise<{result}>") } else { result };
        Ok(Op { documentation, arguments, result })
    }();
    Ok((name.clone(), op.with_context(|| format!("cannot declare `{name}`"))?))
}

/// Returns an argument as TypeScript, or `None` if it is not one of JavaScript.
fn argument(argument: &str) -> Result<Option<String>> {
    let (attribute, argument) = match argument.strip_prefix("#[") {
        Some(rest) => {
            let (attribute, rest) = rest.split_once("] ").context("an attribute does not end")?;
            (Some(attribute), rest)
        }
        None => (None, argument),
    };
    let (name, of) = argument.split_once(": ").context("an argument has no type")?;
    if of.contains("OpState") || of.starts_with("&mut v8::PinScope") {
        return Ok(None);
    }
    let name = name.trim_start_matches("mut ");
    Ok(Some(format!("{name}: {}", kind(attribute, of, "")?)))
}

/// Returns a type as TypeScript. `source` has the structures that it may name.
fn kind(attribute: Option<&str>, of: &str, source: &str) -> Result<String> {
    let each = |parts: Vec<&str>| -> Result<Vec<String>> {
        parts.into_iter().map(|part| kind(attribute, part, source)).collect()
    };
    Ok(match (attribute, of) {
        (None, "()") => "void".to_owned(),
        (_, "bool") => "boolean".to_owned(),
        (_, "u32" | "i32" | "f64" | "i64" | "u64") => "number".to_owned(),
        (Some("string" | "serde"), "String") => "string".to_owned(),
        (Some("buffer"), "&[u8]" | "&mut [u8]") | (Some("serde"), "ToJsBuffer") => {
            "Uint8Array".to_owned()
        }
        (Some("scoped"), "v8::Global<v8::Function>") => "Function".to_owned(),
        (None, of) if of.starts_with("v8::Local<") => {
            match inside(of, "v8::Local<").and_then(|parts| parts.get(1).copied()) {
                Some("v8::Value") => "any".to_owned(),
                Some("v8::String") => "string".to_owned(),
                Some("v8::ArrayBuffer") => "ArrayBuffer".to_owned(),
                Some("v8::WasmModuleObject") => "WebAssembly.Module".to_owned(),
                _ => bail!("the type `{of}` is not known"),
            }
        }
        (_, of) if of.starts_with("impl Future<Output = ") => {
            let output = inside(of, "impl Future<Output = ").unwrap_or_default();
            format!("Promise<{}>", each(output)?.join(""))
        }
        (Some(_), of) if of.starts_with("Option<") => {
            format!("{} | null", each(inside(of, "Option<").unwrap_or_default())?.join(""))
        }
        (Some("serde"), of) if of.starts_with("Vec<") => {
            format!("{}[]", each(inside(of, "Vec<").unwrap_or_default())?.join(""))
        }
        (Some("serde"), of) if of.starts_with('(') => {
            format!("[{}]", each(inside(of, "(").unwrap_or_default())?.join(", "))
        }
        (Some("serde"), of) => structure(of, source)?,
        _ => bail!("the type `{of}` is not known"),
    })
}

/// Returns a structure that serde writes.
fn structure(name: &str, source: &str) -> Result<String> {
    let start = format!("struct {name} {{\n");
    let (_, fields) = source.split_once(&start).with_context(|| format!("there is no `{name}`"))?;
    let mut found = Vec::new();
    for line in fields.lines().take_while(|line| *line != "}") {
        let field = line.trim().trim_end_matches(',');
        if let Some((name, of)) = field.split_once(": ")
            && !field.starts_with("//")
        {
            found.push(format!("{name}: {}", kind(Some("serde"), of, source)?));
        }
    }
    Ok(format!("{{\n  {};\n}}", found.join(";\n  ")))
}

/// Returns the parts in the brackets that `start` opens at the start of a type.
fn inside<'a>(of: &'a str, start: &str) -> Option<Vec<&'a str>> {
    let rest = of.strip_prefix(start)?;
    Some(split(&rest[..closing(rest)?]))
}

/// Returns where the bracket ends that was opened before `text`.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_u32;
    text.char_indices().find_map(|(at, found)| {
        match found {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' if depth == 0 => return Some(at),
            ')' | ']' => depth -= 1,
            // Not that of `->`.
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        None
    })
}

/// Splits at the commas that are in no brackets.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut depth, mut start) = (0_i32, 0);
    for (at, found) in text.char_indices() {
        match found {
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(source: &str) -> String {
        let text = declarations([source].into_iter()).unwrap();
        text.strip_prefix(HEAD).unwrap().to_owned()
    }

    #[test]
    fn op_is_declared_with_what_javascript_passes_and_gets() {
        let source = "\
/// Reads `max` bytes.
#[op2(fast)]
#[smi]
pub(crate) fn op_isolet_read(
    state: &mut OpState,
    #[smi] file: u32,
    #[buffer] into: Option<&mut [u8]>,
    early: bool,
) -> Result<i32, OpError> {
";
        let expected = "
/**
 * Reads `max` bytes.
 */
export function op_isolet_read(file: number, into: Uint8Array | null, early: boolean): number;
";
        assert_eq!(declared(source), expected);
        let source = "\
#[derive(Serialize)]
struct Head {
    /// What failed.
    error: Option<(String, String)>,
    status: i64,
}
#[op2]
#[serde]
fn op_isolet_head<'s>(scope: &mut v8::PinScope<'s, '_>, #[string] a: String) -> Head {
}
#[op2]
pub(crate) async fn op_isolet_wait(state: Rc<RefCell<OpState>>) -> Result<(), OpError> {
";
        let expected = "
export function op_isolet_head(a: string): {
  error: [string, string] | null;
  status: number;
};

export function op_isolet_wait(): Promise<void>;
";
        assert_eq!(declared(source), expected);
    }

    #[test]
    fn form_that_is_not_known_is_refused_by_its_name() {
        let source = "#[op2]\nfn op_isolet_odd(#[string] a: &str) {\n";
        let error = declarations([source].into_iter()).unwrap_err();
        assert_eq!(
            format!("{error:#}"),
            "cannot declare `op_isolet_odd`: the type `&str` is not known"
        );
    }
}
