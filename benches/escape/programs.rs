//! The programs in `escape/`: a file for each kind, and in it a line `# %% NAME` before each
//! program, followed by comments: what it tries, and which public scenario it stands for.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};

/// The directory of the programs.
const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../escape");

/// The kinds in the order of the page: the name of each file, and what the page calls it.
const KINDS: [(&str, &str); 9] = [
    ("files", "Files of the host"),
    ("mounts", "Out of a mount"),
    ("processes", "Processes, privileges and devices"),
    ("environment", "Environment and credentials"),
    ("network", "Network"),
    ("javascript", "JavaScript and the embedding program"),
    ("memory", "Memory"),
    ("sessions", "Other sessions"),
    ("wasm", "WebAssembly engines"),
];

/// The file of the programs that may read the flags.
const CONTROL: &str = "control";

/// A program, as it is in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) name: String,
    /// What it tries.
    pub(crate) what: String,
    /// The public scenario or advisory that it stands for; empty if there is none.
    pub(crate) source: String,
    pub(crate) code: String,
}

/// Returns all programs, each with the title of its kind.
pub(crate) fn all() -> Result<Vec<(&'static str, Program)>> {
    let mut all = Vec::new();
    for (name, title) in KINDS {
        all.extend(of_file(name)?.into_iter().map(|program| (title, program)));
    }
    Ok(all)
}

/// Returns the programs of the control.
pub(crate) fn control() -> Result<Vec<Program>> {
    of_file(CONTROL)
}

fn of_file(name: &str) -> Result<Vec<Program>> {
    let path = Path::new(DIRECTORY).join(name).with_extension("py");
    let text =
        fs::read_to_string(&path).with_context(|| format!("cannot read `{}`", path.display()))?;
    let programs = parse(&text);
    ensure!(!programs.is_empty(), "`{name}.py` has no line `# %% NAME`");
    for program in &programs {
        ensure!(!program.what.is_empty(), "`{}` does not say what it tries", program.name);
    }
    Ok(programs)
}

fn parse(text: &str) -> Vec<Program> {
    let parts = text.split("\n# %% ").skip(1).filter_map(|part| part.split_once('\n'));
    let programs = parts.map(|(name, rest)| {
        let comments: Vec<&str> =
            rest.lines().map_while(|line| line.strip_prefix("# ")).map(str::trim).collect();
        let (source, what): (Vec<&str>, Vec<&str>) =
            comments.iter().partition(|line| line.starts_with("Source: "));
        let source: Vec<&str> = source.iter().map(|line| &line["Source: ".len()..]).collect();
        let code: String =
            rest.lines().skip(comments.len()).flat_map(|line| [line, "\n"]).collect();
        Program {
            name: name.trim().to_owned(),
            what: what.join(" "),
            source: source.join("; "),
            code: code.trim().to_owned() + "\n",
        }
    });
    programs.collect()
}
