//! What checkpoints take: of a run's time, without and with an idle moment before it, and of an
//! idle session's memory. Sessions with and without them take turns.

#![expect(clippy::print_stdout, reason = "the table is this program's result")]

mod support;

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use isolet::blocking::Session;
use isolet::{Engine, Isolation, Sandbox};
use support::{pss, until_copy};

/// A run of about 10 ms.
const RUN: &str = "sum(i * i for i in range(70_000))";
const RUNS: usize = 300;
/// Longer than a session is idle until its state is kept, and that takes.
const IDLE: Duration = Duration::from_millis(120);
const IDLE_RUNS: usize = 60;
const SESSIONS: usize = 10;
/// A session with a few variables.
const VARIABLES: &str = "import json\nnames = ['a', 'b', 'c']\ntable = {n: len(n) for n in names}";

fn main() -> Result<()> {
    // `cargo bench` runs everything in `benches` with this argument.
    if std::env::args().any(|argument| argument == "--test") {
        return Ok(());
    }
    let engine = Engine::builder()
        .worker(env!("CARGO_BIN_EXE_isolet"))
        .isolation(Isolation::Process)
        .build()?;
    let sandbox = |on| Sandbox::builder(&engine).checkpoint(on).build();
    let (without, with) = (sandbox(false)?, sandbox(true)?);
    // Sessions from here on are copies.
    let first = until_copy(&without)?;
    println!("| | without | with | ratio |\n|-|-|-|-|");
    for (title, runs, pause) in
        [("run, p50, ms", RUNS, None), ("run after an idle moment, p50, ms", IDLE_RUNS, Some(IDLE))]
    {
        let mut sessions = [without.blocking().session()?, with.blocking().session()?];
        let [before, after] = turns(&mut sessions, runs, pause)?;
        println!("| {title} | {before:.3} | {after:.3} | {:.3} |", after / before);
    }
    let (before, after) = (memory(&without)?, memory(&with)?);
    println!("| idle session, MiB | {before:.2} | {after:.2} | {:.2} |", after / before);
    drop(first);
    Ok(())
}

/// Returns the median time of a run in each session, in milliseconds.
fn turns(sessions: &mut [Session; 2], runs: usize, pause: Option<Duration>) -> Result<[f64; 2]> {
    let mut times = [Vec::new(), Vec::new()];
    for session in sessions.iter_mut() {
        session.run(VARIABLES)?;
    }
    for _ in 0..runs {
        for (session, times) in sessions.iter_mut().zip(&mut times) {
            if let Some(pause) = pause {
                thread::sleep(pause);
            }
            let start = Instant::now();
            session.run(RUN)?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    }))
}

/// Returns the memory of a further idle session, in MiB. What all share is there already: pages of
/// the image, and what threads that serve many sessions keep.
fn memory(sandbox: &Sandbox) -> Result<f64> {
    let _first = idle_sessions(sandbox)?;
    let before = settled()?;
    let _more = idle_sessions(sandbox)?;
    let after = settled()?;
    let kib = after.saturating_sub(before) / (SESSIONS as u64 * 1024);
    Ok(f64::from(u32::try_from(kib)?) / 1024.0)
}

fn idle_sessions(sandbox: &Sandbox) -> Result<Vec<Session>> {
    let sessions = (0..SESSIONS).map(|_| {
        let mut session = sandbox.blocking().session()?;
        session.run(VARIABLES)?;
        Ok(session)
    });
    sessions.collect()
}

/// Returns the memory of this process and its workers once all are idle, in bytes.
fn settled() -> Result<u64> {
    thread::sleep(Duration::from_secs(3));
    pss(std::process::id())
}
