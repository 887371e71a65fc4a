//! Runs the corpus of Python files: isolet and the host's CPython must print the same and exit with
//! the same status.

use std::fs;
use std::process::{Command, Output, Stdio};

use isolet_test_support::{command, root};

/// Runs a file of `tests/corpus/` with both and compares.
fn agree(name: &str) {
    let file = format!("tests/corpus/{name}.py");
    let wanted = complete(Command::new("python3").arg(&file), "python3");
    let got = complete(&mut command(["run", "--timeout", "5m", &file]), "isolet");
    let show = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if wanted.stdout != got.stdout {
        let (wanted, got) = (show(&wanted.stdout), show(&got.stdout));
        let same = wanted.lines().zip(got.lines()).take_while(|(wanted, got)| wanted == got);
        let line = same.count();
        panic!(
            "{file}: line {} of the output differs\npython3: {:?}\nisolet:  {:?}",
            line + 1,
            wanted.lines().nth(line),
            got.lines().nth(line)
        );
    }
    assert_eq!(wanted.status.code(), got.status.code(), "{file}: {}", show(&got.stderr));
    assert_eq!(
        wanted.stderr.is_empty(),
        got.stderr.is_empty(),
        "{file}: python3: {}\nisolet: {}",
        show(&wanted.stderr),
        show(&got.stderr)
    );
}

fn complete(command: &mut Command, name: &str) -> Output {
    let output = command
        .current_dir(root())
        .env("PYTHONUTF8", "1")
        .env_remove("PYTHONHASHSEED")
        .stdin(Stdio::null())
        .output();
    output
        .unwrap_or_else(|error| panic!("the corpus needs `{name}`, which does not start: {error}"))
}

macro_rules! corpus {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                agree(stringify!($name));
            }
        )*
    };
}

corpus! {
    async__gather_queues
    async__generators_contexts
    async__sync_primitives
    async__taskgroup_timeouts
    async__threads
    bytes__hashing_encodings
    bytes__struct_array_memoryview
    errors__exceptions_chaining
    errors__exit_status
    errors__groups
    errors__traceback_module
    errors__uncaught
    io__archives
    io__csv_configparser
    io__files_tempfile
    io__streams
    language__abc_protocols_slots
    language__calls_unpacking
    language__classes_mro
    language__closures_scoping
    language__comprehensions_walrus
    language__context_managers
    language__dataclasses
    language__decorators
    language__descriptors_properties
    language__dunder_protocols
    language__generators
    language__match_statements
    language__metaclasses
    numeric__bigints
    numeric__complex_matrix
    numeric__decimal_fractions
    numeric__floats
    numeric__random_statistics
    scripts__data_cleaning
    scripts__graphs
    scripts__log_and_text
    scripts__markdown_report
    scripts__puzzles
    scripts__tiny_interpreter
    scripts__tiny_machines
    stdlib__argparse_logging
    stdlib__collections
    stdlib__enum
    stdlib__functools_operator
    stdlib__heapq_bisect_graphlib
    stdlib__inspect_ast
    stdlib__itertools
    stdlib__json
    stdlib__net_identifiers
    stdlib__pickle_copy
    stdlib__pprint_reprlib
    stdlib__sqlite3
    stdlib__typing
    stdlib__weakref_gc
    text__fstrings_formatspec
    text__html_xml_url
    text__regex
    text__string_methods
    text__textwrap_difflib
    text__unicode
    time__calendar_arithmetic
    time__datetime
    time__strftime
    time__zoneinfo
}

#[test]
fn every_file_of_the_corpus_is_listed() {
    let entries = fs::read_dir(root().join("tests/corpus")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> =
        names.filter_map(|name| name.strip_suffix(".py").map(str::to_owned)).collect();
    names.sort_unstable();
    assert_eq!(names, NAMES);
}
