//! Streamed output: the host answers a question that the guest prints and then waits on.
//!
//! Run it with `cargo run --release --example streaming`.

use std::error::Error;
use std::io::Write;

use isolet::{Cell, Engine, RunEvent, Sandbox, Stdin};

const CODE: &str = "
name = input('name? ')
print(f'hello, {name}')
";

fn main() -> Result<(), Box<dyn Error>> {
    isolet::init();
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), Box<dyn Error>> {
    let sandbox = Sandbox::builder(&Engine::new()?).build()?;
    let mut session = sandbox.session().await?;

    let (answers, mut keyboard) = std::io::pipe()?;
    let cell = Cell::new(CODE).stdin(Stdin::from_reader(answers));
    let mut run = session.run_streaming(cell);
    let mut seen = String::new();
    while let Some(event) = run.next().await {
        let RunEvent::Output(chunk) = event else { continue };
        seen += &String::from_utf8_lossy(&chunk.bytes);
        if seen == "name? " {
            keyboard.write_all(b"Ada\n")?;
        }
    }
    let execution = run.finish().await?;

    assert_eq!(seen, "name? hello, Ada\n");
    assert_eq!(execution.stdout(), seen);
    Ok(())
}
