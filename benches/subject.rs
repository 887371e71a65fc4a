//! isolet's side of `cargo xtask bench`: carries out the commands on standard input and reports the
//! times.
//!
//! A line `SCENARIO COUNT` is answered with a line of JSON: a list of nanoseconds, `{"skip":
//! "why"}` or `{"error": "why"}`. The first line names the measured program, with its version.
//! `docs/performance.md` describes the scenarios; `benches/peers` contains the peers'
//! implementations.

#![expect(clippy::print_stdout, reason = "a subject answers on standard output")]

mod support;

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use isolet::blocking::Session;
use isolet::{
    Cell, Engine, EngineBuilder, Execution, Isolation, Mount, Param, Permissions, Sandbox, Tool,
    ToolSpec, Value,
};
use serde_json::{Value as Json, json};
use support::{pss, until_copy};
use tempfile::TempDir;

const COMPUTE: &str = include_str!("compute.py");
const MIB: usize = 1 << 20;
const TOOL_CALLS: u32 = 200;
const OUTPUT: &str = "for _ in range(10_485): print('x' * 99)";
const OUTPUT_BYTES: usize = 1_048_500;
/// The number of lines in the file that is read: 13.5 MB at 27 bytes per line.
const LINES: i64 = 500_000;
const SMALL_READS: &str = "import os
fd, count = os.open('/data/lines', os.O_RDONLY), 0
while piece := os.read(fd, 2700): count += piece.count(b'\\n')
os.close(fd)
count";
/// Interpreters kept ready for the `pool` scenario. More would boot during the measurement.
const POOL: usize = 2;
const IDLE_SESSIONS: usize = 5;
/// More than there are spare ones.
const BURST: u32 = 8;
const MAKE_SMALL: &str = "x = 1";
const MAKE_SAVED: &str = "x = 1
names = ['a', 'b', 'c']
table = {name: len(name) for name in names}
def double(value): return 2 * value
";
const USE_SAVED: &str = "double(x) + 40";
const MAKE_TABLE: &str = "import numpy as np, pandas as pd
t = pd.DataFrame({'g': ['x', 'y', 'x'], 'n': np.arange(3)}); 0";
const USE_TABLE: &str = "int(t.n.sum()) + 39";
/// The wheels that `cargo xtask test --science` gets.
const WHEELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/science/wheels");
const PACKAGES: [&str; 2] = ["numpy", "pandas"];
/// 200 MB of objects.
const MAKE_LARGE: &str = "large = [bytes(1000) for _ in range(200_000)]; len(large)";

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
    let mut subject = Subject::new(&builder(isolation).build()?, isolation)?;
    println!("{}", json!(concat!("isolet ", env!("CARGO_PKG_VERSION"))));
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (scenario, count) = line.split_once(' ').context("a line is `SCENARIO COUNT`")?;
        let answer = subject.measure(scenario, count.parse()?);
        println!("{}", answer.unwrap_or_else(|error| json!({"error": format!("{error:#}")})));
    }
    Ok(())
}

struct Subject {
    engine: Engine,
    isolation: Isolation,
    sandbox: Sandbox,
    /// The session of the scenarios that measure a warm session.
    warm: Session,
    runtime: tokio::runtime::Runtime,
    /// A session with a mounted directory, for the scenarios that read files.
    reader: Option<(TempDir, Session)>,
    /// The sessions that are copied, by the code that they have run.
    originals: HashMap<&'static str, Session>,
    /// The sessions that are saved, by the scenario, each with its sandbox.
    saved: HashMap<&'static str, (Sandbox, Session)>,
    /// Where they are saved.
    directory: TempDir,
}

impl Subject {
    fn new(engine: &Engine, isolation: Isolation) -> Result<Self> {
        let echo = Tool::from_handler(ToolSpec::new("f").param(Param::new("x")), |arguments, _| {
            let Value::Dict(arguments) = arguments else {
                return std::future::ready(Ok(Value::None));
            };
            let value = arguments.into_iter().next().map_or(Value::None, |(_, value)| value);
            std::future::ready(Ok(value))
        });
        let sandbox = Sandbox::builder(engine).tool(echo).build()?;
        let mut warm = sandbox.blocking().session()?;
        warm.run(format!("out = 'All work and no play. ' * 50_000; out = out[:{MIB}]"))?;
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        Ok(Self {
            engine: engine.clone(),
            isolation,
            sandbox,
            warm,
            runtime,
            reader: None,
            originals: HashMap::new(),
            saved: HashMap::new(),
            directory: tempfile::tempdir()?,
        })
    }

