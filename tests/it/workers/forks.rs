//! Tests of forked sessions: a copy has what the session had, and the two are apart.

use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use isolet::{
    Access, AuditEvent, Cell, ErrorKind, Isolation, Limits, Mount, Outcome, Param, Permissions,
    Sandbox, SandboxBuilder, Session, SessionState, Tool, ToolSpec, Value, WorkerStart,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use crate::corpus::runs_alike;
use crate::util::{LONGEST, Scratch, builder, engine_builder, eval, exec, processes, raised};
use isolet_test_support::server::{Response, Server};

fn forkable() -> SandboxBuilder {
    builder().isolation(Isolation::Process).forkable(20)
}

async fn session() -> Session {
    forkable().build().unwrap().session().await.unwrap()
}

#[tokio::test]
async fn a_copy_has_the_shell_s_directory_and_environment_and_one_of_its_own() {
    let mut session = session().await;
    session.shell("mkdir -p /tmp/a; cd /tmp/a; export A=1").await.unwrap();
    let mut copy = session.fork().await.unwrap();
    copy.shell("cd /; A=2").await.unwrap();
    assert_eq!(session.shell("pwd; echo $A").await.unwrap().stdout(), "/tmp/a\n1\n");
    assert_eq!(copy.shell("pwd; echo $A").await.unwrap().stdout(), "/\n2\n");
}

#[tokio::test]
async fn a_copy_has_what_the_session_had_and_both_go_on_apart() {
    let mut session = session().await;
    let code = "
import js, json, os, sys
class Point:
    def __init__(self, x): self.x = x
p = Point(1)
words = ['a']
made = js.Object.new()
made.name = 'first'
os.makedirs('/tmp/work')
os.chdir('/tmp/work')
with open('note', 'w') as f: f.write('before')
opened = open('note')
opened.read(3)
def numbers():
    yield from range(10)
n = numbers(); next(n)
";
    exec(&mut session, code).await;
    let mut copy = session.fork().await.unwrap();
    let change = "
p.x = 2; words.append('b'); made.name = 'second'
with open('note', 'a') as f: f.write(' and after')
rest = next(n), opened.read(), os.getcwd(), 'json' in sys.modules
";
    exec(&mut copy, change).await;
    let state = "[p.x, words, made.name, open('/tmp/work/note').read(), next(n)]";
    let changed = eval(&mut copy, state).await;
    assert_eq!(changed.to_string(), "[2, ['a', 'b'], 'second', 'before and after', 2]");
    assert_eq!(
        eval(&mut copy, "list(rest)").await.to_string(),
        "[1, 'ore and after', '/tmp/work', True]"
    );
    let unchanged = eval(&mut session, state).await;
    assert_eq!(unchanged.to_string(), "[1, ['a'], 'first', 'before', 1]");
}

#[tokio::test]
async fn a_copy_of_a_copy_goes_on_when_those_before_it_are_gone() {
    let mut session = session().await;
    exec(&mut session, "path = []").await;
    for step in 0..8 {
        let mut copy = session.fork().await.unwrap();
        exec(&mut copy, format!("path.append({step})")).await;
        session = copy;
    }
    assert_eq!(eval(&mut session, "path").await.to_string(), "[0, 1, 2, 3, 4, 5, 6, 7]");
}

#[tokio::test]
async fn descriptors_that_others_have_sent_and_nobody_has_received_prevent_no_forkable_session() {
    let (sender, _receiver) = std::os::unix::net::UnixStream::pair().unwrap();
    // More of them than a worker may have open.
    for _ in 0..100 {
        let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [sender.as_fd()];
        assert!(ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)));
        let byte = [std::io::IoSlice::new(&[0])];
        let sent = sendmsg(&sender, &byte, &mut ancillary, SendFlags::DONTWAIT).unwrap();
        assert_eq!(sent, 1);
    }
    let mut session = session().await;
    let mut copy = session.fork().await.unwrap();
    assert_eq!(eval(&mut copy, "1 + 1").await, Value::Int(2));
}

