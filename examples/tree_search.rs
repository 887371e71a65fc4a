//! A tree search: branches 64 ways from a prepared state, keeps the best copy, and goes on from it.
//!
//! Run it with `cargo run --release --example tree_search`.

#![expect(clippy::print_stdout, reason = "shows the search at work")]

use isolet::blocking::Session;
use isolet::{Engine, Sandbox};

/// What every branch starts with: the data, and a guess to improve.
const PREPARED: &str = "
data = [(x, 3 * x * x - 20 * x + 7) for x in range(-10, 11)]
a = b = c = 0.0

def error():
    return sum(abs(y - (a * x * x + b * x + c)) for x, y in data)
";

/// The steps of the three coefficients, in units of the size of a step: 4 * 4 * 4 branches.
const UNITS: [f64; 4] = [-1.5, -0.5, 0.5, 1.5];

fn main() -> Result<(), isolet::Error> {
    isolet::init();
    // The state, 64 branches, and the best one so far.
    let sandbox = Sandbox::builder(&Engine::new()?).forkable(66).build()?;
    let mut state = sandbox.blocking().session()?;
    state.run(PREPARED)?;
    let mut last = f64::INFINITY;
    for size in [8.0, 4.0, 2.0, 1.0, 0.5] {
        let mut best: Option<(f64, Session)> = None;
        let steps = UNITS
            .iter()
            .flat_map(|a| UNITS.iter().flat_map(move |b| UNITS.iter().map(move |c| (*a, *b, *c))));
        for ((a, b, c), mut branch) in steps.zip(state.fork_many(64)?) {
            let (a, b, c) = (a * size / 4.0, b * size, c * size);
            let code = format!("a += {a}; b += {b}; c += {c}; error()");
            let found = branch.run(code)?;
            let error = found.value().and_then(isolet::Value::as_f64).unwrap_or(f64::INFINITY);
            if best.as_ref().is_none_or(|(least, _)| error < *least) {
                best = Some((error, branch));
            }
        }
        let Some((error, branch)) = best else { break };
        state = branch;
        let shown = state.run("print(f'{a:6} x² {b:+7} x {c:+7}')")?;
        println!("{}   error {error:6.1}", shown.stdout().trim_end());
        assert!(error < last, "each level is better than the one before");
        last = error;
    }
    Ok(())
}
