//! Tests the plan of a move to another Pyodide on two small releases.

use std::env;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::formats::tests::{archive, module};
use super::release::Archive;
use super::*;
use isolet_pyodide_assets::Digest;

/// The files of a small release.
struct Files {
    dir: PathBuf,
}

impl Files {
    fn new(test: &str, version: &str) -> Self {
        let name = format!("isolet-xtask-bump-{test}-{version}-{}", std::process::id());
        let files = Self { dir: env::temp_dir().join(name) };
        fs::create_dir_all(&files.dir).unwrap();
        files.write("pyodide.asm.mjs", "function boot(){mergeLibSymbols(a);return FS.createNode}");
        files.write("pyodide.asm.wasm", module(&["PyErr_Raise", "malloc"]));
        files.write("python_stdlib.zip", archive(&[("_pyodide/_base.py", 1), ("json.py", 2)]));
        files.packages("3.14.2", "aa");
        files.write("pyodide.mjs", "loads");
        files
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.dir.join(name), bytes).unwrap();
    }

    fn packages(&self, python: &str, sha256: &str) {
        let numpy = json!({"version": "2.4.3", "sha256": sha256});
        let info = json!({"python": python, "abi_version": "2026_0"});
        let list: Value = json!({"info": info, "packages": {"numpy": numpy}});
        self.write("pyodide-lock.json", list.to_string());
    }

    fn release(&self, version: &str) -> Release {
        let archive = Archive { sha256: Digest::of(version.as_bytes()), size: 7 };
        Release::read(version, self.dir.clone(), Some(archive)).unwrap()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn ours() -> Ours {
    let patch = |name: &str, find: &str| {
        let patch = json!({"name": name, "why": "for a test", "find": find, "replace": ""});
        serde_json::from_value(patch).unwrap()
    };
    Ours {
        patches: vec![patch("later", "mergeLibSymbols(a);"), patch("boots", "boot(){")],
        adapt: "const RAISES: &str = \"PyErr_Raise\";".to_owned(),
        scripts: "// Words of a comment: function.\nFS.createNode(module._malloc(1));".to_owned(),
        python: "import json\nfrom _pyodide._base import x\n".to_owned(),
        wheels: "wheel = \"aa\"".to_owned(),
        mentions: vec!["docs/performance.md:7".to_owned()],
    }
}

fn lines(plan: &Plan, choose: fn(&Finding) -> Option<&String>) -> Vec<&str> {
    plan.findings.iter().filter_map(choose).map(String::as_str).collect()
}

fn broken(plan: &Plan) -> Vec<&str> {
    lines(plan, |finding| match finding {
        Finding::Broken(line) => Some(line),
        _ => None,
    })
}

fn changed(plan: &Plan) -> Vec<&str> {
    lines(plan, |finding| match finding {
        Finding::Changed(line) => Some(line),
        _ => None,
    })
}

#[test]
fn the_pinned_release_changes_nothing() {
    let files = Files::new("pyodide-same", "1.0.0");
    let plan = compared(&files.release("1.0.0"), &files.release("1.0.0"), &ours());
    assert!(plan.is_empty(), "{}", plan.shown(true));
    let kept = Finding::Kept("2 patches, with the text around them".to_owned());
    assert!(plan.findings.contains(&kept));
    let kept = "4 names and texts of both that isolet uses".to_owned();
    assert!(plan.findings.contains(&Finding::Kept(kept)), "{}", plan.shown(true));
}

#[test]
fn a_patch_whose_text_is_not_there_once_is_told_with_its_reason() {
    let (old, new) = (Files::new("patches", "1.0.0"), Files::new("patches", "1.1.0"));
    new.write("pyodide.asm.mjs", "boot(){}function boot(){return FS.createNode}");
    let plan = compared(&old.release("1.0.0"), &new.release("1.1.0"), &ours());
    assert_eq!(
        broken(&plan),
        [
            "patch `later` matches 0 times instead of once: for a test",
            "patch `boots` matches 2 times instead of once: for a test",
        ]
    );
    let task = plan.tasks.iter().find(|task| task.chore == Chore::Patches).unwrap();
    let detail = "`later` needs another place, or is not needed any more";
    assert_eq!(task.details[0], detail);
}

#[test]
fn a_patch_that_fits_in_another_surrounding_is_looked_at() {
    let (old, new) = (Files::new("around", "1.0.0"), Files::new("around", "1.1.0"));
    let text = "function boot(){mergeLibSymbols(a);return FS.createNode||0}";
    new.write("pyodide.asm.mjs", text);
    let plan = compared(&old.release("1.0.0"), &new.release("1.1.0"), &ours());
    assert_eq!(broken(&plan), Vec::<&str>::new());
    assert!(changed(&plan).contains(&"the text around patch `later`"));
}

#[test]
fn names_and_modules_that_isolet_uses_and_a_release_has_no_more_are_told() {
    let (old, new) = (Files::new("names", "1.0.0"), Files::new("names", "1.1.0"));
    let text = "function boot(){mergeLibSymbols(a);return FS.makeNode}";
    new.write("pyodide.asm.mjs", text);
    new.write("pyodide.asm.wasm", module(&["free"]));
    new.write("python_stdlib.zip", archive(&[("_pyodide/_base.py", 9)]));
    let plan = compared(&old.release("1.0.0"), &new.release("1.1.0"), &ours());
    assert_eq!(
        broken(&plan),
        [
            "CPython has no `PyErr_Raise` any more",
            "CPython has no `malloc` any more",
            "`pyodide.asm.mjs` has no `createNode` any more",
            "the standard library has no module `json` any more",
        ]
    );
    let exports = "exports of CPython: 2 of 2 are gone, 1 are new";
    assert!(changed(&plan).contains(&exports));
    assert!(changed(&plan).contains(&"`_pyodide/_base.py`"));
}

#[test]
fn a_release_edits_the_lock_and_names_what_is_left() {
    let (old, new) = (Files::new("edits", "1.0.0"), Files::new("edits", "1.1.0"));
    new.packages("3.15.0", "bb");
    new.write("pyodide.mjs", "loads otherwise");
    let [old, new] = [old.release("1.0.0"), new.release("1.1.0")];
    let plan = compared(&old, &new, &ours());
    assert!(changed(&plan).contains(&"`python`: 3.14.2 becomes 3.15.0"));

    let [before, after] = [&old, &new].map(|release| {
        let file = &release.files["pyodide-lock.json"];
        let (sha256, size) = (file.sha256, file.size);
        format!("name = \"pyodide-lock.json\"\nsha256 = \"{sha256}\"\nsize = {size}\n")
    });
    let path = "pyodide-assets/lock.toml".to_owned();
    assert_eq!(plan.edits[0], Edit::Replace { path, find: before, with: after });
    let edits: Vec<String> = plan.edits.iter().skip(1).map(ToString::to_string).collect();
    assert_eq!(
        edits,
        [
            "pyodide-assets/lock.toml: the lines after `name = \"pyodide-1.0.0.tgz\"`",
            "pyodide-assets/lock.toml: `1.0.0` becomes `1.1.0`",
            "pyodide-assets/src/lock.rs: `1.0.0` becomes `1.1.0`",
            "pyodide-assets/src/patches.rs: `1.0.0` becomes `1.1.0`",
            "docs/concepts/limitations.md: `CPython 3.14.2, built for WebAssembly by Pyodide \
             1.0.0.` becomes `CPython 3.15.0, built for WebAssembly by Pyodide 1.1.0.`",
            "third_party/licenses/THIRD-PARTY.txt: `Pyodide 1.0.0:` becomes `Pyodide 1.1.0:`",
            "pyodide-assets/patches/1.0.0: becomes pyodide-assets/patches/1.1.0",
        ]
    );

    let details = |chore| {
        let task = plan.tasks.iter().find(|task| task.chore == chore);
        task.map(|task| task.details.clone()).unwrap_or_default()
    };
    let numpy = "numpy 2.4.3 with sha256 bb is not listed in `[[build]]`";
    assert_eq!(details(Chore::Wheels), [numpy]);
    assert_eq!(details(Chore::Mentions), ["docs/performance.md:7"]);
    assert!(details(Chore::Loader)[0].starts_with("diff "));
    assert!(plan.tasks.iter().any(|task| task.chore == Chore::CpythonTests));
}

#[test]
fn a_release_without_a_file_is_told() {
    let files = Files::new("files", "1.0.0");
    let read = || Release::read("1.0.0", files.dir.clone(), None);
    let before = read().unwrap();
    fs::remove_file(files.dir.join("pyodide.asm.mjs")).unwrap();
    let plan = compared(&before, &read().unwrap(), &ours());
    assert_eq!(broken(&plan)[0], "the package has no `pyodide.asm.mjs`");
    files.write("python_stdlib.zip", "no archive");
    assert_eq!(read().err().unwrap().to_string(), "`python_stdlib.zip` is no zip archive");
}
