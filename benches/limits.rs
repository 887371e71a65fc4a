//! Measures how long after its deadline a run ends, for various guests, and what a thousand
//! sessions leave behind:
//! `cargo bench -p isolet-cli --bench limits -- [--runs N] [--sessions N] [thread|process]`
//!
//! By default it runs briefly, as part of `cargo bench`. The numbers in the README are those of
//! `--runs 200 --sessions 1000`, which takes ten minutes.
//!
//! A guest is interrupted at its deadline, and killed after its grace. The latency is the time
//! beyond whichever of the two ended it.

#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

use std::time::{Duration, Instant};

use isolet::{Cell, Engine, Error, Isolation, Limits, Sandbox, Tool, ToolSpec};

const DEADLINE: Duration = Duration::from_millis(20);
const GRACE: Duration = Duration::from_millis(50);

/// Guests: a name, whether only a kill ends the guest, and its code.
const GUESTS: &[(&str, bool, &str)] = &[
    ("Python loop", false, "while True: pass"),
    ("regex", false, "import re; re.match(r'(a+)+$', 'a' * 60 + 'b')"),
    ("time.sleep", false, "import time; time.sleep(1000)"),
    ("await of nothing", false, "import asyncio; await asyncio.Future()"),
    ("tool that never returns", false, "never()"),
    ("blocking tool", false, "blocks()"),
    ("loop in C", true, "sum(range(10 ** 12))"),
    ("JavaScript loop", true, "from pyodide.code import run_js; run_js('for (;;) {}')"),
    (
        "microtasks",
        true,
        "import asyncio\nfrom pyodide.code import run_js\n\
      run_js('f = () => Promise.resolve().then(f); f(); 0')\nawait asyncio.sleep(0)",
    ),
    (
        "catches everything",
        true,
        "while True:\n  try:\n    while True: pass\n  except BaseException: pass",
    ),
];

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        let given = at.and_then(|at| arguments.get(at + 1)).and_then(|text| text.parse().ok());
        given.unwrap_or(default)
    };
    let (runs, sessions) = (number("--runs", 20), number("--sessions", 20));
    for isolation in [Isolation::Thread, Isolation::Process] {
        let name = isolation.name();
        let others =
            arguments.iter().any(|argument| matches!(argument.as_str(), "thread" | "process"));
        if others && !arguments.iter().any(|argument| argument == name) {
            continue;
        }
        let engine =
            Engine::builder().worker(env!("CARGO_BIN_EXE_isolet")).isolation(isolation).build()?;
        if runs > 0 {
            latencies(&engine, runs)?;
        }
        if sessions > 0 {
            curve(&engine, sessions)?;
        }
    }
    Ok(())
}

/// Runs each guest `runs` times past its deadline.
fn latencies(engine: &Engine, runs: usize) -> Result<(), Error> {
    let isolation = engine_isolation(engine)?;
    println!("latency past the deadline (or the grace), {isolation}, {runs} runs each, ms");
    println!("{:26} {:>8} {:>8} {:>8}", "guest", "p50", "p99", "worst");
    let limits = Limits::default().max_run_time(DEADLINE).max_host_time(DEADLINE);
    for (name, killed, code) in GUESTS {
        let limits = limits.clone().max_grace(if *killed { GRACE } else { GRACE * 100 });
        let sandbox = Sandbox::builder(engine)
            .limits(limits)
            .tool(Tool::from_handler(ToolSpec::new("never"), |_, _| std::future::pending()))
            .tool(Tool::from_blocking_handler(ToolSpec::new("blocks"), |_, _| {
                std::thread::sleep(DEADLINE * 4);
                Ok(isolet::Value::None)
            }))
            .build()?;
        let expected = if *killed { DEADLINE + GRACE } else { DEADLINE };
        let mut session = sandbox.blocking().session()?;
        let mut times = Vec::with_capacity(runs);
        while times.len() < runs {
            let start = Instant::now();
            let execution = session.run(Cell::new(*code))?;
            let elapsed = start.elapsed();
            // Occasionally the interrupt arrives before the guest reaches the code that only a kill
            // ends.
            if execution.session_alive() != *killed {
                times.push(elapsed.saturating_sub(expected));
            }
            if !execution.session_alive() {
                session.reset()?;
            }
        }
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).max(1) - 1;
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        println!("{name:26} {:>8.2} {:>8.2} {:>8.2}", at(50), at(99), at(100));
    }
    println!();
    Ok(())
}

/// Opens, kills and drops sessions one after another, and reports the process's resources
/// meanwhile.
fn curve(engine: &Engine, sessions: usize) -> Result<(), Error> {
    let isolation = engine_isolation(engine)?;
    println!("{sessions} sessions killed one after the other, {isolation}");
    println!(
        "{:>8} {:>9} {:>9} {:>12} {:>9}",
        "sessions", "RSS, MiB", "threads", "descriptors", "seconds"
    );
    let limits = Limits::default().max_run_time(DEADLINE).max_grace(Duration::ZERO);
    let sandbox = Sandbox::builder(engine).limits(limits).build()?;
    let start = Instant::now();
    for done in 0..=sessions {
        if done % (sessions / 10).max(1) == 0 {
            let [rss, threads, descriptors] = footprint();
            let seconds = start.elapsed().as_secs_f64();
            println!("{done:>8} {rss:>9} {threads:>9} {descriptors:>12} {seconds:>9.1}");
        }
        let mut session = sandbox.blocking().session()?;
        let execution = session.run("x = bytearray(20_000_000)\nwhile True: pass")?;
        assert!(!execution.session_alive(), "{execution:?}");
    }
    println!();
    Ok(())
}

fn engine_isolation(engine: &Engine) -> Result<Isolation, Error> {
    Ok(Sandbox::builder(engine).build()?.blocking().session()?.isolation().isolation())
}

/// Returns resident MiB, threads and descriptors.
fn footprint() -> [usize; 3] {
    let entries = |path: &str| std::fs::read_dir(path).map_or(0, Iterator::count);
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    [(pages * 4096) >> 20, entries("/proc/self/task"), entries("/proc/self/fd")]
}
