//! What recording takes: of a run, of a loop of tool calls, and of `Session::record`. What a replay
//! and a resumed run take. Sessions with and without a journal take turns.

#![expect(clippy::print_stdout, reason = "the table is this program's result")]

#[path = "support/copies.rs"]
mod copies;

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result};
use copies::until_copy;
use isolet::blocking::Session;
use isolet::{Engine, Isolation, Param, Replay, Sandbox, SandboxBuilder, Tool, ToolSpec};

/// A run of about 10 ms.
const RUN: &str = "sum(i * i for i in range(70_000))";
const RUNS: usize = 200;
const CALLS: u64 = 10_000;
/// A loop of calls, as an agent's code has it.
const LOOP: &str = "
found = []
for n in range(10_000):
    found.append(look(f'query {n}')['n'])
";
const LOOPS: usize = 15;
/// A program that computes for a while and makes a few calls.
const PROGRAM: &str = "
total = 0
for n in range(20):
    total += look(str(n))['n'] + sum(i * i for i in range(200_000))
";
const PROGRAMS: usize = 7;
const RECORDS: usize = 30;

/// The journals of this program, which are removed with it.
struct Journals(tempfile::TempDir, u32);

impl Journals {
    fn next(&mut self) -> PathBuf {
        self.1 += 1;
        self.0.path().join(format!("{}.journal", self.1))
    }
}

fn main() -> Result<()> {
    // `cargo bench` runs everything in `benches` with this argument.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    for isolation in [Isolation::Process, Isolation::Thread] {
        println!("\nsessions in: {isolation:?}\n");
        let engine =
            Engine::builder().worker(env!("CARGO_BIN_EXE_isolet")).isolation(isolation).build()?;
        let tool = |name: &str| {
            let spec = ToolSpec::new(name).param(Param::new("query"));
            Tool::from_handler(spec, |_, cx| async move {
                isolet::to_value(&serde_json::json!({ "n": cx.call_id() }))
                    .map_err(|error| isolet::ToolError::new("ValueError", error.to_string()))
            })
        };
        let tools = [tool("look"), tool("look_again").idempotent()];
        let sandbox = tools.into_iter().fold(Sandbox::builder(&engine), SandboxBuilder::tool);
        let sandbox = sandbox.build()?;
        // Sessions from here on are copies.
        let _first = until_copy(&sandbox)?;
        measure(&sandbox)?;
    }
    Ok(())
}

fn measure(sandbox: &Sandbox) -> Result<()> {
    let mut journals = Journals(tempfile::tempdir()?, 0);
    println!("| p50, ms | without | with | ratio |\n|-|-|-|-|");
    let again = LOOP.replace("look", "look_again");
    for (title, code, runs) in [
        ("run", RUN, RUNS),
        ("10,000 calls", LOOP, LOOPS),
        ("10,000 calls, idempotent", &again, LOOPS),
    ] {
        let recorded = sandbox.blocking().record(journals.next())?;
        let mut sessions = [sandbox.blocking().session()?, recorded];
        let [before, after] = turns(&mut sessions, code, runs)?;
        println!("| {title} | {before:.3} | {after:.3} | {:.3} |", after / before);
    }
    replayed(sandbox, &mut journals)?;

    let path = journals.next();
    let mut session = sandbox.blocking().record(&path)?;
    let empty = fs::metadata(&path)?.len();
    session.run(LOOP)?.into_result()?;
    let bytes = fs::metadata(&path)?.len() - empty;
    println!("\n{CALLS} calls: a journal of {} KiB, answers included", bytes >> 10);

    let mut times = Vec::new();
    for _ in 0..RECORDS {
        let mut session = sandbox.blocking().session()?;
        session.run("import json; names = ['a', 'b']")?;
        let start = Instant::now();
        session.record(journals.next())?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("`Session::record`: {:.1} ms", median(times));
    Ok(())
}

/// Compares what a program takes when it is recorded and when it is replayed.
fn replayed(sandbox: &Sandbox, journals: &mut Journals) -> Result<()> {
    let (mut recorded, mut replayed, mut opened, mut fresh) = Default::default();
    for _ in 0..PROGRAMS {
        let path = journals.next();
        timed(&mut fresh, || sandbox.blocking().session().map_err(Into::into))?;
        let mut session = sandbox.blocking().record(&path)?;
        timed(&mut recorded, || Ok(session.run(PROGRAM)?.into_result()?))?;
        drop(session);
        let mut session = timed(&mut opened, || Ok(sandbox.blocking().resume(&path)?))?;
        timed(&mut replayed, || {
            let execution = session.go_on()?.context("there is a run")?;
            Ok(execution.into_result()?)
        })?;
        drop(session);
        let mut looked = sandbox.blocking().replay(Replay::of(&path))?;
        looked.go_on()?.context("there is a run")?.into_result()?;
    }
    let (recorded, replayed) = (median(recorded), median(replayed));
    println!(
        "| the same run replayed | {recorded:.1} | {replayed:.1} | {:.3} |",
        replayed / recorded
    );
    let (fresh, opened) = (median(fresh), median(opened));
    println!("| a session, resumed | {fresh:.1} | {opened:.1} | {:.3} |", opened / fresh);
    Ok(())
}

fn timed<T>(times: &mut Vec<f64>, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let done = work()?;
    times.push(start.elapsed().as_secs_f64() * 1e3);
    Ok(done)
}

/// Returns the median time of a run in each session, in milliseconds.
fn turns(sessions: &mut [Session; 2], code: &str, runs: usize) -> Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..runs {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            timed(times, || Ok(session.run(code)?.into_result()?))?;
        }
    }
    Ok(times.map(median))
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied().unwrap_or_default()
}