#[tokio::test]
async fn many_copies_are_made_at_once() {
    let mut session = session().await;
    exec(&mut session, "x = 10").await;
    let mut copies = session.fork_many(5).await.unwrap();
    for (at, copy) in copies.iter_mut().enumerate() {
        assert_eq!(eval(copy, format!("x + {at}")).await.to_string(), (10 + at).to_string());
    }
}

#[tokio::test]
async fn random_numbers_differ_between_a_session_and_its_copies() {
    let mut session = session().await;
    exec(&mut session, "import random, secrets, uuid, js, tempfile; random.seed(1)").await;
    let drawn = "[random.getrandbits(64), secrets.token_hex(), str(uuid.uuid4()), js.Math.random(),
        tempfile.mktemp()]";
    let [mut first, mut second] =
        <[Session; 2]>::try_from(session.fork_many(2).await.unwrap()).unwrap();
    let mut all = Vec::new();
    for session in [&mut session, &mut first, &mut second] {
        let Value::List(drawn) = eval(session, drawn).await else { panic!("{drawn}") };
        all.push(drawn);
    }
    let [first, second, third] = &all[..] else { panic!("{all:?}") };
    for ((first, second), third) in first.iter().zip(second).zip(third) {
        assert!(first != second && second != third && first != third, "{first} again: {all:?}");
    }
}

#[tokio::test]
async fn functions_that_are_registered_for_forks_run_on_their_side() {
    let mut session = session().await;
    let code = "
import os
seen = []
for name in 'ab':
    os.register_at_fork(
        before=lambda name=name: seen.append('before ' + name),
        after_in_parent=lambda name=name: seen.append('parent ' + name),
        after_in_child=lambda name=name: seen.append('child ' + name))
def fails(): raise ValueError('not this time')
os.register_at_fork(after_in_child=fails)
";
    exec(&mut session, code).await;
    let mut copy = session.fork().await.unwrap();
    let expected = "['before b', 'before a', 'parent a', 'parent b']";
    assert_eq!(eval(&mut session, "seen").await.to_string(), expected);
    let expected = "['before b', 'before a', 'child a', 'child b']";
    assert_eq!(eval(&mut copy, "seen").await.to_string(), expected);
}

#[tokio::test]
async fn tasks_threads_and_timers_go_on_in_both() {
    let mut session = session().await;
    let code = "
import asyncio, threading
async def later():
    await asyncio.sleep(0.02)
    return 'slept'
task = asyncio.ensure_future(later())
go = threading.Event()
got = []
thread = threading.Thread(target=lambda: (go.wait(), got.append('went')))
thread.start()
";
    exec(&mut session, code).await;
    let mut copy = session.fork().await.unwrap();
    for session in [&mut copy, &mut session] {
        exec(session, "slept = await task; go.set(); thread.join()").await;
        assert_eq!(eval(session, "[slept, got]").await.to_string(), "['slept', ['went']]");
    }
}

#[tokio::test]
async fn tools_and_submissions_are_there_in_a_copy_and_their_counts_start_anew() {
    let called = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&called);
    let tool = Tool::from_handler(ToolSpec::new("note"), move |_, context| {
        seen.lock().unwrap().push(context.session().id());
        async { Ok(Value::None) }
    });
    let sandbox = forkable().tool(tool.max_calls(1)).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let later = Tool::from_handler(ToolSpec::new("later"), |_, _| async { Ok(Value::Int(7)) });
    session.register(later).await.unwrap();
    session.set_submit([Param::new("answer")]).await.unwrap();
    exec(&mut session, "note()").await;
    let mut copy = session.fork().await.unwrap();
    exec(&mut copy, "note()").await;
    assert_eq!(eval(&mut copy, "later()").await, Value::Int(7));
    let submitted = copy.run("SUBMIT(answer=3)").await.unwrap();
    assert_eq!(
        format!("{:?}", submitted.outcome()),
        "Submitted(Dict([(Str(\"answer\"), Int(3))]))"
    );
    assert_eq!(raised(&mut session, "note()").await.type_name, "RuntimeError");
    let expected = [session.handle().id(), copy.handle().id()];
    assert_eq!(*called.lock().unwrap(), expected);
}

