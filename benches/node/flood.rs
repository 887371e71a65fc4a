//! What one tenant's flood of runs does to the runs of another one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::http::{Client, Node};
use super::ms;

/// How many connections flood the node, each with a session of its own.
const FLOOD: usize = 32;

/// How many runs of the other tenant are timed.
const RUNS: usize = 500;

/// The pause between two of these runs: a tenant that floods as well has itself to wait for.
const PAUSE: Duration = Duration::from_millis(5);

/// Keys and their digests, as `docs/serve.md` has them.
const QUIET: &str = "quiet";
const LOUD: &str = "loud";
const TENANTS: &str = r#"
[tenants.quiet]
keys = ["sha256:008f0747f4e27c8462baa991a538025bcc2dd143e78422f1afbdfcd9e757a20f"]
[tenants.loud]
keys = ["sha256:db1a60bbff220d0910f017477df18cb7cd90892722985ac91dbfdaa1c955220f"]
"#;

/// What the flood runs.
const CODES: [(&str, &str); 3] = [
    ("short runs", "40+2"),
    ("runs of some milliseconds", "sum(range(20_000)) * 0 + 42"),
    ("runs of half a second", "sum(range(3_000_000)) * 0 + 42"),
];

pub(crate) fn measure() -> Result<()> {
    let node = Node::start_with(TENANTS)?;
    let mut quiet = node.client(QUIET)?;
    let session = quiet.session()?;
    let mut loud: Vec<(Client, String)> = (0..FLOOD)
        .map(|_| {
            let mut client = node.client(LOUD)?;
            let session = client.session()?;
            Ok((client, session))
        })
        .collect::<Result<_>>()?;
    time(&mut quiet, &session)?;
    let alone = time(&mut quiet, &session)?;
    println!("\na tenant's run of 40+2 each 5 ms, while {FLOOD} clients of another one send");
    println!("{:<28} p50 {:>7.2} ms  p95 {:>7.2} ms", "nothing", ms(alone.0), ms(alone.1));
    for (name, code) in CODES {
        let (is_over, count) = (AtomicBool::new(false), AtomicU32::new(0));
        let start = Instant::now();
        let times = std::thread::scope(|scope| {
            let flood: Vec<_> = loud
                .iter_mut()
                .map(|(client, session)| {
                    let (is_over, count) = (&is_over, &count);
                    scope.spawn(move || {
                        while !is_over.load(Ordering::Relaxed) {
                            client.run_code(session, code)?;
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            let times = time(&mut quiet, &session);
            is_over.store(true, Ordering::Relaxed);
            for thread in flood {
                thread.join().ok().context("a client's thread has panicked")??;
            }
            times
        })?;
        println!(
            "{name:<28} p50 {:>7.2} ms  p95 {:>7.2} ms  x{:.1}; {:.0} of the flood a second",
            ms(times.0),
            ms(times.1),
            times.1.as_secs_f64() / alone.1.as_secs_f64(),
            f64::from(count.load(Ordering::Relaxed)) / start.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}

/// Returns p50 and p95 of a tenant's runs.
fn time(client: &mut Client, session: &str) -> Result<(Duration, Duration)> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        std::thread::sleep(PAUSE);
        let start = Instant::now();
        client.run_code(session, "40+2")?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok((times[RUNS / 2], times[RUNS * 95 / 100]))
}
