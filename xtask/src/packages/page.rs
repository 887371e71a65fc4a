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
CPython {python}. Each row is one run of a script that works with the package and checks the result:
`tests/packages/GROUP/NAME.py`, by `isolet run --with NAME`.

{counts}.

```sh
cargo xtask packages pandas rich       # runs these scripts again, and prints their rows
isolet run --with rich -c 'import rich; rich.print(\"[bold]Hello[/]\")'
```

The version is the newest that pip finds for isolet's interpreter. The wheel is:

* `pure`: a wheel on PyPI without native code;
* `compiled`: a wheel on PyPI that contains WebAssembly;
* `Pyodide`: Pyodide's build, given in a directory (`--wheels`). `cargo xtask packages` gets eleven
  of them into `target/science/wheels`.

A package was not tried if Pyodide has a build of it, or of a package that it needs, which the
machine could not fetch. isolet fetches it by itself where Pyodide's CDN can be reached.
[limitations.md](limitations.md) explains why some packages cannot work.

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
            let head = "| package | version | wheel | works | what was done, or the error |";
            write_to(&mut text, format_args!("{gap}## {group}\n\n{head}\n|-|-|-|-|-|\n"));
        }
        let (version, wheel) = match &row.tried.loaded {
            Some((version, origin)) => (version.as_str(), shown(*origin)),
            None => ("-", "-"),
        };
        let (works, remark) = match &row.tried.outcome {
            Outcome::Works => ("yes", does.clone()),
            Outcome::Fails(error) => ("no", code(error)),
            Outcome::NotTried(file) => {
                let mut parts = file.split('-');
                let (name, version) = (parts.next(), parts.next());
                let (name, version) = (name.unwrap_or_default(), version.unwrap_or_default());
                ("not tried", format!("needs Pyodide's {} {version}", name.replace('_', "-")))
            }
        };
        write_to(
            &mut text,
            format_args!("| {name} | {version} | {wheel} | {works} | {remark} |\n"),
        );
    }
    text
}

fn shown(origin: Origin) -> &'static str {
    match origin {
        Origin::Pure => "pure",
        Origin::Native => "compiled",
        Origin::Pyodide => "Pyodide",
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
        let rows = [
            row(&a, loaded(Origin::Pure), Outcome::Works),
            row(&b, loaded(Origin::Native), Outcome::Fails("E: `x` | y".to_owned())),
            row(&c, loaded(Origin::Pyodide), Outcome::Works),
            row(&d, None, Outcome::NotTried("d_e-2.1-cp3-x.whl".to_owned())),
        ];
        let expected = "\
## X

| package | version | wheel | works | what was done, or the error |
|-|-|-|-|-|
| a | 1.0 | pure | yes | Does it |
| b | 1.0 | compiled | no | `E: 'x' \\| y` |

## Y

| package | version | wheel | works | what was done, or the error |
|-|-|-|-|-|
| c | 1.0 | Pyodide | yes | Does it |
| d | - | - | not tried | needs Pyodide's d-e 2.1 |
";
        assert_eq!(table(&rows), expected);
        assert_eq!(counts(&rows), "Of 4 packages, 2 work, 1 do not, and 1 were not tried");
        let page = render(&rows, "isolet 0.1.0\nPyodide  2\nPython   3.14.2\n").unwrap();
        assert!(page.contains("with isolet 0.1.0, Pyodide 2 and\nCPython 3.14.2."), "{page}");
    }

    #[test]
    fn long_error_is_cut() {
        assert_eq!(code(&"é".repeat(200)), format!("`{}`", "é".repeat(200)));
        assert_eq!(code(&"é".repeat(201)), format!("`{}…`", "é".repeat(200)));
    }
}
