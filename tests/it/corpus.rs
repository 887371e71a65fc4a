//! Runs the corpus of Python files in two sessions, which must do the same.

use std::fs;

use isolet::{Cell, Sandbox, Session};

use crate::util::root;

/// Runs each file in a fresh session and in one of `other`, and compares.
pub(crate) async fn runs_alike(sandbox: &Sandbox, mut other: impl AsyncFnMut() -> Session) {
    let mut files = 0;
    for entry in fs::read_dir(root().join("tests/corpus")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "py") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        let program = || Cell::new(source.as_str()).program().argv(["program.py"]);
        let (mut fresh, mut other) = (sandbox.session().await.unwrap(), other().await);
        let (expected, found) =
            (fresh.run(program()).await.unwrap(), other.run(program()).await.unwrap());
        let name = path.display();
        assert_eq!(found.stdout(), expected.stdout(), "{name}");
        assert_eq!(found.stderr(), expected.stderr(), "{name}");
        assert_eq!(format!("{:?}", found.outcome()), format!("{:?}", expected.outcome()), "{name}");
        files += 1;
    }
    assert!(files > 50, "{files} files");
}
