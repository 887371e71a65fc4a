//! Tests that walk everything a guest can reach, and compare it with the golden lists.

use std::fs;

use isolet::{Session, Value};

use crate::golden;
use crate::util::{assets_dir, eval, root, session};

async fn census(session: &mut Session) -> String {
    let mut isolet = String::new();
    let mut files: Vec<_> =
        fs::read_dir(root().join("js")).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|end| end == "js")) {
        isolet.push_str(&fs::read_to_string(file).unwrap());
    }
    let pyodide = fs::read_to_string(assets_dir().join("pyodide.asm.mjs")).unwrap();
    session.set("walker", include_str!("census.js")).await.unwrap();
    session.set("collector", include_str!("roots.js")).await.unwrap();
    session.set("isolet", isolet).await.unwrap();
    session.set("pyodide", pyodide).await.unwrap();
    match eval(session, include_str!("census.py")).await {
        Value::Str(found) => found,
        other => panic!("the census is no text: {other:?}"),
    }
}

/// A1, A2, A3, A4: everything that guest code can reach in JavaScript, by any path from any root,
/// is on the list, and no op is.
#[tokio::test]
async fn everything_in_javascript_is_on_the_golden_list() {
    let found = census(&mut session().await).await;
    assert!(!found.contains("op_"), "an op is reachable:\n{found}");
    golden::check("globals.txt", &found);
}

/// A1: the names that guest Python has and CPython does not, and the modules that are written in C.
#[tokio::test]
async fn everything_in_python_is_on_the_golden_list() {
    let code = "
import sys, _pyodide_core, js
from pyodide.code import run_js
names = lambda value: [name for name in dir(value) if name not in dir(object)]
values = {
    'object': '({})', 'function': '() => {}', 'promise': 'Promise.resolve()', 'array': '[]', 'map': 'new Map()',
    'set': 'new Set()', 'buffer': 'new Uint8Array()', 'error': 'new Error()', 'generator': '(function*(){})()',
}
lines = ['# Modules in C', '', *sorted(sys.builtin_module_names), '']
lines += ['# Names in _pyodide_core', '', *names(_pyodide_core), '']
lines += ['# What Python sees of JavaScript values', '']
lines += [f'{kind}: {\" \".join(names(run_js(source)))}' for kind, source in values.items()]
'\\n'.join(lines) + '\\n'
";
    match eval(&mut session().await, code).await {
        Value::Str(found) => golden::check("python.txt", &found),
        other => panic!("the census is no text: {other:?}"),
    }
}
