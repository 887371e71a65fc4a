//! Tests of recorded sessions: what was recorded is not done again, and a session goes on from
//! wherever its process has ended.

use std::path::Path;
use std::sync::{Arc, Mutex};

use isolet::{
    Cell, ErrorKind, Execution, Journal, JournalSync, Mount, Outcome, Permissions, Replay, Sandbox,
    Stdin, Termination, Tool, ToolSpec, Value,
};
use isolet_test_support::server::{Response, Server};

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

/// Records a program, and goes on from the beginning of its journal up to each record, as if the
/// process had ended there; then once more from the journal that this leaves. Returns how the first
/// run has ended, and each that went on, with the calls that it made.
async fn killed_everywhere(
    sandbox: &Sandbox,
    program: Cell,
    calls: &Calls,
    scratch: &Scratch,
) -> (Execution, Vec<(Execution, Vec<String>)>) {
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.record(path.clone()).await.unwrap();
    let whole = session.run(program).await.unwrap();
    drop(session);
    calls.take();
    let journal = std::fs::read(&path).unwrap();
    let to = scratch.path().join("killed.journal");
    let mut went_on = Vec::new();
    for (nth, end) in ends(&journal).iter().enumerate() {
        let execution = go_on_from(sandbox, &journal[..*end], &to).await;
        let execution = execution.unwrap_or_else(|error| panic!("at record {nth}: {error}"));
        let made = calls.take();
        let Some(execution) = execution else { continue };
        let left = std::fs::read(&to).unwrap();
        let again = go_on_from(sandbox, &left, &to).await;
        let again = again.unwrap_or_else(|error| panic!("at record {nth}: {error}")).unwrap();
        assert_eq!(seen(&again), seen(&execution), "at record {nth}");
        assert_eq!(calls.take(), [""; 0], "at record {nth}");
        went_on.push((execution, made));
    }
    (whole, went_on)
}

fn was_interrupted(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Raised(error) if error.type_name == "CallInterrupted")
}

#[tokio::test]
async fn a_run_goes_on_from_wherever_its_process_has_ended() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let sandbox = sandbox(&calls);
    let (_, went_on) = killed_everywhere(&sandbox, PROGRAM.into(), &calls, &scratch).await;
    assert!(went_on.len() > 30, "{}", went_on.len());
    let mut interrupted = 0;
    for (execution, made) in &went_on {
        // A tool that must not be called twice may have been under way.
        interrupted += usize::from(was_interrupted(execution));
        assert!(
            was_interrupted(execution) || matches!(execution.outcome(), Outcome::Completed(_)),
            "{execution:?}"
        );
        assert!(made.len() <= 18, "{made:?}");
    }
    assert!((1..=6).contains(&interrupted), "{interrupted}");
}

#[tokio::test]
async fn requests_are_made_again_only_if_they_change_nothing() {
    let server = Server::start(|request| Response::text(&format!("of {}", request.path)));
    let permissions = Permissions::none().allow_net(&server.rule()).unwrap();
    let sandbox = util::builder().permissions(permissions).build().unwrap();
    let program = format!(
        "import urllib.request
def get(path, body=None): return urllib.request.urlopen({:?} + path, body).read().decode()
print(get('/a'))
print(get('/b', b'changes'))
print(get('/c'))",
        server.url("")
    );
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let (whole, went_on) = killed_everywhere(&sandbox, program.into(), &calls, &scratch).await;
    assert_eq!(whole.stdout(), "of /a\nof /b\nof /c\n");
    let mut lost = 0;
    for (execution, _) in &went_on {
        match execution.outcome() {
            Outcome::Completed(_) => assert_eq!(execution.stdout(), whole.stdout()),
            // The request was under way, or the connection on which its response came.
            Outcome::Raised(error) => {
                lost += 1;
                assert!(
                    ["CallInterrupted", "ConnectionResetError", "http.client.IncompleteRead"]
                        .contains(&&*error.type_name),
                    "{error}"
                );
            }
            outcome => panic!("{outcome:?}"),
        }
    }
    assert!(lost >= 1 && lost < went_on.len() / 2, "{lost} of {}", went_on.len());
    let sent = server.requests().iter().filter(|request| request.path == "/b").count();
    // Once when it was recorded, and once from each journal that does not have it.
    let without = went_on
        .iter()
        .filter(|(execution, _)| matches!(execution.outcome(), Outcome::Completed(_)));
    assert!(sent < without.count(), "{sent}");
}