#[tokio::test]
async fn overlays_and_open_files_are_apart_and_quotas_count_on() {
    let host = Scratch::new("fork-overlay");
    fs::write(host.path().join("there"), "from the host").unwrap();
    let mount = Mount::overlay(host.path()).unwrap().quota_bytes(100);
    let permissions = Permissions::none().mount("/data", mount).unwrap();
    let sandbox = forkable().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import os
with open('/data/new', 'w') as f: f.write('n' * 40)
kept = open('/data/new', 'r+')
read = open('/data/there')
read.read(5)
gone = open('/data/gone', 'w+')
gone.write('still here'); gone.flush()
os.remove('/data/gone')
";
    exec(&mut session, code).await;
    let mut copy = session.fork().await.unwrap();
    let change = "
kept.write('copy'); kept.flush()
gone.seek(0)
[open('/data/new').read(5), read.read(), gone.read(), os.stat('/data/new').st_ino]
";
    let seen = eval(&mut copy, change).await;
    let inode = eval(&mut session, "os.stat('/data/new').st_ino").await;
    assert_eq!(seen.to_string(), format!("['copyn', 'the host', 'still here', {inode}]"));
    let unchanged = eval(&mut session, "[open('/data/new').read(5), read.read()]").await;
    assert_eq!(unchanged.to_string(), "['nnnnn', 'the host']");
    for session in [&mut session, &mut copy] {
        let full = "
with open('/data/more', 'w') as f: f.write('m' * 45)
open('/data/last', 'wb', buffering=0).write(b'l' * 20)
";
        let error = raised(session, full).await;
        assert!(error.message.contains("Quota exceeded"), "{error:?}");
    }
    let new = copy.files().changes("/data").unwrap().into_iter().map(|change| change.path);
    assert!(new.eq(["/data/last", "/data/more", "/data/new"]));
    assert_eq!(fs::read_dir(host.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn what_waits_for_the_host_fails_in_a_copy_and_does_not_hang() {
    let server = Server::start(|_| Response::text(&"body".repeat(100_000)));
    let permissions = Permissions::none().allow_net(&server.rule()).unwrap();
    let sandbox = forkable().permissions(permissions).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = format!(
        "
import urllib.request
response = urllib.request.urlopen('{}')
response.read(4)
",
        server.url("/")
    );
    exec(&mut session, Cell::new(code)).await;
    let mut copy = session.fork().await.unwrap();
    let error = raised(&mut copy, "response.read()").await;
    assert!(error.type_name.contains("Error"), "{error:?}");
    let again = format!("len(urllib.request.urlopen('{}').read())", server.url("/"));
    assert_eq!(eval(&mut copy, again).await, Value::Int(400_000));
}

#[tokio::test]
async fn limits_and_interrupts_reach_a_copy_and_leave_the_session_alone() {
    let limits = Limits::default().max_run_time(Duration::from_millis(300));
    let sandbox = forkable().limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "x = 1").await;
    let mut copy = session.fork().await.unwrap();
    let stopped = copy.run("while True: x += 1").await.unwrap();
    assert!(
        matches!(stopped.outcome(), Outcome::Terminated(_)) && stopped.session_alive(),
        "{stopped:?}"
    );
    assert_eq!(eval(&mut copy, "x > 1").await, Value::Bool(true));
    let killed = copy
        .run(
            "
while True:
    try:
        while True: pass
    except BaseException: pass",
        )
        .await
        .unwrap();
    assert!(!killed.session_alive(), "{killed:?}");
    assert_eq!(copy.state(), SessionState::Terminated);
    assert_eq!(eval(&mut session, "x").await, Value::Int(1));
    exec(&mut session.fork().await.unwrap(), "x").await;
}

#[tokio::test]
async fn a_session_is_forked_only_between_runs() {
    let mut session = session().await;
    let handle = session.handle();
    let mut run = Box::pin(handle.run("import time; time.sleep(60)"));
    // Polled once, the run has begun.
    assert!(futures_util::poll!(&mut run).is_pending());
    let error = session.fork().await.unwrap_err();
    assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Busy, true), "{error}");
}

