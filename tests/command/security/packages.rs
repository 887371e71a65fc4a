//! Part H of the threat table: packages, which only the host fetches.

use std::path::Path;

use isolet_test_support::{Scratch, command, wheel};

/// H2: an import that is not allowed makes no request to the index; an allowed one does.
#[test]
fn an_import_that_is_not_allowed_asks_nobody() {
    let scratch = Scratch::new("typosquat");
    let called = scratch.path().join("called");
    let script = format!("#!/bin/sh\necho called >> {}\nexit 1\n", called.display());
    scratch.program("python3", &script);
    let run = |args: &[&str], code: &str| {
        let mut command = command(["run"].iter().chain(args).chain(&["-c", code]));
        command.env("PATH", scratch.path()).env("XDG_CACHE_HOME", scratch.path().join("cache"));
        let output = command.output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    for code in ["import reqeusts", "import numpy", "import micropip", "import pydantic_core"] {
        for args in [&[][..], &["--allow-package", "rich"]] {
            let stderr = run(args, code);
            assert!(stderr.contains("ModuleNotFoundError"), "{code}: {stderr}");
        }
    }
    assert!(!called.exists(), "{}", std::fs::read_to_string(&called).unwrap());
    let again =
        "for _ in range(5):\n    try: import rich\n    except ImportError: pass\nimport rich";
    let stderr = run(&["--allow-package", "rich"], again);
    assert!(stderr.contains("ImportError") && called.exists(), "{stderr}");
    let calls = std::fs::read_to_string(&called).unwrap().lines().count();
    assert_eq!(calls, 1, "an import that fails is tried once in a session");
}

/// H4: compiled wheels from the index work, and pure ones that depend on them, loaded at once or on
/// import.
#[test]
fn packages_of_the_index_are_imported() {
    let scratch = Scratch::new("index");
    let cache = scratch.path().join("cache");
    let code = "from pydantic import BaseModel\n\
        class M(BaseModel): x: int\n\
        import jiter, msgspec, rich.text, bs4, requests, httpx\n\
        print(M(x='3'), jiter.from_json(b'[1]'), msgspec.json.encode({'a': 1}), bs4.BeautifulSoup('<p>t', 'html.parser').p.text)";
    let packages = ["pydantic", "jiter", "msgspec", "rich", "beautifulsoup4", "requests", "httpx"];
    let allowed = packages.iter().flat_map(|name| ["--allow-package", name]);
    let with = packages.iter().flat_map(|name| ["--with", name]);
    let run = |args: Vec<&str>, path: Option<&Path>| {
        let mut command =
            command(["run", "--timeout", "2m"].into_iter().chain(args).chain(["-c", code]));
        command.env("XDG_CACHE_HOME", &cache);
        if let Some(path) = path {
            command.env("PATH", path);
        }
        let output = command.output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (String::from_utf8(output.stdout).unwrap(), stderr)
    };
    let expected = "x=3 [1] b'{\"a\":1}' t\n";
    let (stdout, stderr) = run(with.clone().collect(), None);
    assert_eq!(stdout, expected, "{stderr}");
    // Once fetched, they are available without the index, and without a pip that could ask it.
    let (stdout, stderr) = run(with.chain(["--offline"]).collect(), Some(scratch.path()));
    assert_eq!(stdout, expected, "{stderr}");
    let (stdout, stderr) = run(allowed.collect(), None);
    assert_eq!(stdout, expected, "{stderr}");
}

/// H2: a script's declared packages are a request, which the command grants only with an option.
#[test]
fn a_script_does_not_allow_itself_packages() {
    let scratch = Scratch::new("script-packages");
    wheel(scratch.path(), "greeting", "1.0", "def hello(): return 'hi'");
    let block = "# /// script\n# dependencies = [\"greeting>=1\"]\n# ///\n";
    let script =
        scratch.file("script.py", format!("{block}import greeting\nprint(greeting.hello())"));
    let wheels = scratch.path().to_str().unwrap();
    let run = |args: &[&str]| {
        let mut command = command(["run", "--offline", "--wheels", wheels].iter().chain(args));
        let output = command.env("XDG_CACHE_HOME", scratch.path().join("cache")).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), stderr)
    };
    let (code, stdout, stderr) = run(&[&script]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""));
    assert!(stderr.contains("`greeting>=1`") && stderr.contains("--script-packages"), "{stderr}");
    assert_eq!(run(&["--script-packages", &script]).1, "hi\n");
    assert_eq!(run(&["--with", "greeting", &script]).1, "hi\n");
    assert_eq!(run(&["--allow-package", "greeting", &script]).1, "hi\n");
    assert!(run(&["--allow-package", "other", &script]).2.contains("ModuleNotFoundError"));
}
