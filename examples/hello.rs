//! One session: each run sees what earlier ones defined, and an exception does not end the session.
//!
//! Run it with `cargo run --release --example hello`.

use isolet::{Engine, Sandbox, Value};

fn main() -> Result<(), isolet::Error> {
    isolet::init();
    let engine = Engine::new()?;
    let sandbox = Sandbox::builder(&engine).build()?;
    let mut session = sandbox.blocking().session()?;

    session.run("x = 20")?;
    let execution = session.run("print('hi'); x + 22")?;
    assert_eq!(execution.stdout(), "hi\n");
    assert_eq!(execution.value(), Some(&Value::Int(42)));

    let execution = session.run("x / 0")?;
    let exception = execution.exception().map(ToString::to_string);
    assert_eq!(exception.as_deref(), Some("ZeroDivisionError: division by zero"));
    assert_eq!(session.run("x")?.value(), Some(&Value::Int(20)));
    Ok(())
}
