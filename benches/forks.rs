//! Forks a session many times, one after another and at once:
//! `cargo bench -p isolet-cli --bench forks -- [--forks N] [--copies N]`. Fails if something of an
//! ended copy is left.
//!
//! By default it runs briefly, as part of `cargo bench`. The numbers in `docs/performance.md` are
//! those of `--forks 10000 --copies 1000`.

#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

#[path = "support/pss.rs"]
mod pss;

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolet::blocking::Session;
use isolet::{Engine, Isolation, Sandbox, Value};
use pss::pss;

/// What is kept from the first forks on: the template, and memory that is used again.
const WARM_UP: usize = 1000;

/// How long it may take until nothing is left of copies that have ended.
const PATIENCE: Duration = Duration::from_secs(20);

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str, otherwise: usize| -> Result<usize> {
        let at = arguments.iter().position(|argument| argument == name);
        let number = at.and_then(|at| arguments.get(at + 1));
        number.map_or(Ok(otherwise), |number| Ok(number.parse()?))
    };
    let (forks, copies) = (given("--forks", 20)?, given("--copies", 10)?);
    let engine = Engine::builder()
        .worker(env!("CARGO_BIN_EXE_isolet"))
        .max_sessions(copies + 1)
        .isolation(Isolation::Process)
        .build()?;
    let sandbox = Sandbox::builder(&engine).forkable(copies).build()?;
    let mut session = sandbox.blocking().session()?;
    session.run("x = 41")?;
    one_after_another(&mut session, forks)?;
    at_once(&mut session, copies)
}

/// Forks and ends copies, each after a run in it.
fn one_after_another(session: &mut Session, count: usize) -> Result<()> {
    let fork = |session: &mut Session| -> Result<()> {
        let mut copy = session.fork()?;
        let ran = copy.run("x + 1")?;
        ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
        Ok(())
    };
    for _ in 0..WARM_UP.min(count) {
        fork(session)?;
    }
    let (before, memory) = (Held::now()?, resident()?);
    let start = Instant::now();
    for _ in 0..count {
        fork(session)?;
    }
    let took = start.elapsed() / u32::try_from(count)?;
    let ended = Instant::now();
    let mut after = Held::now()?;
    while after.is_more_than(&before) {
        ensure!(ended.elapsed() < PATIENCE, "left behind: {after:?}, before: {before:?}");
        std::thread::yield_now();
        after = Held::now()?;
    }
    let grown = resident()?.saturating_sub(memory) >> 10;
    println!("{count} forks, each with a run and an end: {took:.2?} each; {after:?}");
    println!("they were {before:?} before, and this process has {grown} KiB more");
    Ok(())
}

/// Has many copies at the same time, each with a state of its own.
fn at_once(session: &mut Session, count: usize) -> Result<()> {
    let (before, start) = (pss(std::process::id())?, Instant::now());
    let mut copies = session.fork_many(count)?;
    let took = start.elapsed();
    for (number, copy) in copies.iter_mut().enumerate() {
        copy.run(format!("x += {number}"))?;
    }
    let each = pss(std::process::id())?.saturating_sub(before) / u64::try_from(count)?;
    let start = Instant::now();
    for (number, copy) in copies.iter_mut().enumerate() {
        let ran = copy.run("x")?;
        let expected = Value::Int(i64::try_from(41 + number)?);
        ensure!(ran.value() == Some(&expected), "unexpected: {ran:?}");
    }
    let run = start.elapsed() / u32::try_from(count)?;
    println!(
        "{count} copies at once: made in {took:.2?}, {} KiB each (Pss), a run in each takes {run:.2?}",
        each >> 10
    );
    Ok(())
}

/// What this process has of the system.
#[derive(Debug)]
struct Held {
    descriptors: usize,
    threads: usize,
    /// Those that it has started, and those that they have.
    processes: usize,
}

impl Held {
    fn now() -> Result<Self> {
        let count = |what: &str| -> Result<usize> {
            Ok(fs::read_dir(format!("/proc/self/{what}"))?.count())
        };
        let (descriptors, threads) = (count("fd")?, count("task")?);
        Ok(Self { descriptors, threads, processes: descendants("self") })
    }

    fn is_more_than(&self, other: &Self) -> bool {
        self.descriptors > other.descriptors
            || self.threads > other.threads
            || self.processes > other.processes
    }
}

fn descendants(process: &str) -> usize {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists
        .map(|list| list.split_whitespace().map(|child| 1 + descendants(child)).sum::<usize>())
        .sum()
}

/// Returns how much memory this process holds, in bytes.
fn resident() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.context("no memory in the status")?.trim().trim_end_matches(" kB");
    Ok(number.parse::<u64>()? << 10)
}
