//! Measures how costs grow with the size of values, the number of tools, and the number of mounts:
//! `cargo bench -p isolet-cli --bench growth -- [--full] [values] [tools] [mounts]
//! [thread|process]`
//!
//! By default it runs briefly, as part of `cargo bench`; `--full` takes minutes. How costs grow
//! with the number of sessions is measured by `scale`.

#![expect(clippy::print_stdout, reason = "a benchmark tells what it measured")]

mod support;

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use isolet::blocking::Session;
use isolet::{
    Cell, Engine, Execution, Isolation, Limits, Mount, Param, Permissions, Sandbox, SandboxBuilder,
    Tool, ToolModule, ToolSpec, TypeHint, Value,
};
use support::{pss, until_copy};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// For the largest values, which the guest has several times.
const MEMORY_BYTES: u64 = 2 << 30;
const VALUE_BYTES: u64 = 300 << 20;

/// How often each cost is measured; the table has the median.
const TIMES: usize = 7;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |name: &str| arguments.iter().any(|argument| argument == name);
    let is_full = has("--full");
    let all_isolations = !has("thread") && !has("process");
    let all_tables = !has("values") && !has("tools") && !has("mounts");
    for isolation in [Isolation::Process, Isolation::Thread] {
        if !all_isolations && !has(isolation.name()) {
            continue;
        }
        let engine = Engine::builder().worker(env!("CARGO_BIN_EXE_isolet")).isolation(isolation);
        let engine = engine.build()?;
        if all_tables || has("values") {
            let sizes = [KIB, 16 * KIB, 256 * KIB, MIB, 16 * MIB, 64 * MIB, 256 * MIB];
            values(&engine, isolation, if is_full { &sizes } else { &sizes[..3] })?;
        }
        let counts = [1, 10, 100, 1_000, 10_000];
        if all_tables || has("tools") {
            tools(&engine, isolation, if is_full { &counts } else { &counts[..3] })?;
        }
        if all_tables || has("mounts") {
            mounts(&engine, isolation, if is_full { &counts[..4] } else { &counts[..2] })?;
        }
        println!("\n{} MiB of all processes in the end", pss(std::process::id())? >> 20);
    }
    Ok(())
}

/// Values of these sizes, as inputs and as results.
fn values(engine: &Engine, isolation: Isolation, sizes: &[usize]) -> Result<()> {
    title(
        isolation,
        &["bytes", "text in, ms", "ns per byte", "text out, ms", "ns per byte", "list in, ms"],
    );
    let limits = Limits::default().max_memory_bytes(MEMORY_BYTES).max_value_bytes(VALUE_BYTES);
    let sandbox = Sandbox::builder(engine).limits(limits).build()?;
    for &size in sizes {
        let mut session = sandbox.blocking().session()?;
        let into = median(|| {
            let cell = Cell::new("len(given)").inputs([("given", "x".repeat(size))]);
            timed(&mut session, cell, &int(size)?)
        })?;
        session.run("del given")?;
        session.run(format!("out = 'x' * {size}"))?;
        let out = median(|| {
            let start = Instant::now();
            let ran = session.run("out")?;
            let took = start.elapsed();
            ensure!(matches!(ran.value(), Some(Value::Str(text)) if text.len() == size));
            Ok(took)
        })?;
        session.run("del out")?;
        // Integers take 5 bytes each on their way.
        let items = size / 5;
        let list = median(|| {
            let list: Vec<Value> = std::iter::repeat_n(Value::from(1000), items).collect();
            let cell = Cell::new("len(given)").inputs([("given", Value::List(list))]);
            timed(&mut session, cell, &int(items)?)
        });
        // A list takes many times the bytes in memory that it takes on its way.
        let list = list.map_or_else(|_| "-".to_owned(), ms);
        let bytes = f64::from(u32::try_from(size)?);
        let each = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e9 / bytes);
        row(&[size.to_string(), ms(into), each(into), ms(out), each(out), list]);
    }
    Ok(())
}

