//! Helpers of the tests: a shared engine, its sessions, the built command and scratch directories.

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::{LazyLock, Once, mpsc};
use std::thread;
use std::time::Duration;

use isolet::{
    Cell, Engine, EngineBuilder, Execution, Isolation, Layer, LayerState, Limits, Outcome,
    OutputChunk, PyException, RunEvent, Sandbox, Session, Value,
};

/// The time limit for events that a test waits for.
pub(crate) const LONGEST: Duration = Duration::from_mins(3);

/// The time limit for all tests together. It also ends tests that have no limit of their own.
const LONGEST_SUITE: Duration = Duration::from_mins(45);

static ENGINE: LazyLock<Engine> = LazyLock::new(|| engine_builder().build().unwrap());

/// Begins an engine of the tests' assets, isolation and command.
pub(crate) fn engine_builder() -> EngineBuilder {
    let builder = Engine::builder().assets(assets_dir()).isolation(isolation());
    builder.worker(env!("CARGO_BIN_EXE_isolet"))
}

/// Where the tests' sessions run, according to the environment variable that the command uses too.
pub(crate) fn isolation() -> Isolation {
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    match std::env::var("ISOLET_ISOLATION").as_deref() {
        Ok("process") => Isolation::Process,
        _ => Isolation::Thread,
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn assets_dir() -> PathBuf {
    end_the_suite_in_time();
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let named = std::env::var_os(isolet::ASSETS_VARIABLE).filter(|dir| !dir.is_empty());
    named.map_or_else(|| root().join("pyodide-assets/dist"), PathBuf::from)
}

/// Ends this program when the suite has taken too long. The test runner has already printed which
/// tests are still running.
fn end_the_suite_in_time() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let end = || {
            thread::sleep(LONGEST_SUITE);
            let limit = LONGEST_SUITE.as_secs();
            let _ = writeln!(std::io::stderr(), "the tests have not ended within {limit} s");
            std::process::abort();
        };
        thread::spawn(end);
    });
}

pub(crate) fn engine() -> &'static Engine {
    &ENGINE
}

pub(crate) fn sandbox(limits: Limits) -> Sandbox {
    Sandbox::builder(&ENGINE).limits(limits).build().unwrap()
}

pub(crate) fn builder() -> isolet::SandboxBuilder {
    Sandbox::builder(&ENGINE)
}

pub(crate) async fn session() -> Session {
    sandbox(Limits::default()).session().await.unwrap()
}

/// Runs a cell in a separate session.
pub(crate) async fn run(cell: impl Into<Cell>) -> Execution {
    sandbox(Limits::default()).run(cell).await.unwrap()
}

/// Runs a cell that must complete with a value.
pub(crate) async fn eval(session: &mut Session, cell: impl Into<Cell>) -> Value {
    let execution = session.run(cell).await.unwrap();
    match execution.value() {
        Some(value) => value.clone(),
        None => panic!("there is no value: {execution:?}"),
    }
}

/// Runs a cell that must complete.
pub(crate) async fn exec(session: &mut Session, cell: impl Into<Cell>) -> Execution {
    let execution = session.run(cell).await.unwrap();
    assert!(matches!(execution.outcome(), Outcome::Completed(_)), "{execution:?}");
    execution
}

/// Runs a cell that must raise.
pub(crate) async fn raised(session: &mut Session, cell: impl Into<Cell>) -> PyException {
    let execution = session.run(cell).await.unwrap();
    match execution.exception() {
        Some(exception) => exception.clone(),
        None => panic!("nothing was raised: {execution:?}"),
    }
}

/// Returns the output of an event, which must be output.
pub(crate) fn output(event: RunEvent) -> OutputChunk {
    match event {
        RunEvent::Output(chunk) => chunk,
        other => panic!("this is no output: {other:?}"),
    }
}

/// The result of the command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Returns the built command, with an empty standard input.
pub(crate) fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolet"));
    command.args(args).env(isolet::ASSETS_VARIABLE, assets_dir()).stdin(Stdio::null());
    command
}

pub(crate) fn isolet<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Ran {
    command(args).output().unwrap().into()
}

/// Runs the command with `input` as its standard input.
pub(crate) fn isolet_fed<S: AsRef<OsStr>>(
    args: impl IntoIterator<Item = S>,
    input: impl AsRef<[u8]>,
) -> Ran {
    let mut child = command(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Small enough for the pipe. A command may end before it has read its input.
    let _ = child.stdin.take().unwrap().write_all(input.as_ref());
    child.wait_with_output().unwrap().into()
}

/// Waits for a command that must end, and kills it if it does not.
pub(crate) fn ended(mut child: Child) -> ExitStatus {
    let id = child.id().to_string();
    let (sender, ended) = mpsc::channel();
    std::thread::spawn(move || sender.send(child.wait()));
    if let Ok(status) = ended.recv_timeout(LONGEST) {
        return status.unwrap();
    }
    let _ = Command::new("kill").args(["-KILL", &id]).status();
    panic!("the command has not ended within {LONGEST:?}");
}

/// A separate, empty directory for one test, removed on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    pub(crate) fn new(test: &str) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("it-{test}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        Self(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns its path.
    pub(crate) fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, contents).unwrap();
        path.into_os_string().into_string().unwrap()
    }

    /// Writes a program and returns its path.
    #[cfg(unix)]
    pub(crate) fn program(&self, name: &str, script: &str) -> PathBuf {
        let path = self.0.join(name);
        // Written by another process. If a thread of this one held the file open for writing while
        // another thread forks, the file could not be run.
        let write = "printf %s \"$1\" > \"$2\" && chmod 700 \"$2\"";
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", write, "sh", script]).arg(&path);
        assert!(shell.status().unwrap().success());
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Anything left stays in the target directory.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns the number of a worker's process and, if the worker is a copy, the number of its
/// template.
pub(crate) fn processes(session: &Session) -> (u32, Option<u32>) {
    let state = session.isolation().layers().find(|(layer, _)| *layer == Layer::Process);
    let Some((_, LayerState::Enforced(detail))) = state else { panic!("{state:?}") };
    let numbers: Vec<u32> =
        detail.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect();
    (numbers[0], numbers.get(1).copied())
}

/// Makes a wheel with one module.
pub(crate) fn wheel(directory: &Path, name: &str, version: &str, module: &str) -> PathBuf {
    let path = directory.join(format!("{name}-{version}-py3-none-any.whl"));
    let script = "import sys, zipfile\n\
        path, name, version, module = sys.argv[1:]\n\
        with zipfile.ZipFile(path, 'w') as z:\n\
        \x20   z.writestr(f'{name}.py', module)\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/METADATA', f'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/WHEEL', 'Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20   z.writestr(f'{name}-{version}.dist-info/RECORD', '')\n";
    let made = std::process::Command::new("python3")
        .args(["-c", script, path.to_str().unwrap(), name, version, module])
        .status()
        .unwrap();
    assert!(made.success());
    path
}
