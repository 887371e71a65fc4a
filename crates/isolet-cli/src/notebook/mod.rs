//! Runs Jupyter notebooks: the code cells of a `.ipynb` file, one after another in one session.

mod file;
mod outputs;
mod written;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::{Context, Result};
use isolet::blocking::Session;
use isolet::{Cell, Execution, Outcome, Syntax};
use serde_json::{Value as Json, json};

use crate::kit::import_hints::ImportHints;
use crate::kit::interrupts::Interrupts;
use crate::kit::output::{self, Shown};
use crate::show::exit;
use crate::show::outcome::show_outcome;
use crate::show::report;
use crate::show::terminal::{self, Printer};
use file::{NotebookCell, parse};
use isolet_support::json as lines;
use outputs::Outputs;
pub(crate) use written::Target;

/// A parsed notebook.
pub(crate) struct Notebook {
    /// The name in tracebacks.
    name: String,
    cells: Vec<NotebookCell>,
    /// All of its contents. The outputs of each cell that was run take the place of its last ones.
    contents: Json,
}

/// Runs cells and shows their output.
pub(crate) struct Runner<'a> {
    pub(crate) session: &'a mut Session,
    pub(crate) interrupts: &'a Interrupts,
    /// Set to print a report at the end instead of output.
    pub(crate) json: bool,
    /// Set if the session is saved afterwards.
    pub(crate) saves: bool,
    /// Set to keep the output of the cells for the file instead of showing it.
    pub(crate) records: bool,
    pub(crate) shown: &'a Shown,
}

/// The result of a notebook.
#[derive(Default)]
pub(crate) struct Played {
    /// The results of the cells that were run, in order.
    executions: Vec<Execution>,
    /// Set if the last cell raised an exception that its author has announced.
    may_raise: bool,
    /// Set once the output has no reader.
    is_reader_gone: bool,
    /// Set if output was left out.
    is_cut: bool,
}

impl Notebook {
    /// Parses the text of a file.
    pub(crate) fn read(name: &str, text: &str) -> Result<Self> {
        let (cells, contents) = parse(text).with_context(|| format!("cannot run `{name}`"))?;
        Ok(Self { name: name.to_owned(), cells, contents })
    }

    /// Runs `first`, which sets the session up, then each cell until one fails, and finally the
    /// steps that end a program.
    pub(crate) fn play(&mut self, first: Cell, runner: &mut Runner<'_>) -> Result<Played> {
        let mut played = Played::default();
        let mut is_alive = runner.run(first, &mut played)?.session_alive();
        let mut count = 0;
        for cell in self.cells.iter().filter(|cell| !cell.is_skipped()) {
            let name = format!("{}, cell {}", self.name, cell.number);
            let code = Cell::new(cell.source.as_str()).syntax(Syntax::Ipython).name(name);
            let execution = if runner.records {
                let (execution, outputs) = runner.record(code, &mut played)?;
                count += u64::from(!cell.is_blank());
                let at = &mut self.contents["cells"][cell.index];
                at["execution_count"] = if cell.is_blank() { Json::Null } else { json!(count) };
                at["outputs"] = outputs.into_json(count);
                execution
            } else {
                runner.run(code, &mut played)?
            };
            if played.is_reader_gone {
                return Ok(played);
            }
            let is_complete = matches!(execution.outcome(), Outcome::Completed(_));
            played.may_raise = execution.exception().is_some() && cell.may_raise();
            if is_complete {
                runner.show(&execution)?;
            }
            if played.may_raise && !runner.records && !runner.json {
                show_outcome(&execution, runner.shown.raw)?;
            }
            is_alive = execution.session_alive();
            played.executions.push(execution);
            if !is_complete && !played.may_raise {
                break;
            }
        }
        if is_alive {
            let last = Cell::new("").program();
            let last = if runner.saves { last.keep_variables() } else { last };
            runner.run(last, &mut played)?;
        }
        Ok(played)
    }

    /// Writes the notebook with the outputs of the cells that were run.
    pub(crate) fn write(&self, target: &Target) -> Result<()> {
        target.write(&self.contents)
    }
}

impl Runner<'_> {
    fn run(&mut self, cell: Cell, played: &mut Played) -> Result<Execution> {
        if self.json {
            let cell = self.shown.viewer.prepare(cell);
            let execution = self.interrupts.during(|| self.session.run(cell))?;
            self.shown.viewer.write(execution.displays())?;
            return Ok(execution);
        }
        let streamed = output::stream(self.session, cell, self.shown, self.interrupts)?;
        streamed.show_missing()?;
        played.is_cut |= !streamed.missing().is_empty();
        played.is_reader_gone |= streamed.is_reader_gone;
        Ok(streamed.execution)
    }

    /// Runs a cell and keeps its outputs for the file.
    fn record(&mut self, code: Cell, played: &mut Played) -> Result<(Execution, Outputs)> {
        let mut outputs = Outputs::new(self.shown.max_bytes);
        let execution = self.interrupts.during(|| {
            let mut run = self.session.run_streaming(code.chart_pictures());
            for event in &mut run {
                outputs.add(event);
            }
            run.finish()
        })?;
        self.shown.viewer.write(execution.displays())?;
        played.is_cut |= outputs.end(&execution);
        Ok((execution, outputs))
    }

    /// Shows the value of a cell's last line, as a notebook does.
    fn show(&self, execution: &Execution) -> io::Result<()> {
        match execution.repr() {
            Some(repr) if repr != "None" && !self.json && !self.records => {
                let shown = Printer::new(self.shown.raw).for_stdout(repr).into_owned();
                writeln!(io::stdout(), "{shown}")
            }
            _ => Ok(()),
        }
    }
}

impl Played {
    /// Returns the results of the cells that were run.
    pub(crate) fn runs(&self) -> Vec<&Execution> {
        self.executions.iter().collect()
    }

    /// Reports how the notebook ended and whether its files could be `written`. Returns the exit
    /// status.
    pub(crate) fn end(
        &self,
        written: Result<()>,
        neighbours: &ImportHints,
        json: bool,
        raw: bool,
    ) -> Result<ExitCode> {
        if self.is_reader_gone {
            return written.map(|()| exit::NO_READER.into());
        }
        if json {
            let report = report::NotebookReport::new(
                &self.executions,
                self.executions.last().and_then(|last| neighbours.hint(last)),
                self.may_raise,
                written.as_ref().err(),
            );
            lines::write_line(io::stdout().lock(), &report)?;
            if let Err(error) = &written {
                return Ok(exit::failure(error));
            }
        }
        let last = self.executions.last().filter(|_| !self.may_raise);
        let Some(last) = last else {
            written?;
            return Ok(if self.is_cut { exit::LIMIT.into() } else { ExitCode::SUCCESS });
        };
        if !json {
            show_outcome(last, raw)?;
            if let (Outcome::Exited(status), Some(exit)) = (last.outcome(), last.system_exit())
                && *status != 0
            {
                let shown = Printer::new(raw).for_stderr(&exit.to_string()).into_owned();
                writeln!(io::stderr(), "{shown}")?;
            }
            if let Some(hint) = neighbours.hint(last) {
                writeln!(io::stderr(), "hint: {}", terminal::for_stderr(&hint))?;
            }
        }
        written?;
        let is_complete = matches!(last.outcome(), Outcome::Completed(_) | Outcome::Exited(0));
        Ok(if is_complete && self.is_cut { exit::LIMIT.into() } else { exit::status(last) })
    }
}
