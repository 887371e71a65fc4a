//! What one tenant's flood of runs does to the runs of another one.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::http::{Client, Node};
use super::ms;

/// How many connections there are for floods, each with a session of its own.
const MOST_CLIENTS: usize = 32;

/// A large body has so many numbers among its inputs.
const NUMBERS: usize = 6_000_000;

/// How many runs of the other tenant are timed.
const RUNS: usize = 500;

/// The pause between two of these runs: a tenant that floods as well has itself to wait for.
const PAUSE: Duration = Duration::from_millis(5);

/// Keys and their digests, as `docs/reference/http-api.md` has them.
const QUIET: &str = "quiet";
const LOUD: &str = "loud";
const TENANTS: &str = r#"
[tenants.quiet]
keys = ["sha256:008f0747f4e27c8462baa991a538025bcc2dd143e78422f1afbdfcd9e757a20f"]
[tenants.loud]
keys = ["sha256:db1a60bbff220d0910f017477df18cb7cd90892722985ac91dbfdaa1c955220f"]
"#;

struct Flood {
    name: &'static str,
    clients: usize,
    code: &'static str,
    /// How many numbers the inputs have.
    numbers: usize,
}

const FLOODS: [Flood; 4] = [
    Flood { name: "short runs", clients: MOST_CLIENTS, code: "40+2", numbers: 0 },
    Flood {
        name: "runs of some milliseconds",
        clients: MOST_CLIENTS,
        code: "sum(range(20_000)) * 0 + 42",
        numbers: 0,
    },
    Flood {
        name: "runs of half a second",
        clients: MOST_CLIENTS,
        code: "sum(range(3_000_000)) * 0 + 42",
        numbers: 0,
    },
    Flood { name: "bodies of 50 MiB", clients: 1, code: "len(x) * 0 + 42", numbers: NUMBERS },
];

impl Flood {
    /// Returns the body of each of its runs.
    fn body(&self) -> String {
        let numbers: Vec<String> = (0..self.numbers).map(|number| number.to_string()).collect();
        let numbers = numbers.join(", ");
        format!(r#"{{"code": "{}", "inputs": {{"x": [{numbers}]}}}}"#, self.code)
    }
}

pub(crate) fn measure() -> Result<()> {
    let node = Node::start_with(TENANTS)?;
    let mut quiet = node.client(QUIET)?;
    let session = quiet.session()?;
    let mut loud: Vec<(Client, String)> = (0..MOST_CLIENTS)
        .map(|_| {
            let mut client = node.client(LOUD)?;
            let session = client.session()?;
            Ok((client, session))
        })
        .collect::<Result<_>>()?;
    time(&mut quiet, &session)?;
    let alone = time(&mut quiet, &session)?;
    println!(
        "\na tenant's run of 40+2 each 5 ms, while {MOST_CLIENTS} clients of another one send"
    );
    println!("(1 client sends large bodies)");
    println!("{:<28} {}", "nothing", shown(&alone));
    for flood in FLOODS {
        let body = flood.body();
        let (is_over, count) = (AtomicBool::new(false), AtomicU32::new(0));
        let start = Instant::now();
        let times = std::thread::scope(|scope| {
            let threads: Vec<_> = loud[..flood.clients]
                .iter_mut()
                .map(|(client, session)| {
                    let (is_over, count, body) = (&is_over, &count, &body);
                    scope.spawn(move || {
                        while !is_over.load(Ordering::Relaxed) {
                            client.run_body(session, body)?;
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        anyhow::Ok(())
                    })
                })
                .collect();
            let times = time(&mut quiet, &session);
            is_over.store(true, Ordering::Relaxed);
            for thread in threads {
                thread.join().ok().context("a client's thread has panicked")??;
            }
            times
        })?;
        println!(
            "{:<28} {}  x{:.1}; {:.1} of the flood a second",
            flood.name,
            shown(&times),
            times.p95.as_secs_f64() / alone.p95.as_secs_f64(),
            f64::from(count.load(Ordering::Relaxed)) / start.elapsed().as_secs_f64(),
        );
    }
    Ok(())
}

/// What a tenant's runs took.
struct Times {
    p50: Duration,
    p95: Duration,
    most: Duration,
}

fn shown(times: &Times) -> String {
    let [p50, p95, most] = [times.p50, times.p95, times.most].map(ms);
    format!("p50 {p50:>7.2} ms  p95 {p95:>7.2} ms  at most {most:>7.2} ms")
}

/// Times a tenant's runs.
fn time(client: &mut Client, session: &str) -> Result<Times> {
    let mut times = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        std::thread::sleep(PAUSE);
        let start = Instant::now();
        client.run_body(session, r#"{"code": "40+2"}"#)?;
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok(Times { p50: times[RUNS / 2], p95: times[RUNS * 95 / 100], most: times[RUNS - 1] })
}