#[tokio::test]
async fn only_what_was_built_for_it_can_be_forked() {
    let error = forkable().isolation(Isolation::Thread).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("isolation is `thread`"), "{error}");
    let mut other = builder().build().unwrap().session().await.unwrap();
    let error = other.fork().await.unwrap_err();
    assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Config, true), "{error}");
    exec(&mut other, "1").await;
}

#[tokio::test]
async fn there_are_no_more_copies_at_once_than_allowed() {
    let sandbox = forkable().forkable(2).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let first = session.fork().await.unwrap();
    let mut second = session.fork().await.unwrap();
    for session in [&mut session, &mut second] {
        let error = session.fork().await.unwrap_err();
        assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Limit, true));
        assert!(error.to_string().contains("limit 2, needed 3"), "{error}");
    }
    drop(first);
    second.fork().await.unwrap();
    let engine = engine_builder().max_sessions(2).build().unwrap();
    let sandbox = Sandbox::builder(&engine).isolation(Isolation::Process).forkable(9);
    let mut session = sandbox.build().unwrap().session().await.unwrap();
    let _copy = session.fork().await.unwrap();
    assert_eq!(session.fork().await.unwrap_err().kind(), ErrorKind::Limit);
}

#[tokio::test]
async fn the_audit_log_says_who_descends_from_whom() {
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&events);
    let sandbox = forkable().on_audit(move |event: &AuditEvent| {
        sink.lock().unwrap().push((event.session, event.access.clone()));
    });
    let mut session = sandbox.build().unwrap().session().await.unwrap();
    let mut copy = session.fork().await.unwrap();
    let deeper = copy.fork().await.unwrap();
    let ids = [&session, &copy, &deeper].map(|session| session.handle().id());
    let expected =
        [(ids[0], Access::Fork { copy: ids[1] }), (ids[1], Access::Fork { copy: ids[2] })];
    assert_eq!(*events.lock().unwrap(), expected);
}

#[tokio::test]
async fn forks_leave_no_process_behind() {
    let mut session = session().await;
    let mut numbers = Vec::new();
    for _ in 0..30 {
        let mut copy = session.fork().await.unwrap();
        exec(&mut copy, "x = 1").await;
        numbers.push(processes(&copy).0);
    }
    let gone = || numbers.iter().all(|number| !fs::exists(format!("/proc/{number}")).unwrap());
    let start = std::time::Instant::now();
    while !gone() {
        assert!(start.elapsed() < LONGEST, "a copy is still there");
        tokio::task::yield_now().await;
    }
}

/// Numbers that look random and are the same each time.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % limit
    }

    /// Returns a cell that uses and changes what earlier cells have made.
    fn cell(&mut self) -> String {
        let [a, b, i, j] = [9, 7, 3, 3].map(|limit| self.below(limit));
        match self.below(14) {
            0 => format!("v{i} = [{a}, {b}] * {}", j + 1),
            1 => format!("v{i}.append(len(v{j})); print(v{i})"),
            2 => format!("d = dict(zip('abc', v{j})); print(sorted(d.items()))"),
            3 => format!("def f{i}(x, seen=[]):\n    seen.append(x)\n    return sum(seen) + {a}"),
            4 => format!("print(f{j}({b}))"),
            5 => format!("g = (n * {a} for n in range({b})); print(next(g, None))"),
            6 => "print(next(g, 'over'))".to_owned(),
            7 => format!("c.step({a}); print(c.count, c.names)"),
            8 => format!("with open('/tmp/f{i}', 'a') as f: print(f.write(str(v{j})))"),
            9 => format!(
                "import os; print(os.path.exists('/tmp/f{i}') and open('/tmp/f{i}').read())"
            ),
            10 => format!("import json; print(json.dumps({{'v': v{j}, 'c': c.count}}))"),
            11 => format!("it = itertools.cycle(v{i}); print(next(it), next(it))"),
            12 => format!("try: v{j}[{a}9]\nexcept IndexError as error: print(error)"),
            _ => format!("print(next(it), await asyncio.sleep(0, {b}), raised{i})"),
        }
    }
}

