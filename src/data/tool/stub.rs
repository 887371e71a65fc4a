//! Writes tools as a `.pyi` file, for a person, an editor or a language model.
//!
//! Names, texts and defaults may be a stranger's: each is written as a name that Python takes, or
//! inside a string that it cannot end.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use super::hint::TypeHint;
use super::name::is_identifier;
use super::object::{Field, ObjectHint, Presence};
use super::param::{Default, Kind, Param};
use super::spec::{Style, ToolSpec};
use crate::data::value::Value;

/// The built-in types that annotations name.
const BUILTINS: [&str; 7] = ["bool", "bytes", "dict", "float", "int", "list", "str"];

/// What annotations name of `typing`.
const TYPING: [&str; 4] = ["Any", "Literal", "NotRequired", "TypedDict"];

/// The longest text of a value that is written, in characters, and the most values of a literal.
const MAX_VALUE_CHARS: usize = 200;
const MAX_VALUES: usize = 100;

/// Returns tools as a `.pyi` file: a class for each kind of dict, and a function with its docstring
/// for each tool. Modules of [`ToolModule`](crate::ToolModule) look so from the inside.
///
/// The text compiles, and type checkers take it, whatever the names and texts are. A tool whose
/// name Python does not take, or that comes twice, is a comment.
///
/// ```
/// use isolet::{ObjectHint, Param, ToolSpec, TypeHint, tool_stub};
///
/// let label = ObjectHint::new("Label").required("name", TypeHint::Str);
/// let spec = ToolSpec::new("add_label")
///     .doc("Adds a label.")
///     .param(Param::new("label").hint(TypeHint::Object(label)))
///     .returns(TypeHint::None);
/// assert_eq!(
///     tool_stub("github", "Issues.", &[spec]),
///     r#""""github: Issues."""
///
/// from typing import TypedDict
///
/// class Label(TypedDict):
///     name: str
///
/// def add_label(label: Label) -> None:
///     """Adds a label."""
/// "#
/// );
/// ```
#[must_use]
pub fn stub<S: Borrow<ToolSpec>>(module_name: &str, doc: &str, specs: &[S]) -> String {
    let names = specs.iter().map(|spec| short(spec.borrow()).to_owned()).collect();
    let mut writer = Writer { taken: names, ..Writer::default() };
    for own in BUILTINS.iter().chain(&TYPING) {
        writer.types.insert((*own).to_owned());
        if writer.taken.contains(*own) {
            writer.shadowed.insert(own);
        } else {
            writer.taken.insert((*own).to_owned());
        }
    }
    writer.builtins = writer.new_name("_builtins");
    writer.typing = writer.new_name("_typing");
    writer.types.extend([writer.builtins.clone(), writer.typing.clone()]);
    let mut defined = HashSet::new();
    let mut functions = String::new();
    for spec in specs.iter().map(Borrow::borrow) {
        let name = short(spec);
        let is_valid = is_identifier(name) && spec.validate_params().is_ok();
        if is_valid && defined.insert(name) {
            writer.function(spec, name, &mut functions);
        } else {
            let _ = write!(functions, "\n# {} cannot be called by its name\n", quoted(name));
        }
    }
    let title = if doc.trim().is_empty() {
        module_name.to_owned()
    } else {
        format!("{module_name}: {}", doc.trim())
    };
    let mut text = format!("\"\"\"{}\"\"\"\n", docstring(&title, ""));
    writer.imports(&mut text);
    text.push_str(&writer.classes);
    text.push_str(&functions);
    text
}

/// Returns the name of a tool without that of its module.
fn short(spec: &ToolSpec) -> &str {
    spec.name.rsplit_once('.').map_or(&*spec.name, |(_, name)| name)
}

#[derive(Default)]
struct Writer {
    /// All names of the file.
    taken: HashSet<String>,
    /// The names that annotations use.
    types: HashSet<String>,
    /// The types whose names are those of tools, so that they are written with their module's.
    shadowed: HashSet<&'static str>,
    builtins: String,
    typing: String,
    /// What is to be imported from `typing`.
    imported: HashSet<&'static str>,
    has_builtins: bool,
    has_typing: bool,
    classes: String,
    /// The names of the classes, by what they describe.
    known: HashMap<String, String>,
}

impl Writer {
    fn imports(&self, to: &mut String) {
        let mut names: Vec<&str> = self.imported.iter().copied().collect();
        names.sort_unstable();
        if self.has_builtins || self.has_typing || !names.is_empty() {
            to.push('\n');
        }
        if self.has_builtins {
            let _ = writeln!(to, "import builtins as {}", self.builtins);
        }
        if self.has_typing {
            let _ = writeln!(to, "import typing as {}", self.typing);
        }
        if !names.is_empty() {
            let _ = writeln!(to, "from typing import {}", names.join(", "));
        }
    }

