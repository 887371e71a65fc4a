//! The program of `docs/guides/rust.md`: a session with a tool.

use isolet::{Engine, Sandbox, Tool, Value};
use schemars::JsonSchema;
use serde::Deserialize;

/// Searches the corpus.
#[derive(Deserialize, JsonSchema)]
struct Search {
    query: String,
}

fn main() -> Result<(), isolet::Error> {
    isolet::init(); // has to come first: this program is also the program of its workers
    let search = Tool::from_fn("search", |args: Search, _| async move {
        Ok(vec![format!("{} 0", args.query), format!("{} 1", args.query)])
    });
    let sandbox = Sandbox::builder(&Engine::new()?).tool(search).build()?;
    let mut session = sandbox.blocking().session()?;

    let execution = session.run("hits = search('moons'); print(hits)")?;
    assert_eq!(execution.stdout(), "['moons 0', 'moons 1']\n");

    let execution = session.run("len(hits)")?;
    assert_eq!(execution.value(), Some(&Value::Int(2)));

    let execution = session.run("open('/etc/passwd')")?;
    assert!(execution.exception().is_some());
    Ok(())
}