/// So many tools of a sandbox, and so many in a module.
fn tools(engine: &Engine, isolation: Isolation, counts: &[usize]) -> Result<()> {
    let columns = [
        "tools",
        "opening, ms",
        "first run, ms",
        "a run, ms",
        "a call, ms",
        "first call in a module, ms",
    ];
    title(isolation, &columns);
    for &count in counts {
        let sandbox = Sandbox::builder(engine);
        let sandbox = made_tools(count).into_iter().fold(sandbox, SandboxBuilder::tool);
        let sandbox = sandbox.build()?;
        drop(until_copy(&sandbox)?);
        let last = format!("tool_{}(7)", count - 1);
        let (mut opening, mut first, mut calls, mut runs) = (vec![], vec![], vec![], vec![]);
        for _ in 0..TIMES {
            let mut session = opened(&sandbox, &mut opening, &mut first)?;
            session.run(last.as_str())?;
            calls.push(timed(&mut session, last.as_str().into(), &Value::Int(7))?);
            runs.push(timed(&mut session, "40+2".into(), &Value::Int(42))?);
        }
        let module =
            ToolModule::new("many", "Many tools.", move || async move { Ok(made_tools(count)) });
        let sandbox = Sandbox::builder(engine).module(module).build()?;
        let mut session = sandbox.blocking().session()?;
        let module = timed(&mut session, format!("many.{last}").as_str().into(), &Value::Int(7))?;
        row(&[
            count.to_string(),
            ms(middle(&mut opening)),
            ms(middle(&mut first)),
            ms(middle(&mut runs)),
            ms(middle(&mut calls)),
            ms(module),
        ]);
    }
    Ok(())
}

fn made_tools(count: usize) -> Vec<Tool> {
    let tool = |number: usize| {
        let spec = ToolSpec::new(format!("tool_{number}")).doc("Returns what it is given.");
        let spec = spec.param(Param::new("value").hint(TypeHint::Int));
        Tool::from_handler(spec, |arguments, _| {
            let Value::Dict(arguments) = arguments else {
                return std::future::ready(Ok(Value::None));
            };
            let value = arguments.into_iter().next().map_or(Value::None, |(_, value)| value);
            std::future::ready(Ok(value))
        })
    };
    (0..count).map(tool).collect()
}

/// So many mounted directories, each with a file.
fn mounts(engine: &Engine, isolation: Isolation, counts: &[usize]) -> Result<()> {
    let columns = [
        "mounts",
        "opening, ms",
        "first run, ms",
        "reading a file in the last mount, ms",
        "listing all mounts, ms",
    ];
    title(isolation, &columns);
    let directory = tempfile::tempdir()?;
    for &count in counts {
        let mut permissions = Permissions::none();
        for number in 0..count {
            let path = directory.path().join(format!("{number}"));
            std::fs::create_dir_all(&path)?;
            std::fs::write(path.join("file"), format!("{number}"))?;
            permissions = permissions.mount(&format!("/data/{number}"), Mount::read_only(path)?)?;
        }
        let sandbox = Sandbox::builder(engine).permissions(permissions).build()?;
        drop(until_copy(&sandbox)?);
        let read = format!("int(open('/data/{}/file').read())", count - 1);
        let list = "import os; len(os.listdir('/data'))";
        let (mut opening, mut first, mut reads, mut lists) = (vec![], vec![], vec![], vec![]);
        for _ in 0..TIMES {
            let mut session = opened(&sandbox, &mut opening, &mut first)?;
            session.run(read.as_str())?;
            reads.push(timed(&mut session, read.as_str().into(), &int(count - 1)?)?);
            lists.push(timed(&mut session, list.into(), &int(count)?)?);
        }
        row(&[
            count.to_string(),
            ms(middle(&mut opening)),
            ms(middle(&mut first)),
            ms(middle(&mut reads)),
            ms(middle(&mut lists)),
        ]);
    }
    Ok(())
}

/// Opens a session. Adds how long that and its first run took.
fn opened(
    sandbox: &Sandbox,
    opening: &mut Vec<Duration>,
    first: &mut Vec<Duration>,
) -> Result<Session> {
    let start = Instant::now();
    let mut session = sandbox.blocking().session()?;
    opening.push(start.elapsed());
    first.push(timed(&mut session, "40+2".into(), &Value::Int(42))?);
    Ok(session)
}

/// Runs a cell and checks its value.
fn timed(session: &mut Session, cell: Cell, expected: &Value) -> Result<Duration> {
    let start = Instant::now();
    let ran: Execution = session.run(cell)?;
    let took = start.elapsed();
    ensure!(ran.value() == Some(expected), "unexpected: {:?}", ran.outcome());
    Ok(took)
}

fn median(mut once: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let mut times = (0..TIMES).map(|_| once()).collect::<Result<Vec<_>>>()?;
    Ok(middle(&mut times))
}

fn middle(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn int(number: usize) -> Result<Value> {
    Ok(Value::Int(i64::try_from(number)?))
}

fn title(isolation: Isolation, columns: &[&str]) {
    println!("\n{isolation}");
    println!("| {} |\n|{}", columns.join(" | "), "-|".repeat(columns.len()));
}

fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

fn ms(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}
