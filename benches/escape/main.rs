//! isolet's side of `cargo xtask escape`: runs each program against a host with flags, in a process
//! of its own, and says which flags the program has reached.
//!
//! Prints a line of JSON for each program and column. With the argument `host`, it is the embedding
//! process, which runs the programs of the request on standard input.

#![expect(clippy::print_stdout, reason = "a benchmark answers on standard output")]

mod flags;
mod host;
mod programs;
mod runs;

use std::io;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use isolet::{Engine, Isolation};
use serde_json::json;

use self::host::Allowed;
use self::runs::{Run, native_attempts};

/// The options of the command line.
#[derive(Debug, Default)]
struct Asked {
    /// The names of programs; all if empty.
    only: Vec<String>,
    /// The program whose workers run native code.
    native: Option<PathBuf>,
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("host") => {
            let engine = Engine::builder().worker(env!("CARGO_BIN_EXE_isolet"));
            let request = serde_json::from_reader(io::stdin().lock())?;
            host::serve(engine, &request, io::stdout())
        }
        Some("run") => run(&Asked::parse(&arguments[1..])?),
        // `cargo bench` runs everything in `benches`, without commands for this program.
        _ => Ok(()),
    }
}

/// Runs the control first: a harness that does not find its flags says nothing.
fn run(asked: &Asked) -> Result<()> {
    let wanted = |name: &str| asked.only.is_empty() || asked.only.iter().any(|it| it == name);
    for isolation in [Isolation::Thread, Isolation::Process] {
        for program in programs::control()? {
            let run = Run::new(isolation).allowed(Allowed::Everything);
            let outcome = run.of(&program)?;
            println!("{}", outcome.json("Control", &program, runs::column(isolation)));
        }
    }
    for (kind, program) in programs::all()?.iter().filter(|(_, program)| wanted(&program.name)) {
        for isolation in [Isolation::Thread, Isolation::Process] {
            let outcome = Run::new(isolation).of(program)?;
            println!("{}", outcome.json(kind, program, runs::column(isolation)));
        }
    }
    let Some(native) = &asked.native else { return Ok(()) };
    for attempt in native_attempts(native)? {
        if !wanted(&attempt.program.name) {
            continue;
        }
        let program = &attempt.program;
        let outcome = Run::new(Isolation::Process).native(native, true)?.of(program)?;
        println!("{}", outcome.json(&attempt.kind, program, "native"));
        if attempt.is_harmless {
            let outcome = Run::new(Isolation::Process).native(native, false)?.of(program)?;
            println!("{}", outcome.json(&attempt.kind, program, "unconfined"));
        }
    }
    println!("{}", json!({"done": true}));
    Ok(())
}

impl Asked {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut asked = Self::default();
        let mut arguments = arguments.iter();
        while let Some(argument) = arguments.next() {
            let value = arguments.next().with_context(|| format!("`{argument}` has no value"));
            match argument.as_str() {
                "--only" => asked.only.push(value?.clone()),
                "--native" => asked.native = Some(value?.into()),
                other => bail!("`{other}` is not an option of this program"),
            }
        }
        Ok(asked)
    }
}