    fn function(&mut self, spec: &ToolSpec, name: &str, to: &mut String) {
        let path = camel(name);
        let mut params = Vec::new();
        let mut before: Option<Kind> = None;
        for param in &spec.params {
            let was_positional_only = before == Some(Kind::PositionalOnly);
            if was_positional_only && param.kind != Kind::PositionalOnly {
                params.push("/".to_owned());
            }
            let had_star = before.is_some_and(|kind| kind >= Kind::VarPositional);
            if param.kind == Kind::KeywordOnly && !had_star {
                params.push("*".to_owned());
            }
            params.push(self.param(param, &path));
            before = Some(param.kind);
        }
        if before == Some(Kind::PositionalOnly) {
            params.push("/".to_owned());
        }
        let returns = self.hint(&spec.returns, &format!("{path}Result"));
        let keyword = if spec.style == Style::Async { "async def" } else { "def" };
        let params = params.join(", ");
        let _ = write!(to, "\n{keyword} {name}({params}) -> {returns}:");
        let doc = spec.docstring();
        if doc.is_empty() {
            to.push_str(" ...\n");
        } else {
            let _ = write!(to, "\n    \"\"\"{}\"\"\"\n", docstring(&doc, "    "));
        }
    }

    fn param(&mut self, param: &Param, path: &str) -> String {
        let hint = self.hint(&param.hint, &format!("{path}{}", camel(&param.name)));
        let default = match &param.default {
            Default::Required => String::new(),
            Default::Is(value) | Default::Elsewhere(value) if param.hint.accepts(value) => {
                let shown = default(value).unwrap_or_else(|| "...".to_owned());
                format!(" = {shown}")
            }
            Default::Is(_) | Default::Elsewhere(_) | Default::Unknown => " = ...".to_owned(),
        };
        format!("{}{}: {hint}{default}", param.kind.stars(), param.name)
    }

    /// Returns an annotation. Classes that it needs are named after `path`, if they have no name.
    fn hint(&mut self, hint: &TypeHint, path: &str) -> String {
        match hint {
            TypeHint::Any => self.typing("Any"),
            TypeHint::None => "None".to_owned(),
            TypeHint::Bool => self.builtin("bool"),
            TypeHint::Int => self.builtin("int"),
            TypeHint::Float => self.builtin("float"),
            TypeHint::Str => self.builtin("str"),
            TypeHint::Bytes => self.builtin("bytes"),
            TypeHint::List(item) => {
                let item = self.hint(item, path);
                format!("{}[{item}]", self.builtin("list"))
            }
            TypeHint::Dict(item) => {
                let item = self.hint(item, path);
                format!("{}[{}, {item}]", self.builtin("dict"), self.builtin("str"))
            }
            TypeHint::Object(object) => self.class(object, path),
            TypeHint::Union(members) => {
                let members = members.iter().map(|member| self.hint(member, path)).collect();
                self.union(members)
            }
            TypeHint::Literal(values) => self.literal(values),
        }
    }

    fn union(&mut self, members: Vec<String>) -> String {
        let mut different: Vec<String> = Vec::new();
        for member in members {
            if !different.contains(&member) {
                different.push(member);
            }
        }
        let any = self.typing_name("Any");
        if different.is_empty() || different.contains(&any) {
            return self.typing("Any");
        }
        different.join(" | ")
    }

    /// Returns the values that a `Literal` can have as one, and the types of the others.
    fn literal(&mut self, values: &[Value]) -> String {
        let is_short = values.len() <= MAX_VALUES;
        let literal = |value: &Value| match value {
            Value::None | Value::Bool(_) | Value::Int(_) | Value::Str(_) if is_short => {
                shown(value)
            }
            _ => None,
        };
        let written: Vec<String> = values.iter().filter_map(literal).collect();
        let mut members = Vec::new();
        if !written.is_empty() {
            members.push(format!("{}[{}]", self.typing("Literal"), written.join(", ")));
        }
        for value in values.iter().filter(|value| literal(value).is_none()) {
            members.push(match value {
                Value::None => "None".to_owned(),
                Value::Bool(_) => self.builtin("bool"),
                Value::Int(_) | Value::BigInt(_) => self.builtin("int"),
                Value::Float(_) => self.builtin("float"),
                Value::Str(_) => self.builtin("str"),
                Value::Bytes(_) => self.builtin("bytes"),
                Value::List(_) | Value::Dict(_) => self.typing("Any"),
            });
        }
        self.union(members)
    }

