//! Kills recorded programs with their whole process at a random moment, resumes them, and kills
//! them again: they end as they do without it, and each of their effects happens once.

mod programs;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use isolet::blocking::block_on;
use isolet::{
    Cell, Execution, Mount, Param, Permissions, RunEvent, RunStream, Sandbox, Session, Stdin, Tool,
    ToolContext, ToolSpec, Value,
};
use isolet_test_support::AT_MOST;
use isolet_test_support::server::{Request, Response, Server};

use self::programs::{Numbers, Program};
use crate::util::{self, Scratch};

/// How many programs there are, of which some are the corpus's. `ISOLET_KILLED_PROGRAMS` has it be
/// more.
const PROGRAMS: u64 = 16;

/// Every how many programs one is of the corpus.
const EVERY: u64 = 5;

/// How many programs run at the same time.
const LANES: usize = 2;

/// The full name of the test that a process is started for.
const TEST: &str = "killed::programs_that_are_killed_end_as_others_and_do_nothing_twice";

/// The environment variable with the directory of the run that a process makes.
const RUN: &str = "ISOLET_TEST_KILLED_RUN";

/// Makes the sandbox of a run, whose effects go to a file of its directory.
fn sandbox(run: &Path, server: &str, seed: Option<u64>) -> Sandbox {
    let permissions = Permissions::none().allow_net(server).unwrap();
    let permissions = permissions.mount("/work", Mount::read_write(run.join("work")).unwrap());
    let mut builder = util::builder().permissions(permissions.unwrap());
    if let Some(seed) = seed {
        builder = builder.deterministic(seed, None);
    }
    let tool = |name: &'static str| {
        let run = run.to_owned();
        Tool::from_handler(
            ToolSpec::new(name).param(Param::new("n")),
            move |arguments, context: ToolContext| {
                let n = arguments.get("n").and_then(Value::as_i64).unwrap();
                let effects = run.join("effects");
                match name {
                    "look" => {}
                    "settle" => settle(&effects, n),
                    _ => act(&effects, n),
                }
                let id = context.call_id();
                // Some answers take a while, so that calls are under way together.
                let late = Duration::from_micros(id % 4 * 700);
                async move {
                    tokio::time::sleep(late).await;
                    Ok(Value::Int(n * 7 + 1))
                }
            },
        )
    };
    let builder = builder.tool(tool("act")).tool(tool("look").idempotent());
    builder.tool(tool("settle").idempotent()).build().unwrap()
}

/// An effect, which is there once it is appended.
fn act(effects: &Path, n: i64) {
    let mut file = OpenOptions::new().append(true).create(true).open(effects).unwrap();
    file.write_all(format!("{n}\n").as_bytes()).unwrap();
}

/// Makes up for an effect that may have been lost.
fn settle(effects: &Path, n: i64) {
    if !done(effects).contains_key(&n) {
        act(effects, n);
    }
}

/// Returns how often each effect has happened.
fn done(effects: &Path) -> BTreeMap<i64, usize> {
    let mut counts = BTreeMap::new();
    for line in fs::read_to_string(effects).unwrap_or_default().lines() {
        *counts.entry(line.parse().unwrap()).or_default() += 1;
    }
    counts
}

/// Answers a request for `/RUN/WHAT/NUMBER`, where `RUN` is a directory beneath this one.
fn answer(root: &Path, request: &Request) -> Response {
    let parts: Vec<&str> = request.path.split('/').skip(1).collect();
    let [run, what, n] = parts[..] else { panic!("{}", request.path) };
    let (effects, n) = (root.join(run).join("effects"), n.parse().unwrap());
    match what {
        "act" => act(&effects, n),
        "settle" => settle(&effects, n),
        _ => {}
    }
    Response::text(&format!("{n} of {n}"))
}

