//! Tests of bundles: code imports their packages under every server of the command, without
//! options.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::mcp::client::Client as Mcp;
use crate::node::Node;
use crate::serve::Client as Pipe;
use isolet_test_support::{Ran, Scratch, assets_dir, command, program, wheel, wheel_that_needs};

const CODE: &str = "import greeting; greeting.hello()";

struct Made {
    scratch: Scratch,
    directory: PathBuf,
}

impl Made {
    /// Makes a bundle of `greeting`, which needs `word`.
    fn new(name: &str) -> Self {
        Self::with(name, &[])
    }

    /// Makes the bundle with these options, too. Where it has sets, their images are made.
    fn with(name: &str, options: &[&str]) -> Self {
        let scratch = Scratch::new(name);
        let wheels = scratch.path().join("wheels");
        std::fs::create_dir(&wheels).unwrap();
        let module = "import word\ndef hello(): return word.HI";
        wheel_that_needs(&wheels, "greeting", "1.0", module, &["word"]);
        wheel(&wheels, "word", "2.0", "HI = 'hi'");
        let directory = scratch.path().join("bundle");
        let made = Self { scratch, directory };
        let wheels = wheels.to_str().unwrap();
        let args = ["packages", "bundle", "greeting", "--wheels", wheels, "--offline"];
        let ran = made.run(&[&args[..], options, &["--to", made.path()]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("wrote 2 wheels ("), "{}", ran.stderr);
        made
    }

    fn path(&self) -> &str {
        self.directory.to_str().unwrap()
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.run_with(args, "")
    }

    fn run_with(&self, args: &[&str], bundle: &str) -> Ran {
        let mut command = command(args);
        command.env("XDG_CACHE_HOME", self.scratch.path().join("cache"));
        command.env("ISOLET_BUNDLE", bundle).output().unwrap().into()
    }
}

#[test]
fn a_program_imports_what_is_in_the_bundle_that_an_option_or_the_environment_names() {
    let made = Made::new("bundle-run");
    let code = "import greeting; print(greeting.hello())";
    let named = made.run(&["run", "--no-image", "--bundle", made.path(), "-c", code]);
    assert_eq!((named.stdout.as_str(), named.stderr.as_str()), ("hi\n", ""));
    let found = made.run_with(&["run", "--no-image", "-c", code], made.path());
    assert_eq!((found.stdout.as_str(), found.stderr.as_str()), ("hi\n", ""));
    for (option, variable) in [("none", made.path()), ("", "none"), ("", "")] {
        let mut args = vec!["run"];
        if !option.is_empty() {
            args.extend(["--bundle", option]);
        }
        let ran = made.run_with(&[&args[..], &["-c", code]].concat(), variable);
        assert!(ran.stderr.contains("No module named 'greeting'"), "{}", ran.stderr);
        assert!(ran.stderr.contains("`--with greeting` loads it"), "{}", ran.stderr);
    }
}

/// As `isolet-science` installs it: beside the program, or for one user.
#[test]
fn a_program_finds_the_bundle_that_is_installed_beside_it_or_for_the_user() {
    let made = Made::new("bundle-found");
    let home = made.scratch.path().join("home");
    let prefix = home.join("prefix");
    let (bin, share) = (prefix.join("bin"), prefix.join("share/isolet"));
    let data = home.join("data");
    for directory in [&bin, &share, &data.join("isolet")] {
        std::fs::create_dir_all(directory).unwrap();
    }
    std::fs::copy(program(), bin.join("isolet")).unwrap();
    let code = "import greeting; print(greeting.hello())";
    let run = || -> Ran {
        let mut command = std::process::Command::new(bin.join("isolet"));
        command.args(["run", "--no-image", "-c", code]).env_remove("ISOLET_BUNDLE");
        command.env("ISOLET_ASSETS", assets_dir()).env("XDG_DATA_HOME", &data);
        command.env("XDG_CACHE_HOME", home.join("cache")).output().unwrap().into()
    };
    assert!(run().stderr.contains("No module named 'greeting'"));
    for place in [share.join("packages"), data.join("isolet/packages")] {
        std::fs::rename(&made.directory, &place).unwrap();
        let ran = run();
        assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hi\n", ""));
        // One that nobody has named stops nobody.
        let manifest = place.join("bundle.json");
        let kept = std::fs::read(&manifest).unwrap();
        std::fs::write(&manifest, "{}").unwrap();
        let ran = run();
        assert!(ran.stderr.contains("that are installed are not used"), "{}", ran.stderr);
        assert!(ran.stderr.contains("No module named 'greeting'"), "{}", ran.stderr);
        std::fs::write(&manifest, kept).unwrap();
        std::fs::rename(&place, &made.directory).unwrap();
    }
}

#[test]
fn what_it_lacks_fails_with_what_there_is_and_how_to_load_more() {
    let made = Made::new("bundle-lacks");
    let ran = made.run(&["run", "--bundle", made.path(), "-c", "import plums"]);
    assert!(ran.stderr.contains("can install no others: greeting\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("hint: `--with plums` loads it"), "{}", ran.stderr);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn a_named_bundle_that_cannot_be_used_is_an_error() {
    let made = Made::new("bundle-broken");
    std::fs::write(made.directory.join("bundle.json"), "{}").unwrap();
    for (args, variable) in
        [(&["run", "--bundle", made.path(), "-c", "1"][..], ""), (&["run", "-c", "1"], made.path())]
    {
        let ran = made.run_with(args, variable);
        assert!(ran.stderr.contains("cannot be used as a bundle"), "{}", ran.stderr);
        assert!(ran.stderr.contains("isolet packages bundle"), "{}", ran.stderr);
        assert_eq!(ran.code, Some(2));
    }
}

#[test]
fn images_are_prepared_once_and_told_of_in_json() {
    let made = Made::with("bundle-prepare", &["--set", "greeting"]);
    let prepare = ["packages", "prepare", "--bundle", made.path()];
    let first = made.run(&prepare);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(first.stderr.lines().last().unwrap().starts_with("greeting: "), "{}", first.stderr);
    let ran = made.run(&[&prepare[..], &["--json"]].concat());
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(told["images"][0]["packages"], json!(["greeting"]), "{told}");
    // Now nothing is made in the background, so nothing is said.
    let code = "import greeting; print(greeting.hello())";
    let ran = made.run(&["run", "--bundle", made.path(), "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("hi\n", ""));
    let none = made.run(&["packages", "prepare", "--bundle", "none"]);
    assert!(none.stderr.contains("`isolet-science` has some"), "{}", none.stderr);
}

#[test]
fn sessions_over_a_pipe_import_it_and_a_policy_can_forbid_it() {
    let made = Made::new("bundle-pipe");
    let mut client = Pipe::greeted(&["--bundle", made.path()]);
    client.ask(&json!(["sandbox", 2, 1, {}]));
    client.ask(&json!(["session", 3, 1, 1]));
    let ran = client.ask(&json!(["run", 4, 1, CODE, {}]));
    assert_eq!(ran["value"], "hi", "{ran}");
    client.ask(&json!(["sandbox", 5, 2, {"bundle": false}]));
    client.ask(&json!(["session", 6, 2, 2]));
    let ran = client.ask(&json!(["run", 7, 2, CODE, {}]));
    assert_eq!(ran["exception"]["message"], "No module named 'greeting'", "{ran}");
}

#[test]
fn a_model_is_told_which_packages_there_are_and_imports_them() {
    let made = Made::new("bundle-mcp");
    let mut client = Mcp::start(&["--bundle", made.path()]);
    let tools = client.request("tools/list", &json!({}));
    let tools = tools["result"]["tools"].to_string();
    assert!(tools.contains("Packages: greeting; no others, and pip does not work."), "{tools}");
    let ran = client.run(CODE);
    assert_eq!(ran["structuredContent"]["value"], "hi", "{ran}");
    let missing = client.run("import plums").to_string();
    assert!(missing.contains("can install no others: greeting"), "{missing}");
}

#[tokio::test]
async fn sessions_of_a_node_import_it() {
    let made = Made::new("bundle-node");
    let node = Node::start(&["--bundle", made.path()]);
    let id = node.session(&json!({})).await;
    let (status, ran) = node.run(&id, CODE).await;
    assert_eq!((status, &ran["value"]), (200, &json!("hi")), "{ran}");
    let without = node.session(&json!({"policy": {"bundle": false}})).await;
    let (_, ran) = node.run(&without, CODE).await;
    assert_eq!(ran["exception"]["message"], "No module named 'greeting'", "{ran}");
}
