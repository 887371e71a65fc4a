//! Tests the rules on this repository, and each rule on a file that violates it.

use super::floors::CRATES;
use super::*;

#[test]
fn repository_is_tidy() {
    assert_eq!(complaints(&files().unwrap()), Vec::<String>::new());
}

#[track_caller]
fn check(path: &str, text: &str, expected: &[&str]) {
    let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
    assert_eq!(complaints(&[file]), expected);
}

#[test]
fn source_file_without_a_first_line_is_found() {
    check("src/data/a.rs", "//! Does one thing.\n", &[]);
    check(
        "src/data/a.rs",
        "use std::fs;\n",
        &["src/data/a.rs:1: does not start with `//!` and its one job"],
    );
    check("js/a.js", "// Does one thing.\n", &[]);
    check("js/a.js", "let a;\n", &["js/a.js:1: does not start with `//` or `/*` and its one job"]);
    check("js/py/a.py", "\"\"\"Does one thing.\"\"\"\n", &[]);
    check(
        "js/py/a.py",
        "import os\n",
        &["js/py/a.py:1: does not start with `\"\"\"` or `#` and its one job"],
    );
    check("tests/corpus/a.py", "import os\n", &[]);
}

#[test]
fn long_file_is_found() {
    check("src/data/a.rs", &"//!\n".repeat(600), &[]);
    check("src/data/a.rs", &"//!\n".repeat(601), &["src/data/a.rs: has 601 lines (at most 600)"]);
    check("tests/corpus/a.py", &"\n".repeat(601), &[]);
    check("docs/a.md", &"\n".repeat(601), &[]);
}

#[test]
fn line_that_is_too_wide_is_found() {
    let wide = "x".repeat(98);
    let complaint = |path: &str| format!("{path}:2: has 101 columns (at most 100)");
    for (path, first, mark) in [
        ("src/data/a.rs", "//! x", "// "),
        ("src/data/a.rs", "//! x", "   "),
        ("xtask/src/a.rs", "//! x", "// "),
        ("js/a.js", "// x", "f: "),
        ("js/py/a.py", "# x", "a = "),
        ("docs/a.md", "x", "x x"),
        ("docs/a.md", "```", "$ x"),
        ("README.md", "x", "    "),
        ("SECURITY.md", "x", "x x"),
    ] {
        let wide = &wide[..101 - mark.len()];
        check(path, &format!("{first}\n{mark}{wide}\n"), &[&complaint(path)]);
        check(path, &format!("{first}\n{mark}{}\n", &wide[1..]), &[]);
    }
}

#[test]
fn line_that_may_be_wide_is_not_found() {
    let wide = "x".repeat(101);
    check("tests/a.rs", &format!("//! x\nlet a = \"{wide}\";\n"), &[]);
    check("fuzz/README.md", &format!("```\n{wide}\n```\n    {wide}\n"), &[]);
    check("docs/a.md", &format!("| {wide} |\n|-|\n* https://{wide}\n"), &[]);
    check("docs/a.md", &format!("[a]: https://{wide}\n"), &[]);
    check("src/data/a.rs", &format!("//! https://{wide}\n"), &[]);
    let found = "docs/a.md:1: has 111 columns (at most 100)";
    check("docs/a.md", &format!("x https://{wide}\n"), &[found]);
}

#[test]
fn engine_outside_its_directory_is_found() {
    let text = "//! x\n// deno_core in words\nuse deno_core::v8;\nlet x = v8::Isolate;\n";
    check("src/isolate/a.rs", text, &[]);
    check(
        "src/data/a.rs",
        text,
        &[
            "src/data/a.rs:3: names `deno_core` outside `src/isolate/`",
            "src/data/a.rs:4: names `v8::` outside `src/isolate/`",
        ],
    );
    check("src/lib.rs", "//! x\nuse crate::rusty_v8::x;\n", &[]);
}

