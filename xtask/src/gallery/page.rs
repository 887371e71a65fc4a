//! Renders the tasks as Markdown.

use std::fmt::Write;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::runner::{Made, PACKAGES};
use super::tasks::{DIRECTORY, Task};

/// The maximum width of a line, in characters.
const WIDTH: usize = 100;

/// Returns the whole page. `versions` are what the command says of its version, and the versions of
/// the packages.
pub(super) fn render(results: &[(Task, Made)], versions: &(String, &str)) -> Result<String> {
    let (versions, packages) = versions;
    let version = |of: &str| {
        let mut lines = versions.lines().map(|line| line.split_once(char::is_whitespace));
        let found = lines.find_map(|line| line.filter(|(name, _)| *name == of));
        found.map(|(_, version)| version.trim()).with_context(|| format!("no version of {of}"))
    };
    let wrote = format!(
        "`cargo xtask gallery` wrote this page on {}, with isolet {}, Pyodide {}, CPython {}, and \
         {packages}.",
        date()?,
        version("isolet")?,
        version("Pyodide")?,
        version("Python")?,
    );
    let mut text = format!(
        "\
# Data

Ten tasks with tables, documents and charts, as language models write them, each with what it
printed and showed. They have no line for isolet, and print the same with CPython.

## Run one

[From Python](python.md#install) says how to install isolet. Then, in a clone:

```console
$ isolet run --here --show-dir shown --with matplotlib,pandas examples/data/joins.py
$ ls shown
001.chart.json  001.png
```

* `--with` loads the packages that the program imports. The first start with them makes a memory
  image, which takes up to half a minute; later starts take less than a second.
* `--here` shows a program its own directory, where these find their input, and nothing else. What
  they write stays in memory; `--files-dir made` gets it.
* `--show-dir` writes what `plt.show()` shows. [displays.md](../concepts/displays.md) has other ways
  to get it, such as `--json`.

For all ten tasks:

```sh
isolet run --here --show-dir shown --with \\
{packages_line} \\
  examples/data/charts.py
```

Packages with native code, such as pandas, are Pyodide's builds: from
[`isolet-science`](../concepts/permissions.md#installed-packages), from a directory (`--wheels`) or
from Pyodide's CDN. [packages.md](../concepts/packages.md) has more packages.

{wrote}
`cargo xtask gallery --check` compares what the programs do with this page, as CI does. The seconds
are those of the whole command, on the machine that wrote this page.

| task | program | seconds |
|-|-|-|
",
        packages_line = format_args!("  {}", PACKAGES.join(",")),
        wrote = filled(&wrote),
    );
    for (task, made) in results {
        let Task { name, title, .. } = task;
        let anchor = title.to_lowercase().replace(' ', "-");
        write_to(
            &mut text,
            format_args!("| [{title}](#{anchor}) | `{name}.py` | {:.1} |\n", made.seconds),
        );
    }
    for (task, made) in results {
        text.push_str(&section(task, made)?);
    }
    Ok(text)
}

/// Returns the section of a task.
pub(super) fn section(task: &Task, made: &Made) -> Result<String> {
    let Task { name, title, does, code, inputs } = task;
    let printed = &made.printed;
    let too_wide = printed.lines().chain(code.lines()).find(|line| line.chars().count() > WIDTH);
    if let Some(line) = too_wide {
        anyhow::bail!("a line is wider than {WIDTH} characters: {line}");
    }
    ensure!(!printed.contains("```") && !code.contains("```"), "it ends a block of Markdown");
    let inputs: Vec<String> =
        inputs.iter().map(|file| format!("[{file}](../../{DIRECTORY}/{file})")).collect();
    Ok(format!(
        "
## {title}

{does}
Input: {inputs}.

<details>
<summary>{name}.py</summary>

```python
{code}
```

</details>

```text
{printed}
```

![What {name}.py shows](data/{name}.png)
",
        does = filled(does),
        inputs = inputs.join(",\n"),
    ))
}

fn date() -> Result<String> {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let date = date.context("cannot run `date`")?;
    ensure!(date.status.success(), "`date` ended with {}", date.status);
    Ok(String::from_utf8_lossy(&date.stdout).trim().to_owned())
}

/// Returns a text in lines of at most `WIDTH`.
fn filled(text: &str) -> String {
    let mut filled = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            filled.push('\n');
            column = 0;
        } else if column > 0 {
            filled.push(' ');
            column += 1;
        }
        filled.push_str(word);
        column += width;
    }
    filled
}

fn write_to(text: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(arguments);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        Task {
            name: "odd".to_owned(),
            title: "An odd task".to_owned(),
            does: "Does it.".to_owned(),
            code: "print(1)".to_owned(),
            inputs: vec!["a.csv".to_owned(), "b.csv".to_owned()],
        }
    }

    fn made(printed: &str) -> Made {
        Made { printed: printed.to_owned(), picture: Vec::new(), seconds: 1.26 }
    }

    #[test]
    fn page_has_versions_and_each_task() {
        let versions = ("isolet 0.1.0\nPyodide 3\nPython  3.14\n".to_owned(), "pandas 3.0");
        let page = render(&[(task(), made("1"))], &versions).unwrap();
        let text = page.replace('\n', " ");
        assert!(text.contains("with isolet 0.1.0, Pyodide 3, CPython 3.14, and pandas 3.0. "));
        assert!(page.contains("\n| [An odd task](#an-odd-task) | `odd.py` | 1.3 |\n"));
        let section = section(&task(), &made("1")).unwrap();
        assert!(page.ends_with(&section));
        assert!(section.contains("Does it.\nInput: [a.csv](../../examples/data/a.csv),\n[b.csv]("));
        assert!(section.contains("```python\nprint(1)\n```\n\n</details>\n\n```text\n1\n```\n"));
    }

    #[test]
    fn what_does_not_fit_on_the_page_is_refused() {
        let wide = "x".repeat(WIDTH + 1);
        assert!(section(&task(), &made(&wide)).unwrap_err().to_string().contains("is wider"));
        assert!(section(&task(), &made("```")).unwrap_err().to_string().contains("it ends"));
        assert_eq!(filled(&format!("a {}", "x".repeat(99))), format!("a\n{}", "x".repeat(99)));
    }
}
