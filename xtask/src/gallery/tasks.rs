//! The list of tasks: a program for each, `NAME.py` in `examples/data`, beside what it reads.
//!
//! A program begins with a docstring: a title with a period, an empty line, and sentences that say
//! what it does.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

/// The directory of the programs.
pub(super) const DIRECTORY: &str = "examples/data";

/// The programs in the order of the page.
const NAMES: [&str; 10] = [
    "encodings",
    "excel",
    "joins",
    "time_zones",
    "regression",
    "clusters",
    "pdf_text",
    "pictures",
    "sql",
    "charts",
];

#[derive(Debug)]
pub(super) struct Task {
    /// The program without `.py`.
    pub(super) name: String,
    pub(super) title: String,
    /// What the program does, in whole sentences.
    pub(super) does: String,
    /// The program without its docstring.
    pub(super) code: String,
    /// The files that it reads.
    pub(super) inputs: Vec<String>,
}

/// Reads the tasks in the order of the page.
pub(super) fn read() -> Result<Vec<Task>> {
    let mut files = Vec::new();
    let unreadable = || format!("cannot list `{DIRECTORY}`");
    for entry in fs::read_dir(process::root().join(DIRECTORY)).with_context(unreadable)? {
        files.push(entry.with_context(unreadable)?.file_name().to_string_lossy().into_owned());
    }
    files.sort();
    let is_known =
        |file: &String| file.strip_suffix(".py").is_none_or(|name| NAMES.contains(&name));
    if let Some(unknown) = files.iter().find(|file| !is_known(file)) {
        bail!("`{DIRECTORY}/{unknown}` is not in `NAMES` in xtask");
    }
    let task = |name: &&str| {
        let path = format!("{DIRECTORY}/{name}.py");
        let program = fs::read_to_string(process::root().join(&path))
            .with_context(|| format!("cannot read `{path}`"))?;
        Task::parse(name, &program, &files).with_context(|| format!("`{path}` cannot be used"))
    };
    NAMES.iter().map(task).collect()
}

impl Task {
    fn parse(name: &str, program: &str, files: &[String]) -> Result<Self> {
        let parts = program.strip_prefix("\"\"\"").and_then(|rest| rest.split_once("\n\"\"\"\n"));
        let (about, code) = parts.context("it does not begin with a docstring of some lines")?;
        let about = about.split_once(".\n\n");
        let (title, does) = about.context("its docstring has no title with a period")?;
        let inputs = files.iter().filter(|file| code.contains(&format!("\"{file}\"")));
        let inputs: Vec<String> = inputs.cloned().collect();
        ensure!(!inputs.is_empty(), "it names no file of `{DIRECTORY}`");
        ensure!(code.contains("plt.show()"), "it shows no chart");
        Ok(Self {
            name: name.to_owned(),
            title: title.to_owned(),
            does: does.replace('\n', " "),
            code: code.trim().to_owned(),
            inputs,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_valid_and_every_input_is_read() {
        let tasks = read().unwrap();
        assert_eq!(tasks.len(), NAMES.len());
        for entry in fs::read_dir(process::root().join(DIRECTORY)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let is_read = tasks.iter().any(|task| task.inputs.contains(&name));
            assert!(name.strip_suffix(".py").is_some() || name == "README.md" || is_read, "{name}");
        }
    }

    #[test]
    fn program_says_what_it_does_and_reads() {
        let files = ["a.csv".to_owned(), "b.csv".to_owned()];
        let program = "\"\"\"A title.\n\nReads\nit.\n\"\"\"\n\nread(\"b.csv\")\nplt.show()\n";
        let task = Task::parse("a", program, &files).unwrap();
        assert_eq!((&*task.title, &*task.does), ("A title", "Reads it."));
        assert_eq!(task.code, "read(\"b.csv\")\nplt.show()");
        assert_eq!(task.inputs, ["b.csv"]);
        for (from, to, reason) in [
            ("\"\"\"A", "A", "does not begin with a docstring"),
            ("title.", "title", "no title with a period"),
            ("b.csv", "c.csv", "names no file"),
            ("show", "draw", "shows no chart"),
        ] {
            let error = Task::parse("a", &program.replace(from, to), &files).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