#[test]
fn naming_a_floor_that_is_not_below_is_found() {
    let text =
        "//! x\nuse crate::data::value::Value;\nuse crate::api::Engine;\nuse crate::Error;\n";
    check("src/api/a.rs", text, &["src/api/a.rs:4: `api` names `Error`, which is not below it"]);
    check(
        "src/host/tools/a.rs",
        text,
        &[
            "src/host/tools/a.rs:3: `host` names `api`, which is not below it",
            "src/host/tools/a.rs:4: `host` names `Error`, which is not below it",
        ],
    );
    let text = "//! x\nuse crate::worker::child::serve;\nuse crate::worker::wire::first;\n";
    check("src/worker/a.rs", text, &[]);
    let across =
        "src/worker/parent/a.rs:2: `worker/parent` names `worker/child`, which is not below it";
    check("src/worker/parent/a.rs", text, &[across]);
    check("src/new/a.rs", "//! x\n", &["src/new/a.rs: is on no floor (`CRATES` in xtask)"]);
    check("src/lib.rs", "//! x\nuse crate::api::Engine;\n", &[]);
}

#[test]
fn every_room_and_crate_names_only_those_that_are_listed_above_it() {
    for (at, house) in CRATES.iter().enumerate() {
        for named in house.below {
            let is_listed = CRATES[..at].iter().any(|lower| lower.name == *named);
            assert!(is_listed || *named == "isolet-pyodide-assets", "{}: {named}", house.name);
        }
        for (at, (room, below)) in house.rooms.iter().enumerate() {
            for named in *below {
                let is_listed = house.rooms[..at].iter().any(|(lower, _)| lower == named);
                assert!(is_listed, "{}: {room} names {named}", house.name);
            }
        }
    }
}

#[test]
fn a_crate_that_is_not_below_and_a_file_of_no_crate_are_found() {
    let text = "//! x\nuse isolet_serve::http;\nuse isolet_service::core::Run;\n";
    let place = "crates/isolet-mcp/src/server/a.rs";
    let found = format!("{place}:2: `isolet-mcp` names `isolet-serve`, which is not below it");
    check(place, text, &[&found]);
    check("crates/isolet-cli/src/run.rs", text, &[]);
    let found = "crates/new/src/lib.rs: is in no crate (`CRATES` in xtask)";
    check("crates/new/src/lib.rs", "//! x\n", &[found]);
}

#[test]
fn a_file_at_the_top_of_a_crate_is_a_room() {
    let text = "//! x\nuse crate::parent::end_with_it;\nuse crate::http::serve;\n";
    let place = "crates/isolet-serve/src/stdio/mod.rs";
    let found = format!("{place}:3: `stdio` names `http`, which is not below it");
    check(place, text, &[&found]);
    let place = "crates/isolet-serve/src/other.rs";
    check(place, "//! x\n", &[&format!("{place}: is on no floor (`CRATES` in xtask)")]);
}

#[test]
fn an_option_below_the_command_is_found() {
    let text = "//! x\nuse clap::Args;\n";
    for place in ["crates/isolet-mcp/src/server/a.rs", "crates/isolet-serve/src/http/a.rs"] {
        check(place, text, &[&format!("{place}:2: names `clap` outside of `isolet-cli`")]);
    }
    check("crates/isolet-cli/src/mcp/a.rs", text, &[]);
}

#[test]
fn unsafe_code_in_an_unlisted_file_is_found() {
    let text = "//! x\n#![deny(unsafe_code)]\nunsafe { x() }\n";
    for listed in UNSAFE_FILES {
        check(listed, text, &[]);
    }
    check("src/data/a.rs", text, &["src/data/a.rs:3: is unsafe in a file not listed for it"]);
}

#[test]
fn leftovers_are_found() {
    check(
        "src/data/a.rs",
        "//! x\n#[ignore = \"slow\"]\n#[should_panic]\ndbg!(x);\ntodo!()\nmy_dbg!(x)\n",
        &[
            "src/data/a.rs:2: contains `#[ignore`",
            "src/data/a.rs:3: contains `should_panic`",
            "src/data/a.rs:4: contains `dbg!`",
            "src/data/a.rs:5: contains `todo!`",
        ],
    );
}

#[test]
fn fuzzing_another_version_is_found() {
    let locks = |ours: &str, fuzzed: &str| {
        let file = |path: &str, versions: &str| {
            let package =
                |version| format!("[[package]]\nname = \"zip\"\nversion = \"{version}\"\n");
            let text = versions.split_whitespace().map(package).collect();
            SourceFile { path: path.to_owned(), text }
        };
        complaints(&[file("Cargo.lock", ours), file("fuzz/Cargo.lock", fuzzed)])
    };
    assert_eq!(locks("9.4.1", "9.4.1"), Vec::<String>::new());
    assert_eq!(locks("8.0.0 9.4.1", "9.4.1"), Vec::<String>::new());
    assert_eq!(locks("", "9.4.1"), Vec::<String>::new());
    assert_eq!(
        locks("9.4.1", "9.4.0"),
        ["fuzz/Cargo.lock: has zip 9.4.0, which `Cargo.lock` has in another version"]
    );
}