/// What is left of a run: how it has ended, its effects, and its files.
#[derive(Debug, PartialEq)]
struct Left {
    ended: String,
    effects: BTreeMap<i64, usize>,
    files: Vec<(PathBuf, String)>,
}

impl Left {
    fn of(run: &Path) -> Self {
        let work = run.join("work");
        let mut files = Vec::new();
        for entry in fs::read_dir(&work).unwrap() {
            let path = entry.unwrap().path();
            let contents = fs::read_to_string(&path).unwrap_or_default();
            files.push((path.strip_prefix(&work).unwrap().to_owned(), contents));
        }
        files.sort();
        let ended = fs::read_to_string(run.join("ended")).unwrap();
        Self { ended, effects: done(&run.join("effects")), files }
    }
}

/// Runs the program of a directory from its beginning, or from where its journal ends. What it
/// prints goes to a file as it comes.
async fn go_on(run: &Path) {
    let read = |name| fs::read_to_string(run.join(name)).unwrap();
    let (source, server, seed) = (read("program"), read("server"), read("seed"));
    let sandbox = sandbox(run, &server, seed.parse().ok());
    let journal = run.join("journal");
    let resumed = if fs::metadata(&journal).is_ok_and(|found| found.len() > 0) {
        Some(sandbox.resume(&journal).await.unwrap())
    } else {
        // It was killed before it began.
        let _ = fs::remove_file(&journal);
        None
    };
    let mut session = match resumed {
        Some(session) => session,
        None => sandbox.record(&journal).await.unwrap(),
    };
    let printed = File::create(run.join("printed")).unwrap();
    let execution = follow(&mut session, &source, printed).await;
    let (stdout, stderr) = (execution.stdout(), execution.stderr());
    let ended = format!("{stdout}\n{stderr}\n{:?}", execution.outcome());
    fs::write(run.join("ended"), ended).unwrap();
}

async fn follow(session: &mut Session, source: &str, mut printed: File) -> Execution {
    let mut stream: RunStream<'_> = if session.has_run_to_go_on() {
        session.go_on_streaming()
    } else {
        let stdin = Stdin::from_bytes(b"a line\nand more\n".repeat(20));
        session.run_streaming(Cell::new(source).program().stdin(stdin))
    };
    while let Some(event) = stream.next().await {
        if let RunEvent::Output(chunk) = event {
            printed.write_all(&chunk.bytes).unwrap();
        }
    }
    stream.finish().await.unwrap()
}

/// Begins a run in a directory of its own.
fn begin(root: &Path, name: &str, program: &Program, server: &Server) -> PathBuf {
    let run = root.join(name);
    fs::create_dir_all(run.join("work")).unwrap();
    let seed = program.seed.map_or_else(String::new, |seed| seed.to_string());
    let source = program.source.replace(BASE, &format!("{}/{name}", server.url("")));
    for (file, text) in [("program", source), ("server", server.rule()), ("seed", seed)] {
        fs::write(run.join(file), text).unwrap();
    }
    run
}

/// Where a program thinks the server is, until a run of it is made.
const BASE: &str = "http://server";

/// Starts a process that goes on with a run.
fn start(run: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(RUN, run);
    let log = OpenOptions::new().append(true).create(true).open(run.join("log")).unwrap();
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
    command.process_group(0).spawn().unwrap()
}