    fn measure(&mut self, scenario: &str, count: usize) -> Result<Json> {
        let one: fn(&mut Self) -> Result<Duration> = match scenario {
            "session" => Self::session,
            "burst" => Self::burst,
            "pool" => return self.pool(count),
            "run" => |subject| subject.timed("40+2", |ran| ran.value() == Some(&Value::Int(42))),
            "compute" => |subject| subject.timed(COMPUTE, |ran| ran.value().is_some()),
            "tool" => |subject| {
                let code = format!("for i in range({TOOL_CALLS}): f(i)");
                Ok(subject.timed(&code, |ran| ran.exception().is_none())? / TOOL_CALLS)
            },
            "value_in" => Self::value_in,
            "value_out" => |subject| {
                subject.timed(
                    "out",
                    |ran| matches!(ran.value(), Some(Value::Str(text)) if text.len() == MIB),
                )
            },
            "output" => |subject| subject.timed(OUTPUT, |ran| ran.stdout().len() == OUTPUT_BYTES),
            "lines" => |subject| subject.read("sum(1 for _ in open('/data/lines'))"),
            "small_reads" => |subject| subject.read(SMALL_READS),
            "memory" => |subject| subject.memory(),
            name if name.starts_with("fork") && self.isolation == Isolation::Thread => {
                return Ok(json!({"skip": "a thread cannot be copied"}));
            }
            "fork" => |subject| Ok(subject.copy(MAKE_SMALL)?.0),
            "fork_large" => |subject| Ok(subject.copy(MAKE_LARGE)?.0),
            "fork_run" => |subject| {
                let (_, mut copy) = subject.copy(MAKE_SMALL)?;
                let start = Instant::now();
                let ran = copy.run("x + 41")?;
                let took = start.elapsed();
                ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
                Ok(took)
            },
            "fork_memory" => |subject| subject.memory_of(|subject| Ok(subject.copy(MAKE_SMALL)?.1)),
            "save" => |subject| subject.save("few"),
            "save_size" => |subject| {
                subject.save("few")?;
                Ok(Duration::from_nanos(std::fs::metadata(subject.saved_file())?.len()))
            },
            "restore" => |subject| subject.restore("few", USE_SAVED),
            _ if !std::fs::exists(WHEELS)? => {
                return Ok(json!({"skip": "`cargo xtask test --science` gets the wheels"}));
            }
            "command_packages" => Self::command_packages,
            "session_packages" => Self::session_packages,
            "memory_packages" => |subject| {
                let engine = subject.engine_with_packages()?.spare_sessions(0).build()?;
                subject.memory_in(&Sandbox::builder(&engine).build()?)
            },
            "save_packages" => |subject| subject.save("packages"),
            "restore_packages" => |subject| subject.restore("packages", USE_TABLE),
            "save_loaded" => |subject| subject.save("loaded"),
            "restore_loaded" => |subject| subject.restore("loaded", USE_TABLE),
            _ => return Ok(json!({"skip": "not a scenario of this subject"})),
        };
        let times: Result<Vec<Duration>> = (0..count).map(|_| one(self)).collect();
        Ok(nanoseconds(&times?))
    }

    /// Measures a new interpreter, up to its first result.
    fn session(&mut self) -> Result<Duration> {
        let start = Instant::now();
        let mut session = self.sandbox.blocking().session()?;
        let ran = session.run("40+2")?;
        let took = start.elapsed();
        ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
        Ok(took)
    }

