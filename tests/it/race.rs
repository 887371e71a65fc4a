//! Tests of runs that end exactly at their deadline: each has one outcome, and nothing of it
//! affects the next run.

use std::time::Duration;

use isolet::{Cell, Limits, Outcome, Termination, Value};

use crate::util::sandbox;

const RUNS: u64 = 5_000;

/// How many sessions share the runs.
const SESSIONS: u64 = 4;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_ends_at_its_deadline_gets_one_verdict() {
    let sessions = (0..SESSIONS).map(|seed| tokio::spawn(race(seed)));
    let (mut completed, mut stopped) = (0, 0);
    for session in sessions {
        let (ends, stops) = session.await.unwrap();
        completed += ends;
        stopped += stops;
    }
    assert_eq!(completed + stopped, RUNS);
    // Otherwise it was not a race.
    assert!(completed > 0 && stopped > 0, "{completed} completed, {stopped} were stopped");
}

async fn race(seed: u64) -> (u64, u64) {
    let sandbox = sandbox(Limits::default().max_grace(Duration::from_mins(1)));
    let mut session = sandbox.session().await.unwrap();
    session.run("import time").await.unwrap();
    let (mut completed, mut stopped) = (0, 0);
    for run in 0..RUNS / SESSIONS {
        // The deadline moves across the end of the run in steps of 20 microseconds.
        let deadline = Duration::from_micros(200 + (run * 7 + seed) % 100 * 20);
        let code = format!("x = {run}\ns = 0\nfor i in range(10_000): s += i\ns");
        let execution = session.run(Cell::new(code).timeout(deadline)).await.unwrap();
        match execution.outcome() {
            Outcome::Completed(Some(value)) => {
                assert_eq!(*value, Value::Int(49_995_000));
                completed += 1;
            }
            Outcome::Terminated(Termination::Deadline { limit, observed }) => {
                assert!(*limit == deadline && *observed >= deadline, "{execution:?}");
                stopped += 1;
            }
            other => panic!("{other:?}"),
        }
        assert!(execution.session_alive(), "{execution:?}");
        // A stale interrupt would end this run, or replace the result of the previous one.
        if run % 16 == 0 {
            let next = session.run("40 + 2").await.unwrap();
            assert_eq!(next.value(), Some(&Value::Int(42)), "{next:?}");
        }
    }
    (completed, stopped)
}