#[test]
fn new_top_level_entry_is_found() {
    check("notes.txt", "", &["notes.txt: is not known at the top level"]);
    check("tools/a.sh", "", &["tools: is not known at the top level"]);
}

#[test]
fn path_that_does_not_exist_is_found() {
    let known = SourceFile { path: "docs/b.md".to_owned(), text: String::new() };
    let found = |path: &str, text: &str| {
        let file = SourceFile { path: path.to_owned(), text: text.to_owned() };
        let known = SourceFile { path: known.path.clone(), text: String::new() };
        complaints(&[file, known])
    };
    let names = |place: &str, path: &str| format!("{place}: names `{path}`, which does not exist");
    assert_eq!(found("docs/a.md", "x `docs/b.md` `docs/` `docs`, `docs/b.md x`\n"), [""; 0]);
    let text = "x\n`docs/c.md` `src/a/` and (`js/a.js`)\n```\n`tests/a.rs`\n```\n";
    let [c, a] = ["docs/c.md", "src/a/"].map(|path| names("docs/a.md:2", path));
    let [js, tests] = [("2", "js/a.js"), ("4", "tests/a.rs")]
        .map(|(line, path)| names(&format!("docs/a.md:{line}"), path));
    assert_eq!(found("docs/a.md", text), [c, a, js, tests]);
    let text = "//! x\n/// `docs/c.md`\nlet a = \"docs/d.md\";\n";
    assert_eq!(found("src/data/a.rs", text), [names("src/data/a.rs:2", "docs/c.md")]);
    assert_eq!(found("js/a.js", "// `docs/c.md`\n"), [names("js/a.js:1", "docs/c.md")]);
    assert_eq!(found("js/py/a.py", "# `docs/c.md`\n"), [names("js/py/a.py:1", "docs/c.md")]);
    // Relative to the file, and made by a build.
    assert_eq!(found("fuzz/README.md", "`fuzz/artifacts/x` `pyodide-assets/dist`\n"), [""; 0]);
    assert_eq!(found("pyodide-assets/src/a.rs", "//! `src/a.rs`\n").len(), 1);
    assert_eq!(found("pyodide-assets/README.md", "`docs/b.md` `target/x`\n"), [""; 0]);
}

#[test]
fn link_to_nothing_is_found() {
    let found = |text: &str| {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let heading = "# A `b`, of _c_!\n```\n# Example\n```\n## Twice\n## Twice\n";
        complaints(&[file("docs/a.md", text), file("docs/b.md", heading), file("README.md", "")])
    };
    for link in ["b.md", "../README.md", "../docs/b.md", "../docs", "https://a.example/b.md"] {
        assert_eq!(found(&format!("[a\n]({link}) and [b]({link} \"b\")\n")), [""; 0]);
    }
    for anchor in ["a-b-of-_c_", "twice", "twice-1"] {
        assert_eq!(found(&format!("[a](b.md#{anchor})\n")), [""; 0]);
    }
    assert_eq!(found("# One\n[a](#one)\n```\n[a](c.md)\n```\n"), [""; 0]);
    for link in ["c.md", "docs/b.md", "../a.md", "../SECURITY.md#one"] {
        let complaint = format!("docs/a.md:1: links to `{link}`, which does not exist");
        assert_eq!(found(&format!("[b](b.md) [a]({link})\n")), [complaint.as_str()]);
        assert_eq!(found(&format!("[a]: {link}\n")), [complaint]);
    }
    for link in ["b.md#d", "b.md#example", "b.md#twice-2", "#d", "../README.md#a"] {
        let complaint = format!("docs/a.md:1: links to `{link}`, which is no heading there");
        assert_eq!(found(&format!("[a]({link})\n")), [complaint]);
    }
}