#[tokio::test]
async fn what_a_run_has_read_and_changed_in_an_overlay_is_there_when_it_goes_on() {
    let scratch = Scratch::new("journal");
    let shown = scratch.path().join("shown");
    std::fs::create_dir(&shown).unwrap();
    std::fs::write(shown.join("data"), "lines\n".repeat(5000)).unwrap();
    let mount = Mount::overlay(&shown).unwrap();
    let permissions = Permissions::none().mount("/work", mount).unwrap();
    let sandbox = util::builder().permissions(permissions).build().unwrap();
    let program = Cell::new(
        "import os, sys
print(len(open('/work/data').read()), len(open('/work/data').read()))
log = open('/work/log', 'a')
for n in range(4):
    print(n, file=log, flush=True)
    os.rename('/work/data' if n == 0 else f'/work/data{n - 1}', f'/work/data{n}')
    print(sys.stdin.readline().strip(), sorted(os.listdir('/work')))
log.close()
print(open('/work/log').read().split(), os.stat('/work/data3').st_size)",
    );
    let program = program.stdin(Stdin::from_bytes(*b"one\ntwo\nthree\nfour\n"));
    let calls = Calls::default();
    let (whole, went_on) = killed_everywhere(&sandbox, program, &calls, &scratch).await;
    assert!(whole.stdout().ends_with("['0', '1', '2', '3'] 30000\n"), "{whole:?}");
    assert!(went_on.len() > 10);
    for (execution, _) in &went_on {
        assert_eq!(seen(execution), seen(&whole));
    }
    let journal = std::fs::metadata(scratch.path().join("run.journal")).unwrap().len();
    assert!(journal < 2 * 30_000, "equal bytes are recorded once: {journal}");
}

#[tokio::test]
async fn interrupts_and_alarms_come_where_they_came() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let path = scratch.path().join("run.journal");
    let mut session = util::builder().build().unwrap().record(path.clone()).await.unwrap();
    let handle = session.interrupt_handle();
    let program = "
import signal, time
def rings(*_):
    global rang
    rang = count
count, rang = 0, None
signal.signal(signal.SIGALRM, rings)
signal.setitimer(signal.ITIMER_REAL, 0.05)
while rang is None: count += 1
print('rang at', rang)
try:
    print('waits')
    time.sleep(60)
except KeyboardInterrupt: print('interrupted')
print('computes')
while True: count += 1
";
    let mut run = session.run_streaming(program);
    let mut output = run.take_output().unwrap();
    let interrupts = std::thread::spawn(move || {
        let mut text = String::new();
        while let Some(event) = isolet::blocking::block_on(output.next()) {
            let isolet::RunEvent::Output(chunk) = event else { continue };
            text.push_str(&String::from_utf8_lossy(&chunk.bytes));
            if text.ends_with("waits\n") || text.ends_with("computes\n") {
                handle.interrupt();
            }
        }
        text
    });
    let recorded = run.finish().await.unwrap();
    let text = interrupts.join().unwrap();
    assert!(text.ends_with("interrupted\ncomputes\n"), "{text}");
    assert_eq!(recorded.outcome(), &Outcome::Terminated(Termination::Interrupted));
    let count = session.get("count").await.unwrap();
    drop(session);

    let mut resumed = util::builder().build().unwrap().resume(path).await.unwrap();
    let again = resumed.go_on().await.unwrap().unwrap();
    assert_eq!(again.outcome(), recorded.outcome());
    assert_eq!(again.stdout(), text);
    assert_eq!(resumed.get("count").await.unwrap(), count);
    assert_eq!(calls.take(), [""; 0]);
}