    /// Measures a command whose image has the packages, from start to exit.
    fn command_packages(&mut self) -> Result<Duration> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isolet"));
        command.args(["run", "--isolation", self.isolation.name()]);
        command.args(["--wheels", WHEELS]).env("XDG_CACHE_HOME", WHEELS.to_owned() + "-cache");
        command.args(PACKAGES.iter().flat_map(|package| ["--with", package]));
        command.args(["-c", &format!("{MAKE_TABLE}\nprint({USE_TABLE})")]);
        let start = Instant::now();
        let ran = command.stdin(Stdio::null()).output()?;
        let took = start.elapsed();
        ensure!(ran.stdout == b"42\n", "unexpected: {ran:?}");
        Ok(took)
    }

    /// Measures a new interpreter whose image has the packages, up to its first use of them.
    fn session_packages(&mut self) -> Result<Duration> {
        let sandbox = self.with_packages()?;
        let start = Instant::now();
        let mut session = sandbox.blocking().session()?;
        let ran = session.run(format!("{MAKE_TABLE}\n{USE_TABLE}"))?;
        let took = start.elapsed();
        ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
        Ok(took)
    }

    /// Returns an engine whose image has the packages.
    fn engine_with_packages(&self) -> Result<EngineBuilder> {
        let engine = builder(self.isolation).packages_from(&allowed()?);
        let preload = |engine: EngineBuilder, package: &&str| engine.preload(package);
        Ok(PACKAGES.iter().try_fold(engine, preload)?)
    }

    /// Returns the sandbox of an engine whose image has the packages.
    fn with_packages(&mut self) -> Result<Sandbox> {
        if !self.saved.contains_key("packages") {
            let made = self.session_to_save("packages")?;
            self.saved.insert("packages", made);
        }
        let (sandbox, _) = self.saved.get("packages").context("there is a sandbox")?;
        Ok(sandbox.clone())
    }

    /// Measures one of several interpreters that are opened one right after the other.
    fn burst(&mut self) -> Result<Duration> {
        let (start, mut sessions) = (Instant::now(), Vec::new());
        for _ in 0..BURST {
            let mut session = self.sandbox.blocking().session()?;
            let ran = session.run("40+2")?;
            ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
            sessions.push(session);
        }
        Ok(start.elapsed() / BURST)
    }

    /// Measures a ready interpreter, up to its first result.
    fn pool(&mut self, count: usize) -> Result<Json> {
        self.engine.prewarm(POOL)?;
        let mut times = Vec::new();
        for _ in 0..count {
            self.runtime.block_on(self.engine.prewarmed())?;
            times.push(self.session()?);
        }
        // The replacements must not boot during the next scenario.
        self.runtime.block_on(self.engine.prewarmed())?;
        self.engine.prewarm(0)?;
        Ok(nanoseconds(&times))
    }

    fn value_in(&mut self) -> Result<Duration> {
        let mut value = "All work and no play. ".repeat(50_000);
        value.truncate(MIB);
        let start = Instant::now();
        let ran = self.warm.run(Cell::new("len(given)").inputs([("given", value)]))?;
        let took = start.elapsed();
        ensure!(ran.repr() == Some(&MIB.to_string()), "unexpected: {ran:?}");
        Ok(took)
    }

    /// Runs a cell that reads a mounted file of half a million lines and returns their number.
    fn read(&mut self, code: &str) -> Result<Duration> {
        if self.reader.is_none() {
            let directory = tempfile::tempdir()?;
            let lines = (0..LINES).map(|line| format!("line {line:07} of many more\n"));
            std::fs::write(directory.path().join("lines"), lines.collect::<String>())?;
            let mount = Mount::read_only(directory.path())?;
            let permissions = Permissions::none().mount("/data", mount)?;
            let sandbox = Sandbox::builder(&self.engine).permissions(permissions).build()?;
            self.reader = Some((directory, sandbox.blocking().session()?));
        }
        let (_, session) = self.reader.as_mut().context("there is a reader")?;
        let start = Instant::now();
        let ran = session.run(code)?;
        let took = start.elapsed();
        ensure!(ran.value() == Some(&Value::Int(LINES)), "unexpected: {:?}", ran.outcome());
        Ok(took)
    }

    /// Runs a cell in the warm session.
    fn timed(&mut self, code: &str, expected: impl Fn(&Execution) -> bool) -> Result<Duration> {
        let start = Instant::now();
        let ran = self.warm.run(code)?;
        let took = start.elapsed();
        ensure!(expected(&ran), "unexpected: {:?}", ran.outcome());
        Ok(took)
    }

    /// Copies a session that has run this code. Returns how long that took, and the copy.
    fn copy(&mut self, make: &'static str) -> Result<(Duration, Session)> {
        if !self.originals.contains_key(make) {
            let sandbox = Sandbox::builder(&self.engine).forkable(IDLE_SESSIONS + 2).build()?;
            let mut session = sandbox.blocking().session()?;
            session.run(make)?;
            self.originals.insert(make, session);
        }
        let original = self.originals.get_mut(make).context("there is an original")?;
        let start = Instant::now();
        let copy = original.fork()?;
        Ok((start.elapsed(), copy))
    }

    fn saved_file(&self) -> PathBuf {
        self.directory.path().join("session")
    }

    /// Saves a session that has a few variables, or packages of the image or that it has loaded.
    fn save(&mut self, what: &'static str) -> Result<Duration> {
        if !self.saved.contains_key(what) {
            let made = self.session_to_save(what)?;
            self.saved.insert(what, made);
        }
        let file = self.saved_file();
        let (_, session) = self.saved.get_mut(what).context("there is a session")?;
        let start = Instant::now();
        session.save(file)?;
        Ok(start.elapsed())
    }

    fn session_to_save(&self, what: &str) -> Result<(Sandbox, Session)> {
        let (sandbox, code) = match what {
            "few" => (self.sandbox.clone(), MAKE_SAVED),
            "loaded" => {
                (Sandbox::builder(&self.engine).permissions(allowed()?).build()?, MAKE_TABLE)
            }
            _ => {
                let engine = self.engine_with_packages()?.build()?;
                (Sandbox::builder(&engine).build()?, MAKE_TABLE)
            }
        };
        let mut session = sandbox.blocking().session()?;
        let ran = session.run(code)?;
        ensure!(ran.exception().is_none(), "unexpected: {ran:?}");
        Ok((sandbox, session))
    }

    /// Measures a session of a saved one, up to the first result of this code.
    fn restore(&mut self, what: &'static str, code: &str) -> Result<Duration> {
        self.save(what)?;
        let file = self.saved_file();
        let (sandbox, _) = self.saved.get(what).context("there is a sandbox")?;
        let start = Instant::now();
        let mut session = sandbox.blocking().restore(file)?;
        let ran = session.run(code)?;
        let took = start.elapsed();
        ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
        Ok(took)
    }

    /// Returns the bytes per additional idle session, in place of nanoseconds.
    fn memory(&mut self) -> Result<Duration> {
        // Spare copies would count, or not.
        let engine = builder(self.isolation).spare_sessions(0).build()?;
        self.memory_in(&Sandbox::builder(&engine).build()?)
    }

    fn memory_in(&mut self, sandbox: &Sandbox) -> Result<Duration> {
        // After this, the template for further workers exists.
        let _first = until_copy(sandbox)?;
        self.memory_of(|_| Ok(sandbox.blocking().session()?))
    }

    fn memory_of(&mut self, open: impl Fn(&mut Self) -> Result<Session>) -> Result<Duration> {
        let mut sessions = vec![open(self)?];
        let before = pss(std::process::id())?;
        for _ in 0..IDLE_SESSIONS {
            let mut session = open(self)?;
            session.run("40+2")?;
            sessions.push(session);
        }
        let after = pss(std::process::id())?;
        let each = after.saturating_sub(before) / u64::try_from(IDLE_SESSIONS)?;
        Ok(Duration::from_nanos(each))
    }
}

/// Allows the packages, from the wheels.
fn allowed() -> Result<Permissions> {
    let sources = Permissions::none().wheels(WHEELS).package_cache(WHEELS.to_owned() + "-cache");
    Ok(PACKAGES.iter().try_fold(sources, |sources, package| sources.allow_package(package))?)
}

fn builder(isolation: Isolation) -> EngineBuilder {
    Engine::builder().worker(env!("CARGO_BIN_EXE_isolet")).isolation(isolation)
}

fn nanoseconds(times: &[Duration]) -> Json {
    times.iter().map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)).collect()
}