    fn class(&mut self, object: &ObjectHint, path: &str) -> String {
        let key = format!("{object:?}");
        if let Some(name) = self.known.get(&key) {
            return name.clone();
        }
        let wanted = if object.title.is_empty() { path } else { &object.title };
        let name = self.new_name(wanted);
        self.types.insert(name.clone());
        self.known.insert(key, name.clone());
        let mut fields = Vec::with_capacity(object.fields.len());
        for Field { name: key, hint, presence } in &object.fields {
            let mut shown = self.hint(hint, &format!("{path}{}", camel(key)));
            if *presence == Presence::Optional {
                shown = format!("{}[{shown}]", self.typing("NotRequired"));
            }
            fields.push((key.as_str(), shown));
        }
        let base = self.typing("TypedDict");
        // In a class, a name that begins so is changed, and one of a type hides the type.
        let is_plain =
            |key: &str| is_identifier(key) && !key.starts_with("__") && !self.types.contains(key);
        if fields.iter().all(|(key, _)| is_plain(key)) {
            let _ = write!(self.classes, "\nclass {name}({base}):\n");
            for (key, shown) in &fields {
                let _ = writeln!(self.classes, "    {key}: {shown}");
            }
            if fields.is_empty() {
                self.classes.push_str("    pass\n");
            }
        } else {
            let _ = write!(self.classes, "\n{name} = {base}(\"{name}\", {{\n");
            for (key, shown) in &fields {
                let _ = writeln!(self.classes, "    {}: {shown},", quoted(key));
            }
            self.classes.push_str("})\n");
        }
        name
    }

    /// Returns a name that no other part of the file has, and takes it.
    fn new_name(&mut self, wanted: &str) -> String {
        let wanted = if is_identifier(wanted) { wanted } else { "Object" };
        let mut name = wanted.to_owned();
        let mut number = 1;
        while self.taken.contains(&name) {
            number += 1;
            name = format!("{wanted}{number}");
        }
        self.taken.insert(name.clone());
        name
    }

    fn builtin(&mut self, name: &'static str) -> String {
        if self.shadowed.contains(name) {
            self.has_builtins = true;
            return format!("{}.{name}", self.builtins);
        }
        name.to_owned()
    }

    fn typing(&mut self, name: &'static str) -> String {
        if self.shadowed.contains(name) {
            self.has_typing = true;
        } else {
            self.imported.insert(name);
        }
        self.typing_name(name)
    }

    fn typing_name(&self, name: &str) -> String {
        if self.shadowed.contains(name) { format!("{}.{name}", self.typing) } else { name.into() }
    }
}

/// Returns `snake_case` as `SnakeCase`, without what is no part of a name.
fn camel(name: &str) -> String {
    let words = name.split(|letter: char| letter == '_' || !letter.is_alphanumeric());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().into_iter().flat_map(char::to_uppercase);
        first.chain(letters).collect::<String>()
    };
    words.map(capital).collect()
}

/// Returns a default as Python code, if it is short and plain.
fn default(value: &Value) -> Option<String> {
    match value {
        Value::Float(number) if !number.is_finite() => None,
        Value::List(items) if !items.is_empty() => None,
        Value::Dict(items) if !items.is_empty() => None,
        value => shown(value),
    }
}

/// Returns a value as Python code, if it is short.
fn shown(value: &Value) -> Option<String> {
    let is_long = |text: &str| text.chars().take(MAX_VALUE_CHARS + 1).count() > MAX_VALUE_CHARS;
    let text = match value {
        Value::Str(text) if is_long(text) => return None,
        Value::Bytes(bytes) if bytes.len() > MAX_VALUE_CHARS => return None,
        Value::Str(text) => quoted(text),
        value => value.to_string(),
    };
    (!is_long(&text) || matches!(value, Value::Str(_) | Value::Bytes(_))).then_some(text)
}

/// Returns a text as a string literal in one line.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\n' => quoted.push_str("\\n"),
            letter => escape(letter, &mut quoted),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns a text as the inside of a docstring, its lines indented.
fn docstring(text: &str, indent: &str) -> String {
    let text = text.trim().replace("\r\n", "\n").replace('\r', "\n");
    let mut written = String::new();
    let mut letters = text.chars().peekable();
    let mut after_quote = false;
    while let Some(letter) = letters.next() {
        let is_quote = letter == '"';
        // Never two quotes side by side, nor one at the end, where the closing ones follow.
        let is_escaped = is_quote && (after_quote || letters.peek().is_none());
        after_quote = is_quote && !is_escaped;
        match letter {
            '"' if is_escaped => written.push_str("\\\""),
            '\n' => {
                written.truncate(written.trim_end_matches([' ', '\t']).len());
                written.push('\n');
                if letters.peek().is_some_and(|next| *next != '\n') {
                    written.push_str(indent);
                }
            }
            letter => escape(letter, &mut written),
        }
    }
    written
}

/// Writes a character of a string, so that it is seen: what is invisible is escaped.
fn escape(letter: char, to: &mut String) {
    let code = u32::from(letter);
    let is_hidden = letter.is_control() && letter != '\t'
        || matches!(
            code,
            0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F | 0xFEFF
                | 0xFFF0..=0xFFFF | 0xE0000..=0xE0FFF
        );
    let _ = match code {
        0x5C => write!(to, "\\\\"),
        0..0x100 if is_hidden => write!(to, "\\x{code:02x}"),
        0..0x10000 if is_hidden => write!(to, "\\u{code:04x}"),
        _ if is_hidden => write!(to, "\\U{code:08x}"),
        _ => write!(to, "{letter}"),
    };
}

#[cfg(test)]
#[path = "stub_tests.rs"]
mod tests;