#[tokio::test]
async fn a_recorded_session_whose_interpreter_ends_goes_on_from_where_its_journal_began() {
    let scratch = Scratch::new("journal");
    let sandbox = util::builder().checkpoint(true).build().unwrap();
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.session().await.unwrap();
    session.run("words = ['before']").await.unwrap();
    session.record(path.clone()).await.unwrap();
    let refused = session.checkpoint().await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.session_survives()),
        (ErrorKind::Config, true),
        "{refused}"
    );
    session.run("words.append('recorded')").await.unwrap();
    let ended = session.run("import os; os._exit(3)").await.unwrap();
    assert_eq!(ended.outcome(), &Outcome::Exited(3));
    assert_eq!(ended.restored().unwrap().lost_runs, 2);
    assert_eq!(session.run("print(words)").await.unwrap().stdout(), "['before']\n");
    session.checkpoint().await.unwrap();
    drop(session);

    let mut resumed = sandbox.resume(path).await.unwrap();
    let again = resumed.go_on().await.unwrap().unwrap();
    assert_eq!((again.outcome(), again.session_alive()), (ended.outcome(), true));
}

#[tokio::test]
async fn a_session_is_recorded_from_its_middle_on() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let sandbox = sandbox(&calls);
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.session().await.unwrap();
    session.run("import re; found = [look('before')]; pattern = re.compile('a+')").await.unwrap();
    session.record(path.clone()).await.unwrap();
    assert_eq!(session.record(path.clone()).await.unwrap_err().kind(), ErrorKind::Config);
    session.set("given", 7).await.unwrap();
    let program = "found.append(look(given)); print(found, pattern.findall('aab'))";
    let recorded = session.run(program).await.unwrap();
    assert_eq!(recorded.stdout(), "['before', 7] ['aa']\n");
    assert_eq!(
        session.save(scratch.path().join("saved")).await.unwrap_err().kind(),
        ErrorKind::Config
    );
    session.end_recording();
    session.run("act('not recorded')").await.unwrap();
    drop(session);
    calls.take();

    let mut resumed = sandbox.resume(path).await.unwrap();
    let again = resumed.run("1").await.unwrap_err();
    assert!(again.kind() == ErrorKind::Busy && again.session_survives(), "{again}");
    assert_eq!(seen(&resumed.go_on().await.unwrap().unwrap()), seen(&recorded));
    assert!(resumed.go_on().await.unwrap().is_none());
    let more = resumed.run("print(found, act('more'))").await.unwrap();
    assert_eq!(more.stdout(), "['before', 7] more\n");
    assert_eq!(calls.take(), ["act(Str(\"more\"))"]);
}

#[tokio::test]
async fn a_journal_grants_nothing_to_the_sandbox_that_goes_on_with_it() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let server = Server::with_text("the secret");
    let allowed = Permissions::none().allow_net(&server.rule()).unwrap().env("TOKEN", "canary");
    let path = scratch.path().join("run.journal");
    let sandbox = util::builder().permissions(allowed).build().unwrap();
    let mut session = sandbox.record(path.clone()).await.unwrap();
    let program = format!(
        "import urllib.request; print(urllib.request.urlopen({:?}).read())",
        server.url("/")
    );
    session.run(program).await.unwrap();
    drop(session);
    let asked = server.requests().len();

    let without = util::builder().build().unwrap();
    let refused = without.resume(path.clone()).await.unwrap_err().to_string();
    assert!(refused.contains("other environment variables"), "{refused}");
    assert!(!refused.contains("canary"));
    let permissions = Permissions::none().env("TOKEN", "canary");
    let offline = util::builder().permissions(permissions).build().unwrap();
    let mut session = offline.resume(path).await.unwrap();
    let refused = session.go_on().await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Journal);
    assert!(refused.to_string().contains("the sandbox does not allow"), "{refused}");
    assert!(!format!("{refused:?}").contains("the secret"));
    assert_eq!(server.requests().len(), asked);
    assert_eq!(calls.take(), [""; 0]);
}

