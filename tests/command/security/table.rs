//! Checks the threat table itself: each row of `docs/security.md` names tests that exist.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

/// The names of tests, each with the files that contain it.
type Tests = HashMap<String, BTreeSet<String>>;

#[test]
fn the_threat_table_names_tests_that_exist() {
    let root = isolet_test_support::root();
    let mut tests = Tests::new();
    for dir in ["src", "crates", "tests", "python/tests"] {
        collect(root, dir, &mut tests);
    }
    let page = fs::read_to_string(root.join("docs/security.md")).unwrap();
    let (_, tables) = page.split_once("## Threats and tests").unwrap();
    let mut rows = 0;
    for (at, row) in tables.lines().enumerate().filter(|(_, line)| line.starts_with('|')) {
        let rule = tables.lines().nth(at + 1).unwrap_or_default();
        if row.starts_with("|-") || rule.starts_with("|-") {
            continue;
        }
        rows += 1;
        if let Err(reason) = check(root, row, &tests) {
            panic!("{reason}: {row}");
        }
    }
    assert!(rows > 100, "{rows} rows were found");
}

/// Checks that a row names a test or says why there is none. All that it names must exist, and a
/// test must be in the file that is named right before it, or after it in parentheses.
fn check(root: &Path, row: &str, tests: &Tests) -> Result<(), String> {
    let (_, said) = row.trim_end_matches(" |").rsplit_once(" | ").ok_or("it has one cell")?;
    let is_path = |word: &str| word.contains('/');
    let is_test = |word: &str| {
        let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        word.contains('_') && word.chars().all(is_part)
    };
    // Every second piece is quoted.
    let pieces: Vec<&str> = said.split('`').collect();
    let quoted = || pieces.iter().skip(1).step_by(2).copied();
    if let Some(name) = quoted().find(|word| is_test(word) && !tests.contains_key(*word)) {
        return Err(format!("there is no test `{name}`"));
    }
    if let Some(path) = quoted().find(|word| is_path(word) && !root.join(word).exists()) {
        return Err(format!("there is no `{path}`"));
    }
    for triple in pieces.windows(3).skip(1).step_by(2) {
        let [first, between, second] = triple else { continue };
        let (path, name) = match *between {
            " " if is_path(first) && is_test(second) => (first, second),
            " (" if is_test(first) && is_path(second) => (second, first),
            _ => continue,
        };
        if !tests[*name].contains(*path) {
            return Err(format!("`{name}` is not in `{path}`"));
        }
    }
    let excused = ["none", "no test", "same"].iter().any(|excuse| said.contains(excuse));
    if excused || quoted().any(|word| is_test(word) || is_path(word)) {
        return Ok(());
    }
    Err("it names no test".to_owned())
}

fn collect(root: &Path, dir: &str, tests: &mut Tests) {
    for entry in fs::read_dir(root.join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{dir}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            collect(root, &path, tests);
            continue;
        }
        let found = match Path::new(&path).extension().and_then(|extension| extension.to_str()) {
            Some("rs") => tests_in(&fs::read_to_string(entry.path()).unwrap()),
            Some("py") => python_tests_in(&fs::read_to_string(entry.path()).unwrap()),
            _ => continue,
        };
        for name in found {
            tests.entry(name).or_default().insert(path.clone());
        }
    }
}

/// Returns the tests of a file of pytest.
fn python_tests_in(text: &str) -> Vec<String> {
    let names = text.lines().filter_map(|line| {
        let line = line.strip_prefix("async ").unwrap_or(line);
        line.strip_prefix("def ")?.split('(').next()
    });
    names.filter(|name| name.starts_with("test_")).map(str::to_owned).collect()
}

/// Returns the functions with a `#[test]`, and those that macros of the file turn into tests.
fn tests_in(text: &str) -> Vec<String> {
    let is_test = |line: &str| {
        let line = line.trim_start();
        line.starts_with("#[test]") || line.starts_with("#[tokio::test")
    };
    let mut found = Vec::new();
    // The macro that is being defined, the macros that make tests, and whether this is a call of
    // one of them.
    let (mut defined, mut makers, mut in_call) = (None, BTreeSet::new(), false);
    let mut marked = false;
    for line in text.lines() {
        marked |= is_test(line);
        if let Some(name) = line.strip_prefix("macro_rules! ") {
            defined = name.split(' ').next();
        } else if line == "}" {
            (defined, in_call) = (None, false);
        } else if let Some((name, _)) = line.split_once("! {") {
            in_call = makers.contains(name);
        }
        if let Some(name) = defined {
            if marked {
                makers.insert(name);
            }
            marked = false;
        } else if let Some((_, rest)) = line.split_once("fn ").filter(|_| marked) {
            found.extend(rest.split('(').next().map(str::to_owned));
            marked = false;
        } else if in_call && line.starts_with("    ") && !line.starts_with("     ") {
            let name = line.trim_start().split_once(':').map(|(name, _)| name.to_owned());
            found.extend(name);
        }
    }
    found
}

#[test]
fn a_test_is_a_function_that_is_marked_as_one_or_made_by_a_macro_that_marks() {
    let text = "fn helper() {}\n\n#[test]\n#[expect(x)]\nfn plain() {\n    marked();\n}\n\n\
        #[tokio::test(flavor = \"x\")]\nasync fn waits() {}\n\nmacro_rules! all {\n    \
        ($name:ident) => {\n        #[test]\n        fn $name() {}\n    };\n}\n\nall! {\n    \
        made: \"fn no() {}\",\n    other:\n        \"colon: no\",\n}\n\nvec! {\n    no: 1\n}\n";
    assert_eq!(tests_in(text), ["plain", "waits", "made", "other"]);
}
