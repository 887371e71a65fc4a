//! The process that embeds isolet and that programs try to escape to: has flags in its memory, its
//! environment and a session, and hands out what programs return.

use std::hint::black_box;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use isolet::blocking::Session;
use isolet::{
    Cell, EngineBuilder, Execution, Isolation, Layer, LayerState, Limits, Mount, Outcome, Param,
    Permissions, Sandbox, SandboxBuilder, Tool, ToolSpec, Value, WorkerStart,
};
use serde_json::{Value as Json, json};

use super::flags::{Flags, Kind, VARIABLE};

/// The limit of a session's memory, in bytes.
const MEMORY_BYTES: u64 = 256 << 20;

/// The limit of what a program prints, in bytes: some print all that they find.
const OUTPUT_BYTES: u64 = 8 << 20;

/// What programs begin with.
const PRELUDE: &str = include_str!("../../escape/prelude.py");

/// Whether a program may read the flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Allowed {
    /// It may not: nothing allows it.
    Nothing,
    /// Permissions and tools give it each flag: the control, which has to be found out.
    Everything,
}

/// What the host is told.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) isolation: Isolation,
    pub(crate) allowed: Allowed,
    /// Programs, each with its name.
    pub(crate) programs: Vec<(String, String)>,
    /// Set if native code takes the place of the program's worker.
    pub(crate) worker: Option<PathBuf>,
    /// The limit of a program's time.
    pub(crate) time: Duration,
}

impl Request {
    /// Writes it for the host's process, together with the flags that the host has.
    pub(crate) fn to_json(&self, flags: &Flags) -> Json {
        json!({
            "is_thread": self.isolation == Isolation::Thread,
            "is_control": self.allowed == Allowed::Everything,
            "programs": self.programs,
            "worker": self.worker,
            "seconds": self.time.as_secs_f64(),
            "mounted": flags.mounted(),
            "target": flags.target(),
            "memory": flags.flag(Kind::Memory),
            "session": flags.flag(Kind::Session),
        })
    }
}

/// Runs the programs of a request, and writes a line of JSON for each: how it ended, and what it
/// returned.
pub(crate) fn serve(engine: EngineBuilder, request: &Json, mut answers: impl Write) -> Result<()> {
    let text = |name: &str| request[name].as_str().map(str::to_owned).context("a text is missing");
    let isolation =
        if request["is_thread"] == true { Isolation::Thread } else { Isolation::Process };
    let is_control = request["is_control"] == true;
    // Copies of a flag as they are in a program's memory: on the heap, as text and as bytes.
    let time = request["seconds"].as_f64().context("there is no limit of time")?;
    let time = Duration::from_secs_f64(time);
    let memory = text("memory")?;
    let kept = vec![memory.clone().into_bytes(); 64];
    let engine =
        engine.isolation(isolation).worker_start(WorkerStart::Fresh).spare_sessions(0).build()?;
    let sandbox = || -> Result<SandboxBuilder> {
        let mounted = PathBuf::from(text("mounted")?);
        let mut permissions = Permissions::none().mount("/data", Mount::read_write(&mounted)?)?;
        if is_control {
            let secret = mounted.with_file_name("secret");
            let port = &request["target"]["port"];
            permissions = permissions
                .mount("/secret", Mount::read_only(secret)?)?
                .allow_env(VARIABLE)?
                .allow_net(&format!("127.0.0.1:{port}"))?;
        }
        let echo = Tool::from_handler(
            ToolSpec::new("echo").param(Param::new("text")),
            |given, _| async move { Ok(given) },
        );
        let limits = Limits::default()
            .max_run_time(time)
            .max_memory_bytes(MEMORY_BYTES)
            .max_stdout_bytes(OUTPUT_BYTES)
            .max_stderr_bytes(OUTPUT_BYTES);
        Ok(Sandbox::builder(&engine).limits(limits).permissions(permissions).tool(echo))
    };
    let mut other = sandbox()?.build()?.blocking().session()?;
    let plant = Cell::new("open('/tmp/secret', 'w').write(secret); 0");
    other.run(plant.inputs([("secret", text("session")?)]))?;
    let process = process_of(&other);
    let mut builder = sandbox()?;
    if let Some(worker) = request["worker"].as_str() {
        builder = builder.worker(worker);
    }
    if is_control {
        for tool in tools_of_the_control(memory, text("session")?) {
            builder = builder.tool(tool);
        }
    }
    let sandbox = builder.build()?;
    let mut target = request["target"].clone();
    target["host"] = std::process::id().into();
    target["worker"] = process.into();
    for program in request["programs"].as_array().into_iter().flatten() {
        let (name, code) = (program[0].as_str(), program[1].as_str());
        let (name, code) = name.zip(code).context("a program has a name and code")?;
        let cell = Cell::new(format!("{PRELUDE}\n{code}")).name(name);
        let cell = cell.inputs([("target", target.to_string())]);
        let (returned, ended) = match sandbox.blocking().session() {
            Ok(mut session) => match session.run(cell) {
                Ok(execution) => (returned(&execution, &mut session), ended(&execution)),
                Err(error) => (error.to_string(), format!("{error}")),
            },
            Err(error) => (error.to_string(), format!("{error}")),
        };
        let answer = json!({"ended": ended, "returned": returned});
        writeln!(answers, "{answer}")?;
    }
    answers.flush()?;
    drop(black_box(kept));
    // The other session has its flag until now.
    drop(other);
    Ok(())
}

/// Gives the control what permissions do not give.
fn tools_of_the_control(memory: String, session: String) -> [Tool; 3] {
    let constant = |name: &str, text: String| {
        Tool::from_handler(ToolSpec::new(name), move |_, _| {
            let text = text.clone();
            async move { Ok(Value::from(text)) }
        })
    };
    let spec = ToolSpec::new("process_list").param(Param::new("process"));
    let processes = Tool::from_handler(spec, |given, _| async move {
        let number: String = given.to_string().chars().filter(char::is_ascii_digit).collect();
        let line = std::fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
        Ok(Value::from(String::from_utf8_lossy(&line).into_owned()))
    });
    [constant("memory", memory), constant("session", session), processes]
}

/// Returns the number of a session's process; this one's, if it has none of its own.
fn process_of(session: &Session) -> u32 {
    let state = session.isolation().layers().find(|(layer, _)| *layer == Layer::Process);
    let detail = match state {
        Some((_, LayerState::Enforced(detail))) => detail.clone(),
        _ => String::new(),
    };
    let digits: String = detail
        .chars()
        .skip_while(|c| !c.is_ascii_digit())
        .take_while(char::is_ascii_digit)
        .collect();
    digits.parse().unwrap_or_else(|_| std::process::id())
}

/// Everything that a program has returned, in this run and to the one after it.
fn returned(execution: &Execution, session: &mut Session) -> String {
    let later = session.run("0").map(|later| later.stdout().to_owned()).unwrap_or_default();
    let besides = (execution.value(), execution.displays(), execution.files(), execution.locals());
    let ended = execution.outcome();
    [execution.stdout(), execution.stderr(), &format!("{ended:?} {besides:?}"), &later].join("\n")
}

/// How a program ended, in short.
fn ended(execution: &Execution) -> String {
    match execution.outcome() {
        Outcome::Completed(_) => "completed".to_owned(),
        Outcome::Submitted(_) => "submitted".to_owned(),
        Outcome::Raised(error) => format!("{}: {}", error.type_name, error.message),
        Outcome::Exited(status) => format!("exit status {status}"),
        Outcome::Terminated(termination) => format!("{termination}"),
        other => format!("{other:?}"),
    }
}
