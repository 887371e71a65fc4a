//! Tests the plan of a move to another `deno_core` on two small trees of crates.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::*;

/// A small tree of crates, with sources.
struct Crates {
    dir: PathBuf,
}

impl Crates {
    /// Writes what a plan reads, under a name of its test.
    fn new(test: &str, v8: [&str; 4]) -> Self {
        let name = format!("isolet-xtask-bump-{test}-{}-{}", v8.join("."), std::process::id());
        let crates = Self { dir: env::temp_dir().join(name) };
        crates.write("core/lib.rs", "pub use ops::op2;\npub struct OpState;\n");
        crates.ops("  op_close,\n  ops_v8::op_eval, // with a comment, of two parts\n  op_run");
        crates.write("core/01_core.js", "const core = { createTimer, cancelTimer };\n");
        crates.write("v8/src/lib.rs", "pub struct Isolate;\n");
        let names = ["MAJOR_VERSION", "MINOR_VERSION", "BUILD_NUMBER", "PATCH_LEVEL"];
        let version = names.iter().zip(v8).map(|(name, n)| format!("#define V8_{name} {n}\n"));
        crates.write("v8/v8/include/v8-version.h", &version.collect::<String>());
        crates.write("v8/v8/include/v8-wasm.h", "class CompiledWasmModule;\n");
        for name in ["code-manager", "engine", "tier"] {
            crates.write(&format!("v8/v8/src/wasm/wasm-{name}.h"), name);
        }
        crates
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn ops(&self, list: &str) {
        self.write("core/ops_builtin.rs", &format!("\nbuiltin_ops! {{\n{list}\n}}\n"));
    }

    fn engine(&self, versions: &Versions) -> Engine {
        let Versions { deno_core, deno_error, v8, url } = versions;
        let manifest = |name: &str| self.dir.join(name).join("Cargo.toml");
        let package = |name: &str, version: &str| {
            json!({"id": name, "name": name, "version": version, "manifest_path": manifest(name),
                   "dependencies": [], "features": {}})
        };
        let mut core = package("deno_core", deno_core);
        core["manifest_path"] = json!(manifest("core"));
        core["features"]["default"] = json!(["v8"]);
        core["dependencies"] = json!([{"name": "deno_core_icudata", "req": "^0.77.0"}]);
        let mut newer_url = package("url", url);
        newer_url["id"] = json!("url of deno_core");
        let uses = |name: &str, id: &str| json!({"name": name, "pkg": id});
        let metadata: Value = json!({
            "packages": [package("isolet", "0.1.0"), core, package("deno_error", deno_error),
                         package("v8", v8), package("url", "2.5.8"), newer_url],
            "resolve": {"nodes": [
                {"id": "isolet", "deps": [uses("deno_core", "deno_core"), uses("url", "url")]},
                {"id": "deno_core", "deps": [uses("deno_error", "deno_error"),
                                             uses("url", "url of deno_core")]},
            ]},
        });
        let locked = [("deno_core", deno_core), ("v8", v8), ("url", url)];
        let locked = locked.map(|(name, version)| {
            format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"\n")
        });
        Engine::read(Tree::parse(&metadata, locked.concat()).unwrap()).unwrap()
    }
}

impl Drop for Crates {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.dir);
    }
}

struct Versions {
    deno_core: &'static str,
    deno_error: &'static str,
    v8: &'static str,
    url: &'static str,
}

const BEFORE: Versions =
    Versions { deno_core: "0.1.0", deno_error: "0.7.1", v8: "150.0.0", url: "2.5.8" };
const AFTER: Versions =
    Versions { deno_core: "0.2.0", deno_error: "0.8.0", v8: "151.0.0", url: "3.0.0" };

fn ours() -> Ours {
    Ours {
        rust: "use deno_core::{OpState, op2, v8};\nlet isolate: v8::Isolate;".to_owned(),
        scripts: "const { createTimer, cancelTimer } = core;".to_owned(),
        golden: "kept     op_run: runs\nours     op_isolet_a\nstubbed  op_close\n\
                 stubbed  op_eval\n"
            .to_owned(),
        fuzz_lock: "name = \"url\"\nversion = \"2.5.8\"\n".to_owned(),
        archive: "150.0.0".to_owned(),
    }
}

fn broken(plan: &Plan) -> Vec<&str> {
    let findings = plan.findings.iter();
    let lines = findings.filter_map(|finding| match finding {
        Finding::Broken(line) => Some(line.as_str()),
        _ => None,
    });
    lines.collect()
}

fn has_changed(plan: &Plan, line: &str) -> bool {
    plan.findings.contains(&Finding::Changed(line.to_owned()))
}

#[test]
fn the_pinned_version_changes_nothing() {
    let crates = Crates::new("same", ["15", "0", "1", "2"]);
    let plan = compared(&crates.engine(&BEFORE), &crates.engine(&BEFORE), &ours());
    assert!(plan.is_empty(), "{}", plan.shown(true));
    assert!(plan.findings.contains(&Finding::Kept("3 ops of deno_core".to_owned())));
    assert!(plan.findings.contains(&Finding::Kept("V8: 15.0.1.2-rusty".to_owned())));
}