#[tokio::test]
async fn a_program_that_does_something_else_is_found_at_the_request_where_it_does() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let sandbox = sandbox(&calls);
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.record(path.clone()).await.unwrap();
    session.run("look(1); look(2); look(3)").await.unwrap();
    drop(session);
    calls.take();
    // As if another version of the program had been recorded.
    let mut journal = std::fs::read(&path).unwrap();
    let at = journal.windows(7).position(|part| part == b"look(2)").unwrap();
    journal[at + 5] = b'9';
    let start = ends(&journal).into_iter().filter(|end| *end <= at).max().unwrap();
    let length = u32::from_le_bytes(journal[start..start + 4].try_into().unwrap()) as usize;
    let checksum = crc32fast::hash(&journal[start + 8..start + 8 + length]);
    journal[start + 4..start + 8].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, &journal).unwrap();
    let mut session = sandbox.resume(path.clone()).await.unwrap();
    let diverged = session.go_on().await.unwrap_err();
    assert_eq!(diverged.kind(), ErrorKind::Journal);
    assert!(diverged.to_string().contains("at its request 2, it calls look()"), "{diverged}");
    assert!(calls.take().len() <= 2, "only calls behind the end of the journal are made");

    // Damage in the middle is refused, not taken for the end.
    journal[start + 20] ^= 1;
    std::fs::write(&path, &journal).unwrap();
    let damaged = sandbox.resume(path).await.unwrap_err();
    assert!(damaged.to_string().contains(&format!("damaged at byte {start}")), "{damaged}");
}

#[tokio::test]
async fn a_run_ends_at_the_limit_of_its_journal_and_goes_on_with_a_larger_one() {
    let (scratch, calls) = (Scratch::new("journal"), Calls::default());
    let sandbox = sandbox(&calls);
    let path = scratch.path().join("run.journal");
    let journal = Journal::at(&path).max_bytes(20_000).sync(JournalSync::Always);
    let mut session = sandbox.record(journal).await.unwrap();
    let program = "for n in range(1000): look(n)\nprint('all')";
    let full = session.run(program).await.unwrap_err();
    assert_eq!(full.kind(), ErrorKind::Journal);
    assert!(full.to_string().contains("the limit is 20000 bytes"), "{full}");
    drop(session);
    let made = calls.take();
    let mut resumed = sandbox.resume(path).await.unwrap();
    let whole = resumed.go_on().await.unwrap().unwrap();
    assert_eq!(whole.stdout(), "all\n");
    let more = calls.take();
    // One may have been under way.
    assert!((1000..=1001).contains(&(made.len() + more.len())), "{} {}", made.len(), more.len());
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

#[tokio::test]
async fn a_journal_is_not_made_through_what_a_guest_has_put_on_the_path() {
    let scratch = Scratch::new("journal");
    let (mount, other) = (scratch.path().join("m"), scratch.path().join("other"));
    std::fs::create_dir(&mount).unwrap();
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&other, mount.join("out")).unwrap();
    let shown = Mount::read_write(&mount).unwrap();
    let permissions = Permissions::none().mount("/m", shown).unwrap();
    let sandbox = util::builder().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let link = session.run("import os; os.symlink('out/run.journal', '/m/run.journal')").await;
    assert!(matches!(link.unwrap().outcome(), Outcome::Completed(_)));
    for way in ["out/run.journal", "run.journal"] {
        let refused = session.record(mount.join(way)).await.unwrap_err();
        assert_eq!(
            (refused.kind(), refused.session_survives()),
            (ErrorKind::Journal, true),
            "{way}"
        );
        assert!(sandbox.record(mount.join(way)).await.is_err(), "{way}");
    }
    assert_eq!(std::fs::read_dir(&other).unwrap().count(), 0);
}
