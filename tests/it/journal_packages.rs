//! Tests of journals of sessions with packages: what was loaded is loaded again, and nothing else.

use std::path::Path;

use isolet::{ErrorKind, Param, Permissions, Replay, Sandbox, Tool, ToolSpec};

use crate::util::{self, Scratch, wheel};

/// A sandbox that may load two packages, with a tool that nobody may call twice.
fn sandbox(wheels: &Path, cache: &Path) -> Sandbox {
    let permissions = Permissions::none().allow_package("apples").unwrap();
    let permissions = permissions.allow_package("pears").unwrap();
    with_tool(permissions.wheels(wheels).offline_packages().package_cache(cache))
}

fn with_tool(permissions: Permissions) -> Sandbox {
    let next = std::sync::atomic::AtomicI64::new(1);
    let spec = ToolSpec::new("count").param(Param::new("what"));
    let count = Tool::from_handler(spec, move |_, _| {
        let number = next.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        async move { Ok(number.into()) }
    });
    util::builder().permissions(permissions).tool(count).build().unwrap()
}

const IMPORTS: &str = "
import apples  # asks the host for it
print(apples.NAME, count('a'))
";
const USES: &str = "
import pears
print(apples.NAME, pears.NAME, count('b'))
try:
    import cherries
except ModuleNotFoundError: print('no cherries')
";
const PRINTED: &str = "apples 1 pears 1 2\nno cherries\n";

/// Records a session whose owner loads one package, and whose code imports another one.
async fn recorded(scratch: &Scratch) -> std::path::PathBuf {
    let (wheels, path) = (scratch.path().join("wheels"), scratch.path().join("run.journal"));
    std::fs::create_dir(&wheels).unwrap();
    wheel(&wheels, "apples", "1", "NAME = 'apples 1'\n");
    wheel(&wheels, "pears", "1", "NAME = 'pears 1'\n");
    let mut session = sandbox(&wheels, &scratch.path().join("cache")).record(&path).await.unwrap();
    assert_eq!(session.run(IMPORTS).await.unwrap().stdout(), "apples 1 1\n");
    session.load_packages(["pears"]).await.unwrap();
    assert_eq!(session.run(USES).await.unwrap().stdout(), PRINTED);
    path
}

#[tokio::test]
async fn packages_of_the_owner_and_of_imports_are_loaded_again_where_they_were() {
    let scratch = Scratch::new("journal-packages");
    let (path, wheels) = (recorded(&scratch).await, scratch.path().join("wheels"));
    // A version that is newer by now is allowed, and is not what the program has imported.
    wheel(&wheels, "apples", "2", "NAME = 'apples 2'\n");
    // As on another machine, which has not chosen a version yet.
    let sandbox = sandbox(&wheels, &scratch.path().join("cache-of-another"));
    let mut session = sandbox.resume(&path).await.unwrap();
    assert_eq!(session.go_on().await.unwrap().unwrap().stdout(), PRINTED);
    let more = session.run("print(apples.NAME, count('c'))").await.unwrap();
    assert_eq!(more.stdout(), "apples 1 1\n", "the only call that this process makes");
    drop(session);
    let mut session = sandbox.replay(Replay::of(&path)).await.unwrap();
    for printed in ["apples 1 1\n", PRINTED, "apples 1 1\n"] {
        assert_eq!(session.go_on().await.unwrap().unwrap().stdout(), printed);
    }
}

#[tokio::test]
async fn a_package_that_is_another_one_by_now_or_not_allowed_any_more_is_refused_by_name() {
    let scratch = Scratch::new("journal-packages-refused");
    let (path, wheels) = (recorded(&scratch).await, scratch.path().join("wheels"));
    let journal = std::fs::read(&path).unwrap();
    // Nothing is in its cache.
    wheel(&wheels, "apples", "1", "NAME = 'other apples'\n");
    let other = sandbox(&wheels, &scratch.path().join("other"));
    let sources = Permissions::none().allow_package("pears").unwrap();
    let sources = sources.wheels(&wheels).offline_packages();
    let poorer = with_tool(sources);
    for sandbox in [other, poorer] {
        let error = match sandbox.resume(&path).await {
            Ok(mut session) => session.go_on().await.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains("apples"), "{error}");
        assert!(
            matches!(error.kind(), ErrorKind::Journal | ErrorKind::Packages),
            "{:?} {error}",
            error.kind()
        );
    }
    assert_eq!(
        std::fs::read(&path).unwrap(),
        journal,
        "what is refused leaves the journal as it is"
    );
}
