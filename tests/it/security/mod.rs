//! The threat table of docs/security.md: one test for each row, named for the property. Each says
//! what the host saw, by a canary: a file, a server, a variable.

mod census;
mod command;
mod environment;
mod files;
mod hooks;
mod kills;
mod network;
mod packages;
mod patches;
mod realm;
mod sessions;
mod tampering;
mod texts;
mod util;
mod wasm;

/// The table of docs/security.md names tests that are there, and every row of it names one or says
/// why not.
#[test]
fn the_threat_table_names_tests_that_exist() {
    fn functions(dir: &std::path::Path, found: &mut std::collections::HashSet<String>) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                functions(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                for line in text.lines() {
                    // A function, or one that a macro makes of `name: "code"`.
                    let function = line.trim_start().split_once("fn ").map(|(_, rest)| rest);
                    let name = function.unwrap_or(line).trim_start().split(['(', ':']).next();
                    found.extend(name.map(str::to_owned));
                }
            }
        }
    }
    let root = crate::util::root();
    let mut found = std::collections::HashSet::new();
    functions(&root.join("src"), &mut found);
    functions(&root.join("tests"), &mut found);
    let table = std::fs::read_to_string(root.join("docs/security.md")).unwrap();
    let mut rows = 0;
    for row in table.lines().filter(|line| {
        let cell = line.trim_start_matches("| ").split(' ').next().unwrap_or_default();
        line.starts_with("| ") && cell.len() > 1 && cell[1..].chars().all(|c| c.is_ascii_digit())
    }) {
        rows += 1;
        let (_, tests) = row.trim_end_matches(" |").rsplit_once(" | ").unwrap();
        assert!(
            tests.contains('`')
                || tests.contains("none")
                || tests.contains("no test")
                || tests.contains("same"),
            "{row}"
        );
        for name in tests.split('`').skip(1).step_by(2) {
            let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            let is_test = name.contains('_') && name.chars().all(is_name);
            assert!(!is_test || found.contains(name), "there is no `{name}`: {row}");
        }
    }
    assert!(rows > 60, "{rows} rows were found");
}