#[test]
fn a_move_with_another_v8_edits_the_pins_and_has_the_archive_built() {
    let old = Crates::new("moved", ["15", "0", "1", "2"]);
    let new = Crates::new("moved", ["15", "1", "1", "2"]);
    new.ops("  op_close,\n  ops_v8::op_eval,\n  op_run,\n  op_pipe");
    new.write("v8/v8/src/wasm/wasm-tier.h", "another one");
    let plan = compared(&old.engine(&BEFORE), &new.engine(&AFTER), &ours());

    assert!(has_changed(&plan, "V8: 15.0.1.2-rusty becomes 15.1.1.2-rusty"));
    assert!(has_changed(&plan, "deno_core has a new op `op_pipe`"));
    assert!(has_changed(&plan, "`v8/src/wasm/wasm-tier.h`"));
    assert!(has_changed(&plan, "`url` 2.5.8 becomes 3.0.0 in `Cargo.lock`"));
    let apart = "isolet has `url` 2.5.8 and deno_core 3.0.0, which are compiled both; change the \
                 version in `Cargo.toml`";
    assert_eq!(broken(&plan), [apart]);

    let edits: Vec<String> = plan.edits.iter().map(ToString::to_string).collect();
    assert_eq!(
        edits,
        [
            "Cargo.toml: `deno_core = { version = \"=0.1.0\"` becomes `deno_core = { version = \
             \"=0.2.0\"`",
            "Cargo.toml: `deno_error = { version = \"=0.7.1\"` becomes `deno_error = { version = \
             \"=0.8.0\"`",
            "src/data/version.rs: `\"15.0.1.2-rusty\"` becomes `\"15.1.1.2-rusty\"`",
            "third_party/v8/build-v8.sh: `deno_core 0.1.0` becomes `deno_core 0.2.0`",
            "third_party/v8/build-v8.sh: `V8_CRATE=150.0.0` becomes `V8_CRATE=151.0.0`",
            "Cargo.lock: by cargo, from the pins",
            "fuzz/Cargo.lock: url 2.5.8 becomes 3.0.0",
            "third_party/licenses/THIRD-PARTY.txt: is written anew",
        ]
    );

    let chores: Vec<Chore> = plan.tasks.iter().map(|task| task.chore).collect();
    let v8 = [Chore::BuildV8, Chore::TakeV8, Chore::CompileEngine, Chore::NativeCode];
    assert_eq!(chores, [&v8[..], &[Chore::Golden, Chore::Ci]].concat());
    assert_eq!(plan.tasks[3].details.last().unwrap(), "set `CHECKED_V8` to `15.1.1.2-rusty`");
    assert!(plan.tasks[3].details[0].starts_with("diff "), "{:?}", plan.tasks[3]);
}

#[test]
fn a_move_with_the_same_v8_keeps_its_archive() {
    let crates = Crates::new("v8", ["15", "0", "1", "2"]);
    let after = Versions { deno_core: "0.1.1", ..BEFORE };
    let plan = compared(&crates.engine(&BEFORE), &crates.engine(&after), &ours());
    assert_eq!(broken(&plan), Vec::<&str>::new());
    let chores: Vec<Chore> = plan.tasks.iter().map(|task| task.chore).collect();
    assert_eq!(chores, [Chore::CompileEngine, Chore::Golden, Chore::Ci]);
    let edits: Vec<String> = plan.edits.iter().map(ToString::to_string).collect();
    let readme = "third_party/v8/README.md: `deno_core 0.1.0` becomes `deno_core 0.1.1`";
    assert!(edits.iter().any(|edit| edit == readme), "{edits:?}");
}

#[test]
fn what_isolet_uses_and_a_version_has_no_more_is_told() {
    let old = Crates::new("gone", ["15", "0", "1", "2"]);
    let new = Crates::new("gone", ["15", "0", "1", "3"]);
    new.ops("  op_close");
    new.write("core/lib.rs", "pub use ops::op2;\n");
    new.write("core/01_core.js", "const core = { createTimer };\n");
    fs::remove_file(new.dir.join("v8/v8/src/wasm/wasm-engine.h")).unwrap();
    let plan = compared(&old.engine(&BEFORE), &new.engine(&BEFORE), &ours());
    assert_eq!(
        broken(&plan),
        [
            "deno_core has no `op_run`, which isolet keeps",
            "deno_core's and V8's Rust has no `OpState` any more",
            "deno_core's JavaScript has no `cancelTimer` any more",
            "the crate `v8` has no `v8/src/wasm/wasm-engine.h`",
        ]
    );
    assert!(has_changed(&plan, "deno_core has no `op_eval` any more"));
}

#[test]
fn a_golden_list_that_lacks_an_op_is_told() {
    let crates = Crates::new("golden", ["15", "0", "1", "2"]);
    let golden = ours().golden.replace("stubbed  op_eval\n", "");
    let ours = Ours { golden, ..ours() };
    let plan = compared(&crates.engine(&BEFORE), &crates.engine(&BEFORE), &ours);
    let lacks = "`tests/golden/ops.txt` lacks `op_eval`, which deno_core has now";
    assert_eq!(broken(&plan), [lacks]);
    assert!(!plan.is_empty());
}

#[test]
fn the_pin_is_read_from_the_manifest() {
    let lock = fs::read_to_string(process::root().join("Cargo.lock")).unwrap();
    let locked = vendored_v8::locked_version(&lock, "deno_core");
    assert_eq!(Some(&*pinned().unwrap().to_string()), locked);
}
