//! Tests of replays of runs that did not end by themselves: each ends as it did, and prints what it
//! had printed.

use std::time::Duration;

use isolet::{Cell, Execution, Limits, Outcome, Replay, Sandbox, Syntax, Termination};

use crate::util::{self, Scratch};

/// Records a program, and replays it. Returns how it ended, and how its replay did.
async fn ends(sandbox: &Sandbox, program: Cell) -> [Execution; 2] {
    let scratch = Scratch::new("replayed-ends");
    let path = scratch.path().join("run.journal");
    let mut session = sandbox.record(&path).await.unwrap();
    let recorded = session.run(program).await.unwrap();
    drop(session);
    let mut session = sandbox.replay(Replay::of(&path)).await.unwrap();
    let replayed = session.go_on().await.unwrap().unwrap();
    drop(session);
    // Going on with it ends there, too.
    let mut session = sandbox.resume(&path).await.unwrap();
    let resumed = session.go_on().await.unwrap().unwrap();
    assert_eq!(resumed.stdout(), replayed.stdout());
    [recorded, replayed]
}

/// A sandbox whose runs are interrupted after 400 ms and killed after another `grace`.
fn limited(grace: Duration) -> Sandbox {
    let limits = Limits::default().max_run_time(Duration::from_millis(400)).max_grace(grace);
    util::builder().limits(limits).build().unwrap()
}

/// A grace within which any guest ends that takes its interrupt.
const AMPLE: Duration = Duration::from_secs(30);

fn is_deadline(execution: &Execution) -> bool {
    matches!(execution.outcome(), Outcome::Terminated(Termination::Deadline { .. }))
}

#[tokio::test]
async fn a_run_that_its_time_limit_interrupted_ends_so_in_its_replay() {
    let program = "import time
print('computes')
try:
    while True: pass
except KeyboardInterrupt:
    print('interrupted')
    raise";
    let [recorded, replayed] = ends(&limited(AMPLE), program.into()).await;
    assert!(is_deadline(&recorded) && is_deadline(&replayed), "{recorded:?} {replayed:?}");
    assert_eq!(replayed.stdout(), "computes\ninterrupted\n");
    assert_eq!(replayed.stdout(), recorded.stdout());
}

#[tokio::test]
async fn a_run_that_was_killed_past_its_grace_ends_so_in_its_replay() {
    let program = "print('begins')
while True:
    try:
        while True: pass
    except KeyboardInterrupt: print('goes on')";
    let [recorded, replayed] = ends(&limited(Duration::from_millis(300)), program.into()).await;
    assert!(is_deadline(&recorded) && !recorded.session_alive(), "{recorded:?}");
    assert!(is_deadline(&replayed) && !replayed.session_alive(), "{replayed:?}");
    assert_eq!(replayed.stdout(), recorded.stdout());
}

#[tokio::test]
async fn a_replay_prints_no_more_than_a_run_that_was_killed_before_it_could_print() {
    // The kill comes while the guest prints or before it, by chance.
    let sandbox = limited(Duration::from_micros(1));
    let program = "import sys
try:
    while True: pass
except KeyboardInterrupt:
    while True:
        print('late')
        print('late', file=sys.stderr)";
    for _ in 0..8 {
        let [recorded, replayed] = ends(&sandbox, program.into()).await;
        assert!(is_deadline(&recorded) && !recorded.session_alive(), "{recorded:?}");
        assert!(is_deadline(&replayed) && !replayed.session_alive(), "{replayed:?}");
        assert_eq!(replayed.stdout(), recorded.stdout());
        assert_eq!(replayed.stderr(), recorded.stderr());
    }
}

