//! A deadline: the run is killed, its output is kept, its session is closed, and the next session
//! works.
//!
//! Run it with `cargo run --release --example limits`.

use std::time::Duration;

use isolet::{Engine, ErrorKind, Limits, Outcome, Sandbox, SessionState, Termination, Value};

fn main() -> Result<(), isolet::Error> {
    isolet::init();
    let limits = Limits::default().max_run_time(Duration::from_millis(200)).max_stdout_bytes(10);
    let sandbox = Sandbox::builder(&Engine::new()?).limits(limits).build()?;
    let mut session = sandbox.blocking().session()?;

    let execution = session.run("print('a' * 25)")?;
    assert_eq!(execution.stdout(), "aaaaa\n[... 16 bytes dropped ...]\naaaa\n");

    let stubborn = "
print('kept')
while True:
    try:
        while True: pass
    except BaseException: pass
";
    let execution = session.run(stubborn)?;
    let Outcome::Terminated(Termination::Deadline { observed, .. }) = execution.outcome() else {
        panic!("the deadline did not end the run: {:?}", execution.outcome())
    };
    assert!((200..1000).contains(&observed.as_millis()), "{observed:?}");
    assert_eq!(execution.stdout(), "kept\n");

    assert_eq!(session.state(), SessionState::Terminated);
    assert_eq!(session.run("1").map_err(|error| error.kind()).err(), Some(ErrorKind::Closed));
    assert_eq!(sandbox.blocking().run("6 * 7")?.value(), Some(&Value::Int(42)));
    Ok(())
}
