//! Helpers of the tests: a shared engine and its sessions.

use std::sync::LazyLock;

use isolet::{
    Cell, Engine, EngineBuilder, Execution, Isolation, Layer, LayerState, Limits, Outcome,
    OutputChunk, PyException, RunEvent, Sandbox, Session, Value,
};

pub(crate) use isolet_test_support::{
    LONGEST, Ran, Scratch, assets_dir, command, root, wheel, wheel_that_needs,
};

static ENGINE: LazyLock<Engine> = LazyLock::new(|| engine_builder().build().unwrap());

/// Begins an engine of the tests' assets, isolation and command.
pub(crate) fn engine_builder() -> EngineBuilder {
    let builder = Engine::builder().assets(assets_dir()).isolation(isolation());
    builder.worker(isolet_test_support::program())
}

/// Where the tests' sessions run, according to the environment variable that the command uses too.
pub(crate) fn isolation() -> Isolation {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    match std::env::var("ISOLET_ISOLATION").as_deref() {
        Ok("process") => Isolation::Process,
        _ => Isolation::Thread,
    }
}

pub(crate) fn engine() -> &'static Engine {
    &ENGINE
}

pub(crate) fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::builder(&ENGINE).limits(limits).build().unwrap()
}

pub(crate) fn builder() -> isolet::SandboxBuilder {
    Sandbox::builder(&ENGINE)
}

pub(crate) async fn session() -> Session {
    sandbox(Limits::default()).session().await.unwrap()
}

/// Runs a cell in a separate session.
pub(crate) async fn run(cell: impl Into<Cell>) -> Execution {
    sandbox(Limits::default()).run(cell).await.unwrap()
}

/// Runs a cell that must complete with a value.
pub(crate) async fn eval(session: &mut Session, cell: impl Into<Cell>) -> Value {
    let execution = session.run(cell).await.unwrap();
    match execution.value() {
        Some(value) => value.clone(),
        None => panic!("there is no value: {execution:?}"),
    }
}

/// Runs a cell that must complete.
pub(crate) async fn exec(session: &mut Session, cell: impl Into<Cell>) -> Execution {
    let execution = session.run(cell).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    execution
}

/// Runs a cell that must raise.
pub(crate) async fn raised(session: &mut Session, cell: impl Into<Cell>) -> PyException {
    let execution = session.run(cell).await.unwrap();
    match execution.exception() {
        Some(exception) => exception.clone(),
        None => panic!("nothing was raised: {execution:?}"),
    }
}

/// Returns the output of an event, which must be output.
pub(crate) fn output(event: RunEvent) -> OutputChunk {
    match event {
        RunEvent::Output(chunk) => chunk,
        other => panic!("this is no output: {other:?}"),
    }
}

/// Returns the number of a worker's process and, if the worker is a copy, the number of its
/// template.
pub(crate) fn processes(session: &Session) -> (u32, Option<u32>) {
    let state = session.isolation().layers().find(|(layer, _)| *layer == Layer::Process);
    let Some((_, LayerState::Enforced(detail))) = state else { panic!("{state:?}") };
    let numbers: Vec<u32> =
        detail.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    (numbers[0], numbers.get(1).copied())
}