/// Kills a process with all that it has started, once its journal has so many bytes and this much
/// time has passed. Returns whether it has, and how the process has ended.
fn end(mut child: Child, journal: &Path, bytes: u64, later: Duration) -> (bool, ExitStatus) {
    let start = Instant::now();
    let mut reached = None;
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return (false, status);
        }
        assert!(start.elapsed() < AT_MOST, "a process has not ended");
        if reached.is_none() && fs::metadata(journal).is_ok_and(|found| found.len() >= bytes) {
            reached = Some(Instant::now());
        }
        if reached.is_some_and(|reached| reached.elapsed() >= later) {
            // It has not been waited for, so its number has not been reused.
            let group = rustix::process::Pid::from_child(&child);
            rustix::process::kill_process_group(group, rustix::process::Signal::KILL).unwrap();
            return (true, child.wait().unwrap());
        }
        // A poll.
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Runs a program without a kill, and with some. Returns how many there were.
fn killed(root: &Path, nth: u64, program: &Program, server: &Server) -> Result<usize, String> {
    let whole = begin(root, &format!("whole{nth}"), program, server);
    block_on(go_on(&whole));
    let expected = Left::of(&whole);
    let length = fs::metadata(whole.join("journal")).unwrap().len();
    if expected.effects.values().any(|count| *count != 1) {
        return Err(format!("effects: {:?}", expected.effects));
    }
    let run = begin(root, &format!("killed{nth}"), program, server);
    let (journal, mut numbers) = (run.join("journal"), Numbers::new(nth));
    let (mut kills, mut from, mut seen) = (0, 0, String::new());
    for attempt in 0..3 {
        let is_last = attempt == 2;
        let bytes =
            if is_last { u64::MAX } else { from + numbers.below(length.max(from + 1) - from) };
        let later = Duration::from_micros(numbers.below(2500));
        let (was_killed, status) = end(start(&run), &journal, bytes, later);
        kills += usize::from(was_killed);
        from = fs::metadata(&journal).map_or(0, |found| found.len());
        let printed = fs::read_to_string(run.join("printed")).unwrap_or_default();
        if !was_killed && !status.success() {
            let log = fs::read_to_string(run.join("log")).unwrap();
            return Err(format!("after {kills} kills: {log}"));
        }
        if !printed.starts_with(&seen) && (!was_killed || !seen.starts_with(&printed)) {
            return Err(format!("it printed {seen:?}, and after {kills} kills {printed:?}"));
        }
        if printed.len() > seen.len() {
            seen = printed;
        }
        if !was_killed {
            break;
        }
    }
    let found = Left::of(&run);
    if found != expected {
        return Err(format!("after {kills} kills: {found:#?}, and not {expected:#?}"));
    }
    fs::remove_dir_all(&whole).unwrap();
    fs::remove_dir_all(&run).unwrap();
    Ok(kills)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the variables are the test's own")]
#[expect(clippy::print_stdout, reason = "the numbers are what a long run is for")]
fn programs_that_are_killed_end_as_others_and_do_nothing_twice() {
    if let Ok(run) = std::env::var(RUN) {
        return block_on(go_on(Path::new(&run)));
    }
    let asked = std::env::var("ISOLET_KILLED_PROGRAMS");
    let number = asked.map_or(PROGRAMS, |number| number.parse().unwrap());
    let scratch = Scratch::new("killed");
    let root = scratch.path().to_owned();
    let server = Server::start({
        let root = root.clone();
        move |request| answer(&root, request)
    });
    let corpus = programs::corpus();
    let run_each = |first: u64| {
        let mut kills = 0;
        let mut failed = Vec::new();
        for nth in (first..number).step_by(LANES) {
            let random = programs::random(nth, BASE);
            let place = usize::try_from(nth / EVERY).unwrap() % corpus.len();
            let program = if nth.is_multiple_of(EVERY) { &corpus[place] } else { &random };
            match killed(&root, nth, program, &server) {
                Ok(made) => kills += made,
                Err(reason) => failed.push(format!("{}: {reason}", program.name)),
            }
        }
        (kills, failed)
    };
    let (kills, failed) = std::thread::scope(|scope| {
        let second = scope.spawn(|| run_each(1));
        let (first, second) = (run_each(0), second.join().unwrap());
        (first.0 + second.0, [first.1, second.1].concat())
    });
    println!("{number} programs, {kills} kills");
    assert!(failed.is_empty(), "{} of {number}: {}", failed.len(), failed.join("\n\n"));
    assert!(kills as u64 > number, "{kills} kills");
}
