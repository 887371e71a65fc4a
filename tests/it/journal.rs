//! Tests of recorded sessions: what was recorded is not done again, and a session goes on from
//! wherever its process has ended.

use std::path::Path;
use std::sync::{Arc, Mutex};

use isolet::{Execution, Outcome, Replay, Sandbox, Termination, Tool, ToolSpec, Value};

use crate::util::{self, Scratch};

/// The calls of the tools of a sandbox.
#[derive(Clone, Default)]
struct Calls(Arc<Mutex<Vec<String>>>);

impl Calls {
    fn note(&self, call: String) {
        self.0.lock().unwrap().push(call);
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// A sandbox with tools that note each call.
fn sandbox(calls: &Calls) -> Sandbox {
    let tool = |name: &'static str, is_idempotent: bool| {
        let calls = calls.clone();
        let tool = Tool::from_handler(
            ToolSpec::new(name).param(isolet::Param::new("x")),
            move |arguments, _| {
                let x = arguments.get("x").cloned().unwrap_or(Value::None);
                calls.note(format!("{name}({x:?})"));
                async move { Ok(x) }
            },
        );
        if is_idempotent { tool.idempotent() } else { tool }
    };
    util::builder().tool(tool("look", true)).tool(tool("act", false)).build().unwrap()
}

/// What a run has printed, and its outcome.
fn seen(execution: &Execution) -> (String, String, Outcome) {
    (execution.stdout().to_owned(), execution.stderr().to_owned(), execution.outcome().clone())
}

const PROGRAM: &str = "
import asyncio, random, threading, time, os, uuid
from concurrent.futures import ThreadPoolExecutor
print('begins', random.random(), uuid.uuid4(), os.urandom(4).hex())
total = 0
for n in range(5):
    total += look(n)
    print(n, time.time() > 1e9, time.monotonic())
    act(total)
def work(n):
    time.sleep(0.001 * n)
    return look(n * 10)
with ThreadPoolExecutor(3) as pool:
    print(list(pool.map(work, range(4))))
async def later(n):
    await asyncio.sleep(0.002 * (3 - n))
    print('later', n, time.time())
    return await look.aio(n)
async def main():
    results = await asyncio.gather(*(later(n) for n in range(3)))
    try:
        async with asyncio.timeout(0.01): await asyncio.sleep(5)
    except TimeoutError: print('timeout', time.time())
    return results
print(asyncio.run(main()))
start = time.perf_counter()
while time.perf_counter() - start < 0.005: pass
print(time.perf_counter(), act('end'))
total
";

/// Where each record of a journal ends.
fn ends(journal: &[u8]) -> Vec<usize> {
    let mut at = journal.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut ends = Vec::new();
    while at + 8 <= journal.len() {
        at += 8 + u32::from_le_bytes(journal[at..at + 4].try_into().unwrap()) as usize;
        ends.push(at);
    }
    assert_eq!(at, journal.len());
    ends
}

/// Goes on with the beginning of a journal, as if the process had ended there.
async fn go_on_from(
    sandbox: &Sandbox,
    beginning: &[u8],
    to: &Path,
) -> Result<Option<Execution>, isolet::Error> {
    std::fs::write(to, beginning).unwrap();
    let mut session = sandbox.resume(to).await?;
    session.go_on().await
}

#[tokio::test]
async fn a_run_that_is_resumed_has_the_same_output_and_does_nothing_again() {
    let scratch = Scratch::new("journal");
    let calls = Calls::default();
    let sandbox = sandbox(&calls);
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.record(path.clone()).await.unwrap();
    let recorded = session.run(PROGRAM).await.unwrap();
    assert!(matches!(recorded.outcome(), Outcome::Completed(_)), "{recorded:?}");
    drop(session);
    let all = calls.take();
    assert_eq!(all.len(), 5 * 2 + 4 + 3 + 1, "{all:?}");

    let mut resumed = sandbox.resume(path.clone()).await.unwrap();
    let again = resumed.go_on().await.unwrap().unwrap();
    assert_eq!(seen(&again), seen(&recorded));
    assert_eq!(calls.take(), [""; 0]);
    // The session goes on, and what it does now is recorded, too.
    let more = resumed.run("print(total, act(7))").await.unwrap();
    assert_eq!(calls.take(), ["act(Int(7))"]);
    drop(resumed);
    let mut resumed = sandbox.resume(path).await.unwrap();
    let again = resumed.go_on().await.unwrap().unwrap();
    assert_eq!(seen(&again), seen(&more));
    assert_eq!(calls.take(), [""; 0]);
}

#[tokio::test]
async fn a_run_goes_on_from_wherever_its_process_has_ended() {
    let scratch = Scratch::new("journal");
    let calls = Calls::default();
    let sandbox = sandbox(&calls);
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.record(path.clone()).await.unwrap();
    session.run(PROGRAM).await.unwrap();
    drop(session);
    let all = calls.take();
    let journal = std::fs::read(&path).unwrap();
    let ends = ends(&journal);
    let to = scratch.path().join("killed.journal");
    let mut went_on = 0;
    for (nth, end) in ends.iter().enumerate() {
        let execution = match go_on_from(&sandbox, &journal[..*end], &to).await {
            Ok(execution) => execution,
            Err(error) => {
                assert!(error.to_string().contains("before it began"), "{nth}: {error}");
                continue;
            }
        };
        let made = calls.take();
        let Some(execution) = execution else { continue };
        went_on += 1;
        let seen = seen(&execution);
        // A tool that must not be called twice may have been under way.
        let was_interrupted =
            matches!(&seen.2, Outcome::Raised(e) if e.type_name == "CallInterrupted");
        assert!(was_interrupted || matches!(seen.2, Outcome::Completed(_)), "{nth}: {seen:?}");
        // Goes on once more, now to its end.
        let whole = std::fs::read(&to).unwrap();
        let again = go_on_from(&sandbox, &whole, &to).await;
        let again = again.unwrap_or_else(|error| panic!("at record {nth}: {error}")).unwrap();
        assert_eq!(self::seen(&again), seen, "at record {nth}");
        assert_eq!(calls.take(), [""; 0]);
        assert!(made.len() <= all.len(), "{made:?}");
    }
    assert!(went_on > 30, "{went_on}");
}

#[tokio::test]
async fn what_a_journal_has_is_replayed_without_its_tools_and_files() {
    let scratch = Scratch::new("journal");
    let calls = Calls::default();
    let path = scratch.path().join("run.journal");
    let mut session = sandbox(&calls).record(path.clone()).await.unwrap();
    session.run("import random; first = random.random(); look('first')").await.unwrap();
    let recorded = session.run(PROGRAM).await.unwrap();
    drop(session);
    let count = calls.take().len();

    let bare = util::builder().build().unwrap();
    let traced = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&traced);
    let replay = Replay::of(&path).on_trace(move |one| sink.lock().unwrap().push(one.to_string()));
    let mut session = bare.replay(replay).await.unwrap();
    // The runs come one by one.
    session.go_on().await.unwrap().unwrap();
    let again = session.go_on().await.unwrap().unwrap();
    assert!(session.go_on().await.unwrap().is_none() && !session.has_run_to_go_on());
    assert_eq!(seen(&again), seen(&recorded));
    let traced = std::mem::take(&mut *traced.lock().unwrap());
    let of = |what: &str| traced.iter().filter(|one| one.contains(what)).count();
    assert_eq!((of("  call "), of("  answer ")), (count, count), "{traced:#?}");
    assert!(traced[2].ends_with("call 2: look({\"x\":0})"), "{}", traced[2]);
    // What is run then reaches nothing.
    let more = session.run("print(total); act(1)").await.unwrap();
    assert_eq!(more.stdout(), "10\n");
    let Outcome::Raised(refused) = more.outcome() else { panic!("{more:?}") };
    assert_eq!(refused.type_name, "PermissionError");
    assert!(refused.message.contains("the journal ends here"), "{refused}");
    assert_eq!(calls.take(), [""; 0]);
}

#[tokio::test]
async fn a_replay_stops_at_a_call_with_the_variables_as_they_were() {
    let scratch = Scratch::new("journal");
    let calls = Calls::default();
    let path = scratch.path().join("run.journal");
    let mut session = sandbox(&calls).record(path.clone()).await.unwrap();
    let program = "
def agent(steps):
    found = []
    for step in range(steps):
        found.append(look(step))
    return found
agent(300)";
    session.run(program).await.unwrap();
    drop(session);

    let bare = util::builder().build().unwrap();
    let mut session = bare.replay(Replay::of(&path).until_call(212)).await.unwrap();
    let stopped = session.go_on().await.unwrap().unwrap();
    assert!(
        matches!(stopped.outcome(), Outcome::Terminated(Termination::Interrupted)),
        "{stopped:?}"
    );
    let locals = session.bind_locals().await.unwrap().unwrap();
    assert_eq!(locals.function, "agent");
    assert_eq!(
        (locals.line, &*locals.names),
        (5, &["found", "step", "steps"].map(str::to_owned)[..])
    );
    let more = session.run("print(step, len(found), steps)").await.unwrap();
    assert_eq!(more.stdout(), "211 211 300\n", "{more:?}");
}