const FIRST: &str = "
import asyncio, itertools
v0, v1, v2 = [1], [2, 3], [4, 5, 6]
f0 = f1 = f2 = lambda x: -x
g = iter(range(5))
it = itertools.count()
class Counter:
    count, names = 0, []
    def step(self, n):
        self.count += n
        self.names.append(str(n))
c = Counter()
raised0 = raised1 = raised2 = None
";

/// Runs cells and returns what they print and how they end.
async fn printed(session: &mut Session, cells: &[String]) -> Vec<String> {
    let mut all = Vec::new();
    for cell in cells {
        let ran = session.run(cell.as_str()).await.unwrap();
        let error = ran.exception().map(|error| format!("{}: {}", error.type_name, error.message));
        all.push(format!("{}{}", ran.stdout(), error.unwrap_or_default()));
    }
    all
}

/// Each quarter is a test of its own, which is short enough beside others.
mod random_programs_go_on_in_a_copy_and_restored_as_they_do_without_either {
    use super::go_on_alike_each;

    #[tokio::test]
    async fn first_quarter() {
        Box::pin(go_on_alike_each(0)).await;
    }

    #[tokio::test]
    async fn second_quarter() {
        Box::pin(go_on_alike_each(1)).await;
    }

    #[tokio::test]
    async fn third_quarter() {
        Box::pin(go_on_alike_each(2)).await;
    }

    #[tokio::test]
    async fn last_quarter() {
        Box::pin(go_on_alike_each(3)).await;
    }
}

/// How many random programs each test runs. `ISOLET_RANDOM_PROGRAMS` has it run more.
const PROGRAMS: u64 = 125;

/// Runs every fourth random program, some at the same time: most of the time goes to waits for
/// workers.
#[expect(clippy::disallowed_methods, reason = "the variable is one of the tests' own")]
async fn go_on_alike_each(first: u64) {
    let asked = std::env::var("ISOLET_RANDOM_PROGRAMS");
    let number = asked.map_or(PROGRAMS, |number| number.parse().unwrap());
    let sandbox = forkable().build().unwrap();
    let dir = Scratch::new("random-programs");
    let go_on = async |part: u64| {
        let file = dir.path().join(part.to_string());
        for turn in (part..number).step_by(4) {
            go_on_alike(&sandbox, &file, Numbers(first + 4 * turn)).await;
        }
    };
    tokio::join!(go_on(0), go_on(1), go_on(2), go_on(3));
}

/// Runs a random program in one session, and in one that is copied and saved on the way.
async fn go_on_alike(sandbox: &Sandbox, file: &Path, mut numbers: Numbers) {
    let mut cells = vec![FIRST.to_owned()];
    for _ in 0..12 {
        cells.push(numbers.cell());
    }
    let cut = usize::try_from(numbers.below(12)).unwrap() + 1;
    let mut whole = sandbox.session().await.unwrap();
    let expected = printed(&mut whole, &cells).await;
    let mut session = sandbox.session().await.unwrap();
    let (before, after) = cells.split_at(cut);
    let mut first = printed(&mut session, before).await;
    let mut copy = session.fork().await.unwrap();
    session.save(file).await.unwrap();
    let mut restored = sandbox.restore(file).await.unwrap();
    let (in_copy, on) = (printed(&mut copy, after).await, printed(&mut session, after).await);
    assert_eq!(in_copy, on, "{cells:#?}");
    assert_eq!(printed(&mut restored, after).await, on, "{cells:#?}");
    first.extend(in_copy);
    assert_eq!(first, expected, "cut at {cut}: {cells:#?}");
}

