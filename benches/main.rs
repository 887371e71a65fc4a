//! Benchmarks of isolet with criterion: `cargo bench -p isolet-cli --bench main -- [FILTER]`. For
//! a comparison with its peers: `cargo xtask bench`.
//!
//! The groups are `start`, `run`, `value`, `tool` and `output`, for both isolations, and `policy`,
//! which needs neither.

#![expect(clippy::unwrap_used, reason = "a benchmark that fails has nothing to tell")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use isolet::blocking::Session;
use isolet::{Engine, Isolation, Param, Permissions, Sandbox, Tool, ToolSpec, Value};

const MIB: usize = 1 << 20;
const CALLS: u32 = 1000;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let engine = Engine::builder()
            .worker(env!("CARGO_BIN_EXE_isolet"))
            .isolation(isolation)
            .build()
            .unwrap();
        start(&mut criterion, &engine, isolation);
        run(&mut criterion, &engine, isolation);
        value(&mut criterion, &engine, isolation);
        tool(&mut criterion, &engine, isolation);
        output(&mut criterion, &engine, isolation);
    }
    policy(&mut criterion);
    criterion.final_summary();
}

/// Measures one more session in a running process, without its end.
fn start(criterion: &mut Criterion, engine: &Engine, isolation: Isolation) {
    let sandbox = Sandbox::builder(engine).build().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut group = criterion.benchmark_group("start");
    group.sample_size(10);
    group.bench_function(format!("first result/{isolation}"), |bencher| {
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                let start = Instant::now();
                let mut session = sandbox.blocking().session().unwrap();
                session.run("40+2").unwrap();
                took += start.elapsed();
            }
            took
        });
    });
    let mut prewarmed = false;
    group.bench_function(format!("pool/{isolation}"), |bencher| {
        engine.prewarm(4).unwrap();
        prewarmed = true;
        bencher.iter_custom(|times| {
            let mut took = Duration::ZERO;
            for _ in 0..times {
                runtime.block_on(engine.prewarmed()).unwrap();
                let start = Instant::now();
                let session = runtime.block_on(sandbox.session()).unwrap();
                took += start.elapsed();
                drop(session);
            }
            took
        });
    });
    if prewarmed {
        // Interpreters that are still booting would compete with the next measurement.
        runtime.block_on(engine.prewarmed()).unwrap();
        engine.prewarm(0).unwrap();
    }
}

fn run(criterion: &mut Criterion, engine: &Engine, isolation: Isolation) {
    let mut session = Sandbox::builder(engine).build().unwrap().blocking().session().unwrap();
    let mut group = criterion.benchmark_group("run");
    let loops = "total = 0\nfor i in range(100_000): total += i\ntotal";
    for (name, code) in [("40+2", "40+2"), ("100000 steps", loops), ("exception", "1/0")] {
        bench_run(&mut group, name, isolation, &mut session, code);
    }
    drop(session);
    // The caller sleeps in its runtime and is woken for the result.
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let sandbox = Sandbox::builder(engine).build().unwrap();
    let mut session = runtime.block_on(sandbox.session()).unwrap();
    group.bench_function(format!("40+2 awaited/{isolation}"), |bencher| {
        bencher.iter(|| runtime.block_on(session.run("40+2")).unwrap());
    });
}

fn value(criterion: &mut Criterion, engine: &Engine, isolation: Isolation) {
    let mut session = Sandbox::builder(engine).build().unwrap().blocking().session().unwrap();
    let mut group = criterion.benchmark_group("value");
    let ints = Value::List((0..10_000).map(Value::Int).collect());
    for (name, value) in [("1 MiB str", Value::Str("x".repeat(MIB))), ("10000 ints", ints)] {
        group.bench_function(format!("set {name}/{isolation}"), |bencher| {
            let set = |value| session.set("given", value).unwrap();
            bencher.iter_batched(|| value.clone(), set, BatchSize::PerIteration);
        });
        session.set("given", value).unwrap();
        group.bench_function(format!("get {name}/{isolation}"), |bencher| {
            bencher.iter(|| session.get("given").unwrap());
        });
    }
}

fn tool(criterion: &mut Criterion, engine: &Engine, isolation: Isolation) {
    let spec = ToolSpec::new("f").param(Param::new("x"));
    let echo = Tool::from_handler(spec, |_, _| std::future::ready(Ok(Value::Int(1))));
    let sandbox = Sandbox::builder(engine).tool(echo).build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    let mut group = criterion.benchmark_group("tool");
    group.sample_size(10).throughput(Throughput::Elements(CALLS.into()));
    let plain = format!("for i in range({CALLS}): f(i)");
    bench_run(&mut group, "plain calls", isolation, &mut session, &plain);
    bench_run(&mut group, "map", isolation, &mut session, &format!("len(f.map(range({CALLS})))"));
}

fn output(criterion: &mut Criterion, engine: &Engine, isolation: Isolation) {
    let mut session = Sandbox::builder(engine).build().unwrap().blocking().session().unwrap();
    let mut group = criterion.benchmark_group("output");
    // At most as much as a run may print by default.
    let lines = MIB / 100;
    group.sample_size(10).throughput(Throughput::Bytes((lines * 100) as u64));
    let code = format!("for _ in range({lines}): print('x' * 99)");
    bench_run(&mut group, "1 MiB in lines", isolation, &mut session, &code);
}

fn bench_run(
    group: &mut BenchmarkGroup<'_, WallTime>,
    name: &str,
    isolation: Isolation,
    session: &mut Session,
    code: &str,
) {
    group.bench_function(format!("{name}/{isolation}"), |bencher| {
        bencher.iter(|| session.run(code).unwrap());
    });
}

/// Measures the host without a guest. A positive decision about a URL is not reachable through the
/// public API.
fn policy(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("policy");
    for rule in ["api.example.com:443", "*.example.com", "10.1.0.0/16"] {
        group.bench_function(format!("parse {rule}"), |bencher| {
            bencher.iter(|| Permissions::none().allow_net(black_box(rule)).unwrap());
        });
    }
}
