//! The limits of a session have one list, in `src/data/limits.rs`. These tests compare with it what
//! is not made of it: the pages, the command's options, Python's `Limits` and a node's description.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use crate::node::Node;
use isolet_test_support::{command, root};

/// A limit: its name, Rust's setter, the type of its plain number, and the command's option or why
/// there is none.
type Row = (&'static str, &'static str, &'static str, Result<&'static str, &'static str>);

macro_rules! rows {
    ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
       $option:expr;)*) => {
        [$((stringify!($name), stringify!($setter), stringify!($plain), $option)),*]
    };
}

fn limits() -> Vec<Row> {
    isolet::for_each_limit!(rows).to_vec()
}

fn names() -> BTreeSet<String> {
    limits().iter().map(|(name, ..)| (*name).to_owned()).collect()
}

fn page(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// Returns the cells of a row of a table.
fn cells(row: &str) -> Vec<&str> {
    row.trim_matches('|').split(" |").map(str::trim).collect()
}

#[test]
fn names_have_their_unit_and_setters_their_name() {
    for (name, setter, plain, option) in limits() {
        assert_eq!(setter, format!("max_{name}"));
        let is_time = name.ends_with("_time") || name == "grace";
        assert_eq!(is_time, plain == "f64", "{name} is in seconds");
        assert!(option.is_ok_and(|option| option.starts_with("--")) || option.is_err());
    }
}

#[test]
fn the_page_of_limits_has_a_row_for_each_with_its_option() {
    let page = page("docs/reference/limits.md");
    let table = page.lines().skip_while(|line| !line.starts_with('|'));
    let rows = table.take_while(|line| line.starts_with('|'));
    let rows: Vec<_> = rows.filter(|line| line.starts_with("| `max_")).map(cells).collect();
    for (name, setter, _, option) in limits() {
        let row = rows.iter().find(|row| row[0] == format!("`{setter}`"));
        let row = row.unwrap_or_else(|| panic!("docs/reference/limits.md has no row for {name}"));
        // `--timeout TIME|none`. `--json` only says when the default is another one.
        let quoted = row[3].split('`').skip(1).step_by(2);
        let mut options = quoted.filter(|word| word.starts_with("--") && *word != "--json");
        assert_eq!(
            options.next().and_then(|word| word.split(' ').next()),
            option.ok(),
            "{name}: {}",
            row[3]
        );
    }
    let setters: BTreeSet<_> = limits().iter().map(|limit| format!("`{}`", limit.1)).collect();
    let listed: BTreeSet<_> = rows.iter().map(|row| row[0].to_owned()).collect();
    assert_eq!(listed, setters);
}

#[test]
fn the_protocol_lists_the_keys_of_a_policys_limits() {
    let page = page("docs/reference/protocol.md");
    let row = page.lines().find(|line| line.starts_with("| `limits` |")).unwrap();
    let (_, listed) = row.split_once("(limits.md): ").unwrap();
    let listed: Vec<_> = listed.split('`').skip(1).step_by(2).collect();
    let expected = names();
    assert_eq!(listed.len(), expected.len());
    assert_eq!(listed.into_iter().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
}

#[test]
fn the_command_has_the_options_of_the_list() {
    let help = |subcommand| {
        let help = command([subcommand, "--help"]).output().unwrap();
        String::from_utf8(help.stdout).unwrap()
    };
    let (run, mcp) = (help("run"), help("mcp"));
    for (name, _, _, option) in limits() {
        let Ok(option) = option else { continue };
        // Only the guests of `isolet mcp` and `isolet dspy` have tools.
        let help = if name == "host_time" { &mcp } else { &run };
        assert!(help.contains(&format!("{option} <")), "{name} has no option {option}");
    }
    assert!(!run.contains("--host-timeout"), "{run}");
}

#[test]
fn pythons_limits_have_the_fields_of_the_list() {
    let source = page("python/src/isolet/policy.py");
    let (_, class) = source.split_once("\nclass Limits:\n").unwrap();
    let (class, _) = class.split_once("    def ").unwrap();
    let fields = class.lines().filter_map(|line| {
        let (name, annotation) = line.strip_prefix("    ")?.split_once(": ")?;
        Some((name.to_owned(), annotation.strip_suffix(" | None = None")?.to_owned()))
    });
    let expected = limits().into_iter().map(|(name, _, plain, _)| {
        let annotation = if plain == "f64" { "float" } else { "int" };
        (name.to_owned(), annotation.to_owned())
    });
    assert_eq!(fields.collect::<BTreeSet<_>>(), expected.collect());
}

#[tokio::test]
async fn a_nodes_description_has_the_limits_of_the_list() {
    let node = Node::start(&[]);
    let description: Value = serde_json::from_str(&node.text("GET /openapi.json").await).unwrap();
    let schema = description["components"]["schemas"]["Limits"]["properties"].as_object().unwrap();
    assert_eq!(schema.keys().cloned().collect::<BTreeSet<_>>(), names());
    for (name, schema) in schema {
        assert!(schema["description"].is_string(), "{name}");
    }
}
