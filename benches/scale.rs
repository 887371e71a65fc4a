//! Measures many sessions in one engine, and many per minute:
//! `cargo bench -p isolet-cli --bench scale -- [--sessions N,N] [--seconds S] [thread|process]`
//!
//! Sessions in workers are measured twice: threads read what the workers send, and the runtime's
//! event loop (`EngineBuilder::event_loop`).
//!
//! By default it runs briefly, as part of `cargo bench`. The numbers in `docs/performance.md` are
//! those of `--sessions 1,10,100,500 --seconds 30`.

#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

mod support;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolet::{Engine, Isolation, Sandbox, Session, Value};
use support::{pss, until_copy};
use tokio::task::JoinSet;

/// Sessions that start per minute, at equal intervals.
const A_MINUTE: u32 = 1000;
/// Interpreters kept ready for them.
const POOL: usize = 8;
/// Runs of each session while all run concurrently.
const RUNS: u32 = 20;
const MAX_SESSIONS: usize = 6000;
/// What is measured, and whether the event loop reads.
const KINDS: [(Isolation, bool); 3] =
    [(Isolation::Thread, false), (Isolation::Process, false), (Isolation::Process, true)];

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let given = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).map(String::as_str)
    };
    let counts = given("--sessions").unwrap_or("1,10").split(',');
    let counts: Vec<usize> = counts.map(str::parse).collect::<Result<_, _>>()?;
    let seconds: u32 = given("--seconds").unwrap_or("3").parse()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for (isolation, has_event_loop) in KINDS {
        let is_named = |name: &str| arguments.iter().any(|argument| argument == name);
        let has_names = is_named("thread") || is_named("process");
        if has_names && !is_named(isolation.name()) {
            continue;
        }
        let mut engine = Engine::builder()
            .worker(env!("CARGO_BIN_EXE_isolet"))
            .max_sessions(MAX_SESSIONS)
            .isolation(isolation);
        if has_event_loop {
            engine = engine.event_loop(runtime.handle().clone())?;
        }
        let engine = engine.build()?;
        let sandbox = Sandbox::builder(&engine).build()?;
        // After this, the template for further workers exists.
        drop(until_copy(&sandbox)?);
        let reader = if has_event_loop { ", the event loop reads" } else { "" };
        println!("{isolation}{reader}: sessions open at once; times are p50 / p95 ms");
        println!(
            "{:>8} {:>18} {:>18} {:>14} {:>12}",
            "sessions", "a further one", "40+2 in turns", "runs a second", "MiB each"
        );
        for count in &counts {
            runtime.block_on(open(&sandbox, *count))?;
        }
        if seconds > 0 {
            runtime.block_on(stream(&engine, &sandbox, seconds))?;
        }
    }
    Ok(())
}

/// Opens `count` sessions, then runs code in each of them.
async fn open(sandbox: &Sandbox, count: usize) -> Result<()> {
    let before = pss(std::process::id())?;
    let (mut sessions, mut opening, mut running) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let start = Instant::now();
        let mut session = sandbox.session().await?;
        run(&mut session).await?;
        opening.push(start.elapsed());
        sessions.push(session);
    }
    let memory = pss(std::process::id())?.saturating_sub(before) / u64::try_from(count)?;
    for session in &mut sessions {
        let start = Instant::now();
        run(session).await?;
        running.push(start.elapsed());
    }
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut session in sessions {
        tasks.spawn(async move {
            for _ in 0..RUNS {
                run(&mut session).await?;
            }
            anyhow::Ok(session)
        });
    }
    // Sessions are kept until here, so that closing them does not disturb the others' runs.
    let sessions = tasks.join_all().await.into_iter().collect::<Result<Vec<Session>>>()?;
    let all = f64::from(RUNS) * f64::from(u32::try_from(count)?);
    let rate = all / start.elapsed().as_secs_f64();
    drop(sessions);
    let (opening, running) = (spread(&mut opening), spread(&mut running));
    println!("{count:>8} {opening:>18} {running:>18} {rate:>14.0} {:>12.1}", mib(memory));
    Ok(())
}

/// Starts sessions from a pool, at equal intervals for `seconds` seconds, each for one run.
async fn stream(engine: &Engine, sandbox: &Sandbox, seconds: u32) -> Result<()> {
    engine.prewarm(POOL)?;
    engine.prewarmed().await?;
    let pause = Duration::from_mins(1) / A_MINUTE;
    let count = A_MINUTE * seconds / 60;
    let (start, mut tasks) = (Instant::now(), JoinSet::new());
    let mut next = tokio::time::interval(pause);
    for _ in 0..count {
        next.tick().await;
        let sandbox = sandbox.clone();
        tasks.spawn(async move {
            let start = Instant::now();
            let mut session = sandbox.session().await?;
            let started = start.elapsed();
            run(&mut session).await?;
            anyhow::Ok((started, start.elapsed()))
        });
    }
    let times = tasks.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
    let took = start.elapsed();
    let peak = std::fs::read_to_string("/proc/self/status").context("no status")?;
    let peak = peak.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    let (mut started, mut done): (Vec<_>, Vec<_>) = times.into_iter().unzip();
    println!(
        "{count} sessions in {:.1} s from a pool of {POOL}: session {} ms, to the result {} ms; the most that \
         this process has taken is {}",
        took.as_secs_f64(),
        spread(&mut started),
        spread(&mut done),
        peak.trim(),
    );
    engine.prewarm(0)?;
    Ok(())
}

async fn run(session: &mut Session) -> Result<()> {
    let ran = session.run("40+2").await?;
    ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
    Ok(())
}

/// Returns the median and the 95th percentile, in milliseconds.
fn spread(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[(times.len() - 1) * percent / 100].as_secs_f64() * 1e3;
    format!("{:.2} / {:.2}", at(50), at(95))
}

#[expect(clippy::cast_precision_loss, reason = "to a tenth of a MiB")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