#[tokio::test]
async fn the_corpus_runs_in_a_copy_of_a_copy_as_in_a_fresh_session() {
    let sandbox = forkable().build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "x = 1").await;
    let mut copy = session.fork().await.unwrap();
    runs_alike(&sandbox, async || copy.fork().await.unwrap()).await;
}

#[tokio::test]
async fn sessions_that_are_kept_ready_or_start_anew_can_be_forked() {
    let ready = forkable().build().unwrap();
    ready.prewarm(1).unwrap();
    ready.prewarmed().await.unwrap();
    let engine = engine_builder().worker_start(WorkerStart::Fresh).build().unwrap();
    let fresh = Sandbox::builder(&engine).isolation(Isolation::Process).forkable(3).build();
    for sandbox in [ready, fresh.unwrap()] {
        let mut session = sandbox.session().await.unwrap();
        exec(&mut session, "x = 1").await;
        let mut copy = session.fork().await.unwrap();
        drop(session);
        assert_eq!(eval(&mut copy, "x").await, Value::Int(1));
        copy.reset().await.unwrap();
        assert_eq!(raised(&mut copy, "x").await.type_name, "NameError");
        exec(&mut copy.fork().await.unwrap(), "1").await;
    }
}

#[tokio::test]
async fn a_function_for_forks_that_does_not_end_is_interrupted_and_no_copy_is_left() {
    let limits = Limits::default().max_run_time(Duration::from_millis(300));
    let sandbox = forkable().limits(limits).build().unwrap();
    for moment in ["before", "after_in_parent", "after_in_child"] {
        let mut session = sandbox.session().await.unwrap();
        let code = format!(
            "import os
def loop():
    while turns: pass
turns = True
os.register_at_fork({moment}=loop)"
        );
        exec(&mut session, code).await;
        let error = session.fork().await.unwrap_err();
        assert_eq!((error.kind(), error.session_survives()), (ErrorKind::Limit, true), "{error}");
        for number in children(processes(&session).0) {
            wait_until_gone(number).await;
        }
        exec(&mut session, "turns = False").await;
        exec(&mut session.fork().await.unwrap(), "1").await;
    }
}

/// Returns the processes that a session's worker has made.
fn children(worker: u32) -> Vec<u32> {
    let threads = fs::read_dir(format!("/proc/{worker}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|one| fs::read_to_string(one.path().join("children")).ok());
    lists.flat_map(|list| list.split(' ').flat_map(str::parse).collect::<Vec<_>>()).collect()
}

async fn wait_until_gone(process: u32) {
    let start = std::time::Instant::now();
    while fs::exists(format!("/proc/{process}")).unwrap() {
        assert!(start.elapsed() < LONGEST, "process {process} is still there");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_fork_that_nobody_waits_for_ends_the_session_and_leaves_no_copy() {
    for steps in 1..6 {
        let mut session = session().await;
        let mut before = session.fork().await.unwrap();
        let worker = processes(&session).0;
        let copies = children(worker);
        let mut fork = Box::pin(session.fork());
        for _ in 0..steps {
            if futures_util::poll!(&mut fork).is_ready() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let made = children(worker);
        drop(fork);
        for number in made.iter().filter(|number| !copies.contains(number)) {
            wait_until_gone(*number).await;
        }
        let error = session.run("1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
        exec(&mut before.fork().await.unwrap(), "1").await;
        session.reset().await.unwrap();
        exec(&mut session.fork().await.unwrap(), "1").await;
    }
}
