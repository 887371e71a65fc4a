//! isolet's side of `cargo xtask survival`: runs each program in a session of its own and reports
//! what became of the program, of the session, and of this process.
//!
//! A line of JSON on standard input, `{"code": "...", "packages": [...], "seconds": 3}`, is
//! answered with `{"opened": true}`, then `{"seconds": 1.2, "told": "..."}` when the run has ended,
//! and `{"kept": true}` if the session's variable is still there. The first line names the program.
//! `benches/peers/survival.py` is the same for the peers.

#![expect(clippy::print_stdout, reason = "a subject answers on standard output")]

use std::io::{self, BufRead};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use isolet::{Cell, Engine, Execution, Isolation, Limits, Outcome, Permissions, Sandbox, Value};
use serde_json::{Value as Json, json};

/// The wheels that `cargo xtask test --science` gets.
const WHEELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/science/wheels");

/// How long a guest may take to end at a limit of time, before it is killed. Shorter than the
/// default, so that the run ends in time.
const GRACE: Duration = Duration::from_millis(300);

/// The pause before the program. `benches/peers/survival.py` has the same.
const PAUSE: Duration = Duration::from_millis(300);

/// The memory of a session, in bytes: the default of the Python package, said for the page.
const MEMORY_BYTES: u64 = 512 << 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // `cargo bench` runs everything in `benches`, without commands for this program.
    let isolation = match arguments.first().map(String::as_str) {
        Some("thread") => Isolation::Thread,
        Some("process") => Isolation::Process,
        _ => return Ok(()),
    };
    if arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let worker = env!("CARGO_BIN_EXE_isolet");
    let engine = Engine::builder().worker(worker).isolation(isolation).build()?;
    println!("{}", json!(concat!("isolet ", env!("CARGO_PKG_VERSION"))));
    for line in io::stdin().lock().lines() {
        let program: Json = serde_json::from_str(&line?)?;
        survive(&engine, &program)?;
    }
    Ok(())
}

/// Runs a program, and says line by line what became of it.
fn survive(engine: &Engine, program: &Json) -> Result<()> {
    let code = program["code"].as_str().context("a program has `code`")?;
    let seconds = program["seconds"].as_f64().context("a program has `seconds`")?;
    let packages: Vec<&str> =
        program["packages"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
    let limits = Limits::default()
        .max_run_time(Duration::from_secs_f64(seconds))
        .max_memory_bytes(MEMORY_BYTES)
        .max_grace(GRACE);
    let permissions =
        if packages.is_empty() { Permissions::none() } else { Permissions::none().wheels(WHEELS) };
    let sandbox = Sandbox::builder(engine)
        .limits(limits)
        .permissions(permissions)
        .checkpoint(true)
        .build()?;
    let mut session = sandbox.blocking().session()?;
    if !packages.is_empty() {
        session.load_packages(packages)?;
    }
    session.run("kept = 41")?;
    thread::sleep(PAUSE);
    println!("{}", json!({"opened": true}));
    let start = Instant::now();
    let told = match session.run(Cell::new(code)) {
        Ok(execution) => told(&execution),
        Err(error) => format!("{error}"),
    };
    println!("{}", json!({"seconds": start.elapsed().as_secs_f64(), "told": told}));
    let kept = session.run("kept + 1").is_ok_and(|ran| ran.value() == Some(&Value::Int(42)));
    println!("{}", json!({"kept": kept}));
    Ok(())
}

/// What the user is told of a run.
fn told(execution: &Execution) -> String {
    match execution.outcome() {
        Outcome::Completed(_) => "a value".to_owned(),
        Outcome::Submitted(_) => "an answer".to_owned(),
        Outcome::Raised(error) => format!("{}: {}", error.type_name, error.message),
        Outcome::Exited(status) => format!("exit status {status}"),
        Outcome::Terminated(termination) => format!("{termination}"),
        other => format!("{other:?}"),
    }
}