#[test]
fn registry_entry_that_differs_is_found() {
    let entry = |version: &str, description: &str| {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let entry = format!(
            r#"{{"name": "a/b", "version": "1.0", "description": "{description}",
                 "packages": [{{"version": "{version}"}}]}}"#
        );
        complaints(&[
            file("Cargo.toml", "[workspace.package]\nversion = \"1.0\"\n"),
            file("python/README.md", "<!-- mcp-name: a/b -->\n"),
            file("server.json", &entry),
        ])
    };
    assert_eq!(entry("1.0", "d"), Vec::<String>::new());
    let complaint = "server.json: a package of it has the version \"0.9\", not `1.0`";
    assert_eq!(entry("0.9", "d"), [complaint]);
    let complaint = "server.json: its description has 101 characters (1 to 100)";
    assert_eq!(entry("1.0", &"x".repeat(101)), [complaint]);
}

#[test]
fn an_installer_of_another_version_is_found() {
    let of = |text: &str| {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        complaints(&[
            file("Cargo.toml", "[workspace.package]\nversion = \"1.0\"\n"),
            file("install.sh", text),
        ])
    };
    assert_eq!(of("#!/bin/sh\nVERSION=1.0\n"), Vec::<String>::new());
    assert_eq!(of("VERSION=0.9\n"), ["install.sh: has `VERSION=0.9`, not `1.0`"]);
    assert_eq!(of("VERSION_=1.0\n"), ["install.sh: has `VERSION=no version`, not `1.0`"]);
}

#[test]
fn file_of_the_guest_that_is_not_listed_is_found() {
    let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
    let page = file("js/README.md", "| file | purpose |\n|-|-|\n| `a.js` | `py/a.py` |\n");
    let files = [page, file("js/a.js", "// x\n"), file("js/py/b.py", "# x\n")];
    assert_eq!(complaints(&files), ["js/README.md: does not list `py/b.py`"]);
}

#[test]
fn op_that_is_declared_otherwise_is_found() {
    let found = |golden: &str, declared: &str| {
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        let source = "//! x\n#[op2(fast)]\npub(crate) fn op_isolet_a(at: f64) {\n";
        complaints(&[
            file("src/isolate/ops/a.rs", source),
            file("js/ops.d.ts", declared),
            file("tests/golden/ops.txt", golden),
        ])
    };
    let declared = ops::declarations(["#[op2]\nfn op_isolet_a(at: f64) {\n"].into_iter()).unwrap();
    let golden = "ours     op_isolet_a\nstubbed  op_b\n";
    assert_eq!(found(golden, &declared), [""; 0]);
    let old = "js/ops.d.ts: is out of date; `cargo xtask generate` writes it";
    assert_eq!(found(golden, &declared.replace("number", "string")), [old]);
    let lacks = "js/ops.d.ts: lacks `op_isolet_b`, which is in tests/golden/ops.txt";
    assert_eq!(found("ours     op_isolet_b\n", &declared), [lacks]);
}

#[test]
fn table_that_is_cut_in_two_is_found() {
    let table = "| a | b |\n|-|:-:|\n| 1 | 2 |\n";
    check("docs/a.md", &format!("x\n\n{table}\n```\n| 1 |\n```\n"), &[]);
    let cut = format!("{table}\n| 3 | 4 |\n");
    check("docs/a.md", &cut, &["docs/a.md:5: begins a table without a head"]);
}

#[test]
fn rust_of_a_page_that_rustdoc_hides_or_does_not_compile_is_found() {
    let page = |text: &str| SourceFile { path: "docs/a.md".to_owned(), text: text.to_owned() };
    let library = || SourceFile {
        path: "src/data/a.rs".to_owned(),
        text: "//! A.\n#[doc = include_str!(\"../../docs/a.md\")]\nstruct A;\n".to_owned(),
    };
    let whole = "x\n\n```rust,no_run\nfn main() {}\n```\n\n```sh\n# a comment\n```\n";
    assert_eq!(complaints(&[page(whole), library()]), [""; 0]);
    assert_eq!(
        complaints(&[page(whole)]),
        ["docs/a.md: has Rust, and no `include_str!` in `src/`"]
    );
    let hidden = "```rust\nfn main() {\n# use std::fs;\n#\n#[test]\n}\n```\n";
    assert_eq!(
        complaints(&[page(hidden), library()]),
        [
            "docs/a.md:3: rustdoc hides this line, and Markdown does not",
            "docs/a.md:4: rustdoc hides this line, and Markdown does not",
        ]
    );
}
