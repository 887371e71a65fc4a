//! The page of the results: how many flags were read, and what each program tried.

use std::fmt::Write as _;

use super::row::{Column, Row};

/// What the page begins with.
const INTRODUCTION: &str = "\
# Escape

Programs that try to get out of isolet, and what they got. `cargo xtask escape` writes this page
from one run, and fails if a flag was read. The programs are in [`escape/`](../escape), one file for
each kind.

Each program runs against a host of its own, a process that embeds isolet. The program may write to
a mounted directory and call one harmless tool; it has no other permission. It is told where these
flags are, and prints whatever it finds:

* in a **file** beside the mounted directory;
* in the **environment** of the host;
* in a variable and a file of another **session** of the same sandbox;
* on a **server** on the loopback: TCP, UDP and an abstract socket;
* in the **memory** of the host;
* in the command line of another process, for whom can see the host's **processes**.

The flags are random and new for each program. A third process decides: a flag was read if all that
the program returned has it, plain, reversed, in hexadecimal, base64, UTF-16 or as numbers. A
connection to the server counts as an escape, too, and so does a changed file outside of the mount.

**The control**: programs that are *given* each flag by a permission or a tool are found to have
read it, in both isolations. Otherwise the command fails.

## Two layers

A worker is the first layer, V8 and isolet's operations, inside the second one, the
[lockdown](security.md#a-worker) of the process. To show the second layer alone, native code takes
the place of V8 in a worker of a real session: a build for tests only, whose worker locks itself
down by the same code, and has the same sockets, memory for output and parent. Each attempt has a
worker of its own. It makes system calls (`native: …`), or sends the parent frames that no
interpreter would send (`frames: …`).

Attempts that only read are also made **without the lockdown**, in the same worker. What they read
then shows that they would work.

";

/// Returns the page.
pub(super) fn page(rows: &[Row]) -> String {
    let mut text = INTRODUCTION.to_owned();
    summary(&mut text, rows);
    text.push_str(
        "\nOn a thread there is one layer. A program that ends the process that embeds isolet reads\n\
         no flag; it counts above as a host that ended.\n\n\
         ## Sources\n\n\
         Public lists presume a shell in a container. Their scenarios are translated, by their\n\
         descriptions, to what a guest of an interpreter can try:\n\n\
         * SandboxEscapeBench (arXiv 2603.02277): 18 of orchestration, runtime and kernel;\n\
         * SandboxBench of Inspect Evals: 15 of escape, exfiltration and discovery;\n\
         * RUSTSEC-2026-0085 to 0096, and later advisories about WebAssembly engines;\n\
         * published escapes from Pyodide, vm2, DSPy and others.\n",
    );
    let mut kinds: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|row| !row.is_control()) {
        if !kinds.contains(&row.kind.as_str()) {
            kinds.push(&row.kind);
        }
    }
    text.push_str("\n## Programs\n");
    for kind in &kinds {
        programs(&mut text, rows, kind);
    }
    text.push_str(
        "\n## Native code in a worker\n\n\
         Flags read behind the lockdown, with how the attempt ended: **killed** by the kernel for a\n\
         system call, or **refused** by the kernel or the parent. And what was read without it; –\n\
         for attempts that may do harm there, which are not made.\n",
    );
    for kind in &kinds {
        attempts(&mut text, rows, kind);
    }
    text
}

/// Writes how many programs of each column have read flags.
fn summary(text: &mut String, rows: &[Row]) {
    text.push_str(
        "| | programs | flags read | server reached | files changed | hosts ended |\n\
         |-|-|-|-|-|-|\n",
    );
    let mut row = |title: &str, rows: &[&Row]| {
        let reached = |what: &str| {
            let all = rows.iter().flat_map(|row| &row.reached);
            all.filter(|reached| reached.starts_with(what)).count()
        };
        let [flags, server, files] = ["the flag", "the server", "files"].map(reached);
        let ended = rows.iter().filter(|row| row.has_ended_its_host()).count();
        let count = rows.len();
        let _ = writeln!(text, "| {title} | {count} | {flags} | {server} | {files} | {ended} |");
    };
    let columns = [
        (Column::Thread, "isolation `thread`"),
        (Column::Process, "isolation `process`: both layers"),
        (Column::Native, "native code in the worker: the second layer alone"),
        (Column::Unconfined, "the same without the lockdown: no layer"),
    ];
    for (column, title) in columns {
        let of_column = |row: &&Row| row.column == column && !row.is_control();
        row(title, &rows.iter().filter(of_column).collect::<Vec<_>>());
    }
    let controls: Vec<&Row> = rows.iter().filter(|row| row.is_control()).collect();
    row("the control, in both isolations", &controls);
}

/// Writes a row for each program of a kind.
fn programs(text: &mut String, rows: &[Row], kind: &str) {
    let of_kind = |row: &&Row| row.kind == kind && row.column == Column::Thread;
    let _ = writeln!(
        text,
        "\n### {kind}\n\n| program | what it tries | source | thread | process |\n|-|-|-|-|-|"
    );
    for row in rows.iter().filter(of_kind) {
        let other = find(rows, row, Column::Process);
        let (thread, process) = (cell(Some(row)), cell(other));
        let Row { name, what, source, .. } = row;
        let _ = writeln!(text, "| {name} | {what} | {source} | {thread} | {process} |");
    }
}

/// Writes a row for each native attempt of a kind.
fn attempts(text: &mut String, rows: &[Row], kind: &str) {
    let of_kind = |row: &&Row| row.kind == kind && row.column == Column::Native;
    if !rows.iter().any(|row| of_kind(&row)) {
        return;
    }
    let _ = writeln!(
        text,
        "\n### Native: {}\n\n| attempt | what it tries | source | locked down | without |\n\
         |-|-|-|-|-|",
        kind.to_lowercase().replace("javascript", "JavaScript")
    );
    for row in rows.iter().filter(of_kind) {
        let confined = match (row.reached.is_empty(), row.is_killed()) {
            (true, true) => "0, killed".to_owned(),
            (true, false) => "0, refused".to_owned(),
            (false, _) => cell(Some(row)),
        };
        let without = match find(rows, row, Column::Unconfined) {
            None => "–".to_owned(),
            Some(row) => {
                let flags = row.reached.iter().filter_map(|it| it.strip_prefix("the flag in the "));
                let flags: Vec<&str> = flags.collect();
                if flags.is_empty() { "0".to_owned() } else { flags.join(", ") }
            }
        };
        let Row { name, what, source, .. } = row;
        let _ = writeln!(text, "| {name} | {what} | {source} | {confined} | {without} |");
    }
}

fn find<'a>(rows: &'a [Row], like: &Row, column: Column) -> Option<&'a Row> {
    rows.iter().find(|row| row.name == like.name && row.column == column)
}

/// Says what was read.
fn cell(row: Option<&Row>) -> String {
    match row {
        None => "–".to_owned(),
        Some(row) if !row.reached.is_empty() => format!("**{}**", row.reached.join(", ")),
        Some(row) if row.has_ended_its_host() => "0, host ended".to_owned(),
        Some(_) => "0".to_owned(),
    }
}