#[tokio::test]
async fn an_interrupt_in_a_command_of_the_shell_comes_where_it_came() {
    let count = "n=0; while :; do n=$((n+1)); echo $n > /tmp/n; done";
    let program = format!(
        "import subprocess
try:
    subprocess.run({count:?}, shell=True)
except KeyboardInterrupt:
    print('counted to', open('/tmp/n').read())
    raise"
    );
    for program in [Cell::from(program), Cell::from(count).syntax(Syntax::Shell)] {
        let [recorded, replayed] = ends(&limited(AMPLE), program).await;
        assert!(is_deadline(&recorded) && is_deadline(&replayed), "{recorded:?} {replayed:?}");
        assert_eq!(replayed.stdout(), recorded.stdout());
    }
    // The session goes on with what the command has done.
    let scratch = Scratch::new("replayed-ends");
    let path = scratch.path().join("run.journal");
    let mut session = limited(AMPLE).record(&path).await.unwrap();
    session.run(Cell::from(count).syntax(Syntax::Shell)).await.unwrap();
    let counted = session.run("print(open('/tmp/n').read())").await.unwrap();
    drop(session);
    let mut session = limited(AMPLE).resume(&path).await.unwrap();
    let replayed = session.go_on().await.unwrap().unwrap();
    assert_eq!(replayed.stdout(), counted.stdout());
}

#[tokio::test]
async fn an_exit_and_an_interpreter_that_ends_are_replayed() {
    let sandbox = util::builder().build().unwrap();
    for (program, status) in
        [("print('a'); raise SystemExit(4)", 4), ("import os; print('a'); os._exit(3)", 3)]
    {
        let [recorded, replayed] = ends(&sandbox, program.into()).await;
        assert_eq!(recorded.outcome(), &Outcome::Exited(status));
        assert_eq!(replayed.outcome(), recorded.outcome());
        assert_eq!(replayed.session_alive(), recorded.session_alive());
        assert_eq!(replayed.stdout(), "a\n");
    }
}

#[tokio::test]
async fn a_session_that_was_closed_in_its_run_can_be_looked_at_up_to_there() {
    let scratch = Scratch::new("replayed-ends");
    let path = scratch.path().join("run.journal");
    let sandbox = util::builder().build().unwrap();
    let mut session = sandbox.record(&path).await.unwrap();
    let handle = session.interrupt_handle();
    let mut run = session.run_streaming("print('prints')\nimport time\ntime.sleep(600)");
    assert_eq!(util::output(run.next().await.unwrap()).bytes, b"prints\n");
    handle.kill();
    // What its owner gets is another matter.
    let _ = run.finish().await;
    let mut session = sandbox.replay(Replay::of(&path)).await.unwrap();
    let replayed = session.go_on().await.unwrap().unwrap();
    assert_eq!(replayed.stdout(), "prints\n");
    let stopped = session.bind_locals().await.unwrap().unwrap();
    assert_eq!((&*stopped.function, stopped.line), ("<module>", 3));
}

#[tokio::test]
async fn a_replay_stops_before_a_line_in_a_task_and_in_the_module() {
    let scratch = Scratch::new("replayed-ends");
    let path = scratch.path().join("run.journal");
    let sandbox = util::builder().build().unwrap();
    let mut session = sandbox.record(&path).await.unwrap();
    let program = "import asyncio, random
drawn = random.random()
async def task(n):
    await asyncio.sleep(0.001)
    drawn_here = random.random()
    return n
print(asyncio.run(task(7)))
done = True
";
    let recorded = session.run(program).await.unwrap();
    assert_eq!(recorded.stdout(), "7\n");
    let drawn = session.get("drawn").await.unwrap();
    drop(session);
    for (line, function, is_done) in [(6, "task", false), (8, "<module>", false)] {
        let replay = Replay::of(&path).until_line(None, line);
        let mut session = sandbox.replay(replay).await.unwrap();
        let replayed = session.go_on().await.unwrap().unwrap();
        assert_eq!(replayed.outcome(), &Outcome::Terminated(Termination::Interrupted));
        let stopped = session.bind_locals().await.unwrap().unwrap();
        assert_eq!((&*stopped.function, stopped.line), (function, line));
        assert_eq!(session.get("drawn").await.unwrap(), drawn);
        assert_eq!(session.get("done").await.unwrap().is_some(), is_done);
        assert_eq!(session.get("drawn_here").await.unwrap().is_some(), line == 6);
    }
}
