//! A library without the feature `engine`: no V8 in this program, and the built command `isolet` as
//! its workers.
//!
//! `cargo xtask test` runs it, with the command's path in `ISOLET_TEST_WORKER`.

#![cfg(not(feature = "engine"))]
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests panic as tests do; clippy knows only the test functions themselves"
)]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolet::{
    Engine, EngineBuilder, ErrorKind, Isolation, Limits, Outcome, Permissions, Sandbox,
    Termination, Tool, Value,
};

#[expect(clippy::disallowed_methods, reason = "settings of the tests")]
fn path_of(variable: &str) -> PathBuf {
    std::env::var_os(variable).map_or_else(|| panic!("set {variable}"), PathBuf::from)
}

fn worker() -> PathBuf {
    path_of("ISOLET_TEST_WORKER")
}

fn builder() -> EngineBuilder {
    Engine::builder().assets(path_of(isolet::ASSETS_VARIABLE)).worker(worker())
}

/// The assets alone, without an image.
fn bare_assets() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in isolet_pyodide_assets::lock().unwrap().files() {
        let from = path_of(isolet::ASSETS_VARIABLE).join(file.name());
        std::fs::copy(from, dir.path().join(file.name())).unwrap();
    }
    dir
}

fn images(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| Path::new(name).extension().is_some_and(|end| end == "bin")).collect()
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    n: i64,
}

#[test]
fn a_session_has_values_output_tools_and_deadlines() {
    let double = Tool::from_fn("double", |of: Number, _| async move { Ok(of.n * 2) });
    let limits = Limits::default().max_run_time(Duration::from_secs(1));
    let engine = builder().build().unwrap();
    let sandbox = Sandbox::builder(&engine).limits(limits).tool(double).build().unwrap();
    let mut session = sandbox.blocking().session().unwrap();
    assert_eq!(session.isolation().isolation(), Isolation::Process);
    let execution = session.run("print('hi'); [double(21), 'a']").unwrap();
    assert_eq!(execution.stdout(), "hi\n");
    assert_eq!(execution.value().unwrap().to_string(), "[42, 'a']");
    let execution = session.run("while True: pass").unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })), "{outcome:?}");
}

#[test]
fn the_command_makes_an_image_where_there_is_none() {
    let assets = bare_assets();
    assert_eq!(images(assets.path()), [""; 0]);
    let engine = builder().assets(assets.path()).build().unwrap();
    assert_eq!(images(assets.path()).len(), 1);
    assert_eq!(engine.image_path().unwrap().parent(), Some(assets.path()));
    let mut session = Sandbox::builder(&engine).build().unwrap().blocking().session().unwrap();
    assert_eq!(session.run("40 + 2").unwrap().value(), Some(&Value::Int(42)));
}

#[test]
fn the_command_preloads_packages_from_where_the_host_says() {
    let assets = bare_assets();
    wheel(assets.path(), "greeting", "word = 'hello'");
    let sources = Permissions::none()
        .wheels(assets.path())
        .package_cache(assets.path().join("cache"))
        .offline_packages();
    let builder = || builder().assets(assets.path()).packages_from(&sources);
    let engine = builder().preload("greeting").unwrap().build().unwrap();
    let mut session = Sandbox::builder(&engine).build().unwrap().blocking().session().unwrap();
    let word = session
        .run("import sys; assert 'greeting' in sys.modules; import greeting; greeting.word")
        .unwrap();
    assert_eq!(word.value(), Some(&Value::from("hello")), "{word:?}");

    wheel(assets.path(), "broken", "raise LookupError('not today')");
    let error = builder().preload("broken").unwrap().build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Start);
    assert!(error.to_string().contains("not today"), "{error}");
}

#[test]
fn a_damaged_image_is_refused_and_replaced_if_asked() {
    let assets = bare_assets();
    let engine = builder().assets(assets.path()).build().unwrap();
    let image = engine.image_path().unwrap().to_owned();
    let mut bytes = std::fs::read(&image).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    // The file is replaced as a whole: the workers of the first engine have the other one.
    std::fs::remove_file(&image).unwrap();
    std::fs::write(&image, bytes).unwrap();
    let error = builder().assets(assets.path()).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Assets);
    assert!(error.to_string().contains("has the wrong BLAKE3"), "{error}");
    builder().assets(assets.path()).replace_damaged_image().build().unwrap();
    builder().assets(assets.path()).build().unwrap();
}

#[test]
fn a_program_that_is_no_isolet_makes_no_image_and_is_named() {
    let assets = bare_assets();
    for program in ["/bin/true", "/bin/false", "/nowhere/isolet"] {
        let error = builder().assets(assets.path()).worker(program).build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Start);
        assert!(error.to_string().contains(program), "{error}");
    }
}

#[test]
fn a_session_on_a_thread_is_refused_with_what_helps() {
    let engine = builder().isolation(Isolation::Thread).build().unwrap();
    let error = Sandbox::builder(&engine).build().unwrap().blocking().session().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert!(error.to_string().contains("without its feature `engine`"), "{error}");
    assert!(error.hint().unwrap().contains("Isolation::Process"), "{error}");
    assert_eq!(Engine::lost_threads(), 0);
}

/// Makes a wheel of one module.
fn wheel(dir: &Path, name: &str, module: &str) {
    let info = format!("{name}-1.dist-info");
    let path = dir.join(format!("{name}-1-py3-none-any.whl"));
    let mut wheel = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (file, text) in [
        (format!("{name}.py"), module.to_owned()),
        (format!("{info}/METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")),
        (
            format!("{info}/WHEEL"),
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
        ),
        (format!("{info}/RECORD"), String::new()),
    ] {
        wheel.start_file(file, zip::write::SimpleFileOptions::default()).unwrap();
        wheel.write_all(text.as_bytes()).unwrap();
    }
    wheel.finish().unwrap();
}
