//! Renders the results as Markdown.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::list::Package;
use super::trial::{Origin, Outcome, Tried};

/// The maximum length of an error in the table, in characters.
const MAX_ERROR: usize = 200;

/// A package and what came of it.
#[derive(Debug)]
pub(super) struct Row<'a> {
    pub(super) package: &'a Package,
    pub(super) tried: Tried,
}

/// Returns the whole page. `versions` is what the command says of its version.
pub(super) fn render(rows: &[Row<'_>], versions: &str) -> Result<String> {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let date = date.context("cannot run `date`")?;
    ensure!(date.status.success(), "`date` ended with {}", date.status);
    let date = String::from_utf8_lossy(&date.stdout);
    let version = |of: &str| {
        let mut lines = versions.lines().map(|line| line.split_once(char::is_whitespace));
        let found = lines.find_map(|line| line.filter(|(name, _)| *name == of));
        found.map(|(_, version)| version.trim()).with_context(|| format!("no version of {of}"))
    };
    let (isolet, pyodide, python) = (version("isolet")?, version("Pyodide")?, version("Python")?);
    Ok(format!(
        "\
# Packages

`cargo xtask packages` wrote this page on {date}, with isolet {isolet}, Pyodide {pyodide} and
CPython {python}. Each row is one run, by `isolet run --no-image --with NAME`, of a script that
works with the package and checks the result. The scripts are in `tests/packages`.

{counts}.

```sh
cargo xtask packages pandas rich       # runs these scripts again, and prints their rows
isolet run --with rich -c 'import rich; rich.print(\"[bold]Hello[/]\")'
```

The version is the newest that pip finds for isolet's interpreter, which may be an old one, from
before the package had native code. The wheel is:

* `PyPI`: from PyPI, without native code;
* `PyPI, compiled`: from PyPI, with WebAssembly;
* `Pyodide's`: Pyodide's build, which PyPI does not have. It comes with
  [`isolet-science`](permissions.md#installed-packages), from a directory (`--wheels`) or from
  Pyodide's CDN. `cargo xtask packages` gets eleven such wheels into `target/science/wheels`.

The last column says what the script did. If it did not work, it has the error, or the package for
which PyPI has no wheel that isolet can load. [limitations.md](limitations.md) has the reasons.

`not tried`: Pyodide has a build of the package, or of one that it needs, but the machine did not
reach Pyodide's CDN. isolet fetches such a build where it does.

{table}",
        date = date.trim(),
        counts = counts(rows),
        table = table(rows),
    ))
}

/// Returns a sentence without its period.
pub(super) fn counts(rows: &[Row<'_>]) -> String {
    let works = rows.iter().filter(|row| row.tried.outcome == Outcome::Works).count();
    let fails = rows.iter().filter(|row| matches!(row.tried.outcome, Outcome::Fails(_))).count();
    let total = rows.len();
    let rest = total - works - fails;
    format!("Of {total} packages, {works} work, {fails} do not, and {rest} were not tried")
}

/// Returns a table for each group.
pub(super) fn table(rows: &[Row<'_>]) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let Package { group, name, does, .. } = row.package;
        let is_first = index == 0 || rows.get(index - 1).is_none_or(|b| b.package.group != *group);
        if is_first {
            let gap = if index == 0 { "" } else { "\n" };
            let head = "| package | version | wheel | works | what it did, or the reason |";
            write_to(&mut text, format_args!("{gap}## {group}\n\n{head}\n|-|-|-|-|-|\n"));
        }
        let (version, wheel) = match &row.tried.loaded {
            Some((version, origin)) => (version.as_str(), shown(*origin)),
            None => ("-", "-"),
        };
        let (works, remark) = match &row.tried.outcome {
            Outcome::Works => ("yes", does.clone()),
            Outcome::Fails(error) => ("no", reason(error)),
            Outcome::NotTried(file) => {
                let mut parts = file.split('-');
                let (name, version) = (parts.next(), parts.next());
                let (name, version) = (name.unwrap_or_default(), version.unwrap_or_default());
                ("not tried", format!("needs Pyodide's {} {version}", name.replace('_', "-")))
            }
        };
        let with = row.package.with.iter().map(|requirement| format!(" (with `{requirement}`)"));
        let remark = with.fold(remark, |remark, with| remark + &with);
        write_to(
            &mut text,
            format_args!("| {name} | {version} | {wheel} | {works} | {remark} |\n"),
        );
    }
    text
}

fn shown(origin: Origin) -> &'static str {
    match origin {
        Origin::Pure => "PyPI",
        Origin::Native => "PyPI, compiled",
        Origin::Pyodide => "Pyodide's",
    }
}

/// Returns why a package does not work, in short.
fn reason(error: &str) -> String {
    let missing = error.rsplit_once("No matching distribution found for ");
    let unfit =
        error.rsplit_once("no wheel of ").and_then(|(_, rest)| rest.split_once(" runs here"));
    match missing.map(|(_, wanted)| wanted).or(unfit.map(|(wanted, _)| wanted)) {
        Some(wanted) => format!("no wheel of {}", code(wanted)),
        None => code(error),
    }
}

/// Returns the beginning of a text as code in a cell.
fn code(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_ERROR).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    format!("`{}`", shown.replace('`', "'").replace('|', "\\|"))
}

fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(group: &'static str, name: &str) -> Package {
        Package {
            group,
            name: name.to_owned(),
            does: "Does it".to_owned(),
            with: Vec::new(),
            script: String::new(),
        }
    }

    #[test]
    fn table_has_a_row_for_each_package() {
        let [a, b, c, d] = [("X", "a"), ("X", "b"), ("Y", "c"), ("Y", "d")]
            .map(|(group, name)| package(group, name));
        let loaded = |origin| Some(("1.0".to_owned(), origin));
        let row = |package, loaded, outcome| Row { package, tried: Tried { loaded, outcome } };
        let b = Package { with: vec!["f==1".to_owned()], ..b };
        let rows = [
            row(&a, loaded(Origin::Pure), Outcome::Works),
            row(&b, loaded(Origin::Native), Outcome::Fails("E: `x` | y".to_owned())),
            row(&c, loaded(Origin::Pyodide), Outcome::Works),
            row(&d, None, Outcome::NotTried("d_e-2.1-cp3-x.whl".to_owned())),
        ];
        let expected = "\
## X

| package | version | wheel | works | what it did, or the reason |
|-|-|-|-|-|
| a | 1.0 | PyPI | yes | Does it |
| b | 1.0 | PyPI, compiled | no | `E: 'x' \\| y` (with `f==1`) |

## Y

| package | version | wheel | works | what it did, or the reason |
|-|-|-|-|-|
| c | 1.0 | Pyodide's | yes | Does it |
| d | - | - | not tried | needs Pyodide's d-e 2.1 |
";
        assert_eq!(table(&rows), expected);
        assert_eq!(counts(&rows), "Of 4 packages, 2 work, 1 do not, and 1 were not tried");
        let page = render(&rows, "isolet 0.1.0\nPyodide  2\nPython   3.14.2\n").unwrap();
        assert!(page.contains("with isolet 0.1.0, Pyodide 2 and\nCPython 3.14.2."), "{page}");
    }

    #[test]
    fn package_without_a_wheel_is_named() {
        let error = "pip cannot resolve a: No matching distribution found for b==1";
        assert_eq!(reason(error), "no wheel of `b==1`");
        let error = "pip cannot resolve a: no wheel of b runs here, which has to be pure Python";
        assert_eq!(reason(error), "no wheel of `b`");
        assert_eq!(reason("TypeError: no"), "`TypeError: no`");
    }

    #[test]
    fn long_error_is_cut() {
        assert_eq!(code(&"é".repeat(200)), format!("`{}`", "é".repeat(200)));
        assert_eq!(code(&"é".repeat(201)), format!("`{}…`", "é".repeat(200)));
    }
}
