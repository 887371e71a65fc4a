//! Finds the exports of CPython that Pyodide's JavaScript uses.
//!
//! Emscripten assigns each export to a variable, all in one function that does nothing else:
//! `_name=Module["_name"]=wasmExports["name"];`, or for an address:
//! `wasmExports["name"].value>>>0`. Most of these variables are used only by the JavaScript that
//! packages bring.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

const OPENING: &str = "function assignWasmExports(wasmExports){";
const ALL: &str = "function assignAllWasmExports(wasmExports){";
const EXPORTS: &str = "wasmExports";
/// The object that has the variables as properties too.
const HOLDER: &str = "Module";

/// Splits the function in `module`: it keeps the used exports, and a second function assigns all,
/// as the original did. Returns the new text and the used exports. `glue` are other texts that use
/// the variables.
pub(super) fn split<'a>(
    module: &'a str,
    glue: &[Cow<'_, str>],
) -> Option<(String, HashSet<&'a str>)> {
    let (before, rest) = module.split_once(OPENING)?;
    let (body, after) = rest.split_once('}')?;
    let mut mentions: HashMap<&str, u32> = HashMap::new();
    for name in [before, after].into_iter().flat_map(names) {
        *mentions.entry(name).or_default() += 1;
    }
    let in_glue: HashSet<&str> = glue.iter().flat_map(|text| names(text)).collect();
    // One mention is the declaration.
    let is_used =
        |name: &str| mentions.get(name).is_some_and(|times| *times > 1) || in_glue.contains(name);
    let mut used: HashSet<&str> = [before, after].into_iter().flat_map(named_by_export).collect();
    let mut assignments = String::new();
    for statement in body.split_terminator(';') {
        let (export, mut variables) = assigned(statement)?;
        if variables.any(is_used) {
            used.insert(export);
        }
        if used.contains(export) {
            assignments.push_str(statement);
            assignments.push(';');
        }
    }
    let text = format!("{before}{OPENING}{assignments}}}{ALL}{body}}}{after}");
    Some((text, used))
}

/// Returns the export in an assignment of the function, and the variables that it sets.
fn assigned(statement: &str) -> Option<(&str, impl Iterator<Item = &str>)> {
    let (variables, value) = statement.rsplit_once('=')?;
    let export = value.strip_prefix(EXPORTS)?.strip_prefix("[\"")?;
    let (export, _) = export.split_once("\"]")?;
    Some((export, names(variables).filter(|name| *name != HOLDER)))
}

/// Returns the exports that `text` names explicitly.
fn named_by_export(text: &str) -> impl Iterator<Item = &str> {
    text.split(EXPORTS).skip(1).filter_map(|rest| {
        let name = rest.strip_prefix("[\"").or_else(|| rest.strip_prefix('.'))?;
        names(name).next().filter(|first| name.starts_with(first))
    })
}

/// Returns the identifiers in `text`, and everything else with the same spelling.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '$'))
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "var _a,_b,_c,_d;f(wasmExports.e);wasmExports[\"g\"]();\
        function assignWasmExports(wasmExports){_a=Module[\"_a\"]=wasmExports[\"a\"];\
        _b=Module[\"_b\"]=wasmExports[\"b\"].value>>>0;_c=wasmExports[\"c\"];\
        _d=Module[\"_d\"]=wasmExports[\"d\"]}\
        call(Module,_a);call(Module)";

    #[test]
    fn what_the_module_or_the_glue_mention_is_used_and_the_rest_is_assigned_apart() {
        let (text, used) = split(MODULE, &["Module._d".into()]).unwrap();
        let mut used: Vec<_> = used.into_iter().collect();
        used.sort_unstable();
        assert_eq!(used, ["a", "d", "e", "g"]);
        let (first, rest) = text.split_once(ALL).unwrap();
        assert!(first.contains("_a=") && first.contains("_d=Module"), "{first}");
        assert!(!first.contains("_b=") && !first.contains("_c="), "{first}");
        assert!(rest.starts_with("_a=") && rest.contains("_b=") && rest.contains("_c="), "{rest}");
        assert!(rest.ends_with("call(Module)"), "{rest}");
    }

    #[test]
    fn a_module_that_takes_them_otherwise_is_not_split() {
        assert!(split("var _a;", &[]).is_none());
        let computed = MODULE.replace("wasmExports[\"c\"]", "wasmExports[c()]");
        assert!(split(&computed, &[]).is_none());
    }
}
