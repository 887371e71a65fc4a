//! Tests that killed sessions leave no thread, descriptor or process behind. They are counted in a
//! separate process, in which no other test runs.

use std::collections::HashMap;
use std::process::Command;
use std::time::Duration;

use isolet::{Cell, Isolation, Limits, Outcome};

use crate::util::{isolation, processes, sandbox};

/// Enough to detect one that is left behind at each kill.
const KILLS: usize = 25;

/// Marks the separate process.
const PROBE: &str = "ISOLET_TEST_LEAKS";

#[tokio::test]
async fn killed_sessions_leave_no_thread_and_no_descriptor() {
    #[expect(clippy::disallowed_methods, reason = "a message of the test to itself")]
    if std::env::var_os(PROBE).is_some() {
        return probe().await;
    }
    let test = "leaks::killed_sessions_leave_no_thread_and_no_descriptor";
    let probe = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(PROBE, "1")
        .output()
        .unwrap();
    assert!(probe.status.success(), "{}", String::from_utf8_lossy(&probe.stderr));
}

/// Returns the number of threads and descriptors of this process, and of its descendants.
fn counts() -> [usize; 3] {
    let entries = |path: &str| std::fs::read_dir(path).unwrap().count();
    let parents: HashMap<u32, u32> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let process = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Some((process, stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?))
        })
        .collect();
    let descends = |process: &&u32| {
        let mut line = std::iter::successors(Some(*process), |process| parents.get(process));
        line.any(|process| *process == std::process::id())
    };
    let descendants = parents.keys().filter(descends).count();
    [entries("/proc/self/task"), entries("/proc/self/fd"), descendants]
}

/// Returns the targets of the descriptors.
fn descriptors() -> Vec<std::path::PathBuf> {
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    descriptors.filter_map(|entry| std::fs::read_link(entry.path()).ok()).collect()
}

async fn probe() {
    let limits = Limits::default().max_grace(Duration::ZERO);
    let sandbox = sandbox(limits.max_run_time(Duration::from_millis(20)));
    let kill = async || {
        let mut session = sandbox.session().await.unwrap();
        let cell = Cell::new("import time\nwhile True: time.sleep(1000)");
        let execution = session.run(cell).await.unwrap();
        assert!(matches!(execution.outcome(), Outcome::Terminated(_)));
        session
    };
    // After the first kill the process has everything that it needs only once; with workers, after
    // the first copied one.
    while isolation() == Isolation::Process && processes(&kill().await).1.is_none() {}
    kill().await;
    let before = counts();
    for _ in 0..KILLS {
        kill().await;
    }
    // The threads of the last kill may still be ending.
    let mut after = counts();
    for _ in 0..1000 {
        if after <= before {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        after = counts();
    }
    assert!(
        after.iter().zip(before).all(|(after, before)| *after <= before),
        "threads, descriptors, children: {before:?} before, {after:?} after {KILLS} kills; {:?}",
        descriptors()
    );
}
