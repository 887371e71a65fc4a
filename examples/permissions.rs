//! A guest that may read one directory and nothing else, with a log of its attempts.
//!
//! Run it with `cargo run --release --example permissions`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::{Arc, Mutex};

use isolet::{Engine, Mount, Outcome, Permissions, Sandbox};

const CODE: &str = r#"
import os, urllib.request
print(sorted(os.listdir("/docs")), len(open("/docs/concepts/permissions.md").read()) > 1000)
for forbidden in (
    lambda: open("/docs/concepts/permissions.md", "w"),
    lambda: open("/docs/../Cargo.toml"),
    lambda: urllib.request.urlopen("http://example.com/"),
):
    try:
        forbidden()
    except OSError as error:
        print(type(error).__name__, error)
"#;

fn main() -> Result<(), isolet::Error> {
    isolet::init();
    run()
}

#[tokio::main(flavor = "current_thread")]
async fn run() -> Result<(), isolet::Error> {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/docs");
    let permissions = Permissions::none().mount("/docs", Mount::read_only(docs)?)?;
    let denied = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&denied);
    let sandbox = Sandbox::builder(&Engine::new()?)
        .permissions(permissions)
        .on_audit(move |event| {
            if let (false, Ok(mut log)) = (event.allowed, log.lock()) {
                log.push(format!("{:?}: {}", event.access, event.reason));
            }
        })
        .build()?;
    let execution = sandbox.run(CODE).await?;
    println!("{}", execution.stdout());
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    let denied = denied.lock().map(|log| log.clone()).unwrap_or_default();
    println!("{}", denied.join("\n"));
    assert_eq!(denied.len(), 2, "writing the file and reaching the server");
    Ok(())
}
