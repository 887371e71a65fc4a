//! The same work through the library, in another process, which gets its orders as lines.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};
use isolet::blocking::Session;
use isolet::{Engine, Sandbox, Value};

use super::control_group::ControlGroup;
use super::{Subject, Work, in_threads};

/// The argument that makes a process the one that does the work.
pub(crate) const ARGUMENT: &str = "library";

const WORKS: [(&str, Work); 5] = [
    ("create", Work::Create),
    ("run_each", Work::RunEach),
    ("run", Work::Run),
    ("end", Work::End),
    ("once", Work::Once),
];

pub(crate) struct Library {
    process: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
    group: ControlGroup,
}

impl Library {
    pub(crate) fn start() -> Result<Self> {
        let group = ControlGroup::new("library")?;
        let program = std::env::current_exe()?;
        let mut command = group.command(program.to_str().context("the path is no text")?);
        command.arg(ARGUMENT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn()?;
        let orders = process.stdin.take().context("no standard input")?;
        let answers = BufReader::new(process.stdout.take().context("no standard output")?);
        Ok(Self { process, orders, answers, group })
    }
}

impl Subject for Library {
    fn order(&mut self, work: Work, count: usize, clients: usize) -> Result<()> {
        let name = WORKS.iter().find(|(_, its)| *its == work).map(|(name, _)| *name);
        writeln!(self.orders, "{} {count} {clients}", name.context("no such work")?)?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        ensure!(answer == "done\n", "the library's process has failed");
        Ok(())
    }

    fn group(&self) -> &ControlGroup {
        &self.group
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Carries out the orders on standard input.
pub(crate) fn serve() -> Result<()> {
    let engine =
        Engine::builder().worker(env!("CARGO_BIN_EXE_isolet")).max_sessions(10_000).build()?;
    let sandbox = Sandbox::builder(&engine).build()?;
    let mut sessions = Vec::new();
    for line in std::io::stdin().lines() {
        let line = line?;
        let words: Vec<&str> = line.split(' ').collect();
        let [name, count, clients] = words[..] else { bail!("`{line}` is no order") };
        let work = WORKS.iter().find(|(its, _)| *its == name).context("no such work")?.1;
        carry_out(&sandbox, &mut sessions, work, count.parse()?, clients.parse()?)?;
        println!("done");
    }
    Ok(())
}

fn carry_out(
    sandbox: &Sandbox,
    sessions: &mut Vec<Session>,
    work: Work,
    count: usize,
    clients: usize,
) -> Result<()> {
    let each = count / clients;
    let threads = vec![(); clients];
    match work {
        Work::Create => {
            let made = Mutex::new(sessions);
            in_threads(threads, |()| {
                for _ in 0..each {
                    let session = sandbox.blocking().session()?;
                    made.lock().ok().context("another thread has failed")?.push(session);
                }
                Ok(())
            })
        }
        Work::RunEach => {
            let size = sessions.len().div_ceil(clients);
            in_threads(sessions.chunks_mut(size).collect(), |part| {
                part.iter_mut().try_for_each(run)
            })
        }
        Work::Run => in_threads(sessions.iter_mut().take(clients).collect(), |session| {
            (0..each).try_for_each(|_| run(session))
        }),
        Work::End => {
            sessions.clear();
            Ok(())
        }
        Work::Once => in_threads(threads, |()| {
            (0..each).try_for_each(|_| run(&mut sandbox.blocking().session()?))
        }),
    }
}

fn run(session: &mut Session) -> Result<()> {
    let ran = session.run("40+2")?;
    ensure!(ran.value() == Some(&Value::Int(42)), "unexpected: {ran:?}");
    Ok(())
}
