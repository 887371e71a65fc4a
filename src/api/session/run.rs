//! Runs a cell and builds its [`Execution`].

use std::sync::Arc;

use super::finish::Ended;
use super::frame::Frame;
use super::shared::Shared;
use super::state::SessionState;
use crate::data::cell::Cell;
use crate::data::error::{Error, ErrorKind};
use crate::data::execution::{Execution, Outcome, Termination, Usage};
use crate::data::limits::Limits;
use crate::data::tool::name;
use crate::data::value::{Value, check_bounds, encoded_len};
use crate::host::pipe::PipeWriter;
use crate::protocol::{Command, Report, RunCommand, Status};
use crate::support::offload;

impl Shared {
    pub(super) async fn run_cell(
        self: &Arc<Self>,
        cell: Cell,
        pipe: Option<PipeWriter>,
    ) -> Result<Execution, Error> {
        self.check_source(&cell.code)?;
        let run_time =
            cell.run_time.map_or(self.limits.run_time(), |time| time.min(self.limits.run_time()));
        let role = cell.role();
        let command = Command::Run(RunCommand {
            inputs: cell.inputs,
            code: cell.syntax.prepared(cell.code),
            syntax: cell.syntax,
            program: cell.program,
            directory: cell.directory,
            import_from: cell.import_from,
            name: cell.name,
            is_file: cell.is_file,
            role,
            has_stdin: !cell.stdin.is_empty(),
            argv: cell.argv,
            may_return: cell.may_return,
            has_table_data: cell.has_table_data,
            has_chart_pictures: cell.has_chart_pictures,
            max_repr_chars: Limits::REPR_CHARS,
            max_value_bytes: self.limits.value_bytes(),
        });
        let interrupt = cell.interrupt.as_deref();
        let frame = self.encode(command).await?;
        let ended = self.command(frame, run_time, interrupt, cell.stdin, pipe).await?;
        Ok(self.execution(ended))
    }

    /// Rejects code that is too long to compile.
    pub(super) fn check_source(&self, code: &str) -> Result<(), Error> {
        let (limit, needed) = (self.limits.source_bytes(), code.len() as u64);
        if needed <= limit {
            return Ok(());
        }
        let message = format!(
            "the code has {needed} bytes, the limit is {limit} bytes (`Limits::max_source_bytes`)"
        );
        Err(self.refused(Error::new(ErrorKind::Limit, message)))
    }

    /// Encodes a command that binds variables. Rejects variables that cannot be bound.
    pub(super) async fn encode(&self, command: Command) -> Result<Frame, Error> {
        let is_much = offload::is_much(command.variables().iter().map(|(_, value)| value));
        let max_bytes = self.limits.value_bytes();
        let encode = move || {
            check_variables(command.variables(), max_bytes)?;
            Ok(Frame::of(command))
        };
        let encoded = offload::run(is_much, encode).await.flatten();
        encoded.map_err(|message| self.refused(Error::new(ErrorKind::Value, message)))
    }

    /// Returns this error of something that was not begun: the session is as before.
    fn refused(&self, error: Error) -> Error {
        if self.state() == SessionState::Ready { error.with_session_alive() } else { error }
    }

    pub(super) fn execution(&self, ended: Ended) -> Execution {
        let Ended { mut report, termination, memory_bytes, wall_time, host_time, run, .. } = ended;
        let usage = Usage {
            wall_time,
            host_time,
            peak_memory_bytes: memory_bytes,
            stdout_bytes: run.stdout.written(),
            stderr_bytes: run.stderr.written(),
            tool_calls: run.tool_calls,
        };
        let mut system_exit = None;
        let outcome = if let Some(termination) = termination {
            // A stopped run has no value, but the variables that it bound remain.
            report.repr = None;
            report.value_error = None;
            Outcome::Terminated(termination)
        } else {
            if let Status::Exited(_, exception) = &mut report.status {
                system_exit = exception.take();
            }
            self.outcome(&mut report, run.submission)
        };
        Execution {
            outcome,
            system_exit,
            repr: report.repr,
            value_error: report.value_error,
            is_json: !report.flag,
            stdout: run.stdout,
            stderr: run.stderr,
            displays: run.displays,
            dropped_displays: run.dropped_displays,
            files: run.files,
            dropped_files: run.dropped_files,
            locals: report.locals,
            usage,
            session_alive: self.state() == SessionState::Ready,
            restored: None,
        }
    }

    fn outcome(&self, report: &mut Report, submission: Option<Value>) -> Outcome {
        if let Some(submission) = submission {
            return Outcome::Submitted(submission);
        }
        match std::mem::take(&mut report.status) {
            Status::Completed => Outcome::Completed(report.value.take()),
            Status::Exited(code, _) => Outcome::Exited(code),
            Status::Raised(exception)
                if exception.type_name == "KeyboardInterrupt" && self.was_interrupted() =>
            {
                Outcome::Terminated(Termination::Interrupted)
            }
            Status::Raised(mut exception) => {
                self.host.packages().explain(&mut exception);
                Outcome::Raised(exception)
            }
        }
    }
}

/// Fails with a reason if these variables cannot be bound.
fn check_variables(items: &[(String, Value)], max_bytes: u64) -> Result<(), String> {
    let mut left = max_bytes;
    for (variable, value) in items {
        if !name::is_identifier(variable) {
            return Err(format!(
                "`{}` cannot be a variable, it is no Python identifier",
                variable.escape_debug()
            ));
        }
        check_bounds(value, left)?;
        left = left.saturating_sub(encoded_len(value));
    }
    Ok(())
}
