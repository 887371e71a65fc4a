//! A cell: one piece of code to run, with its name, arguments and standard input.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::data::stdin::Stdin;
use crate::data::value::Value;

/// Code to run, with the name, arguments and standard input it runs under.
///
/// A `&str` or `String` converts to a cell with the defaults.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Cell {
    pub(crate) code: String,
    pub(crate) syntax: Syntax,
    pub(crate) program: Program,
    pub(crate) directory: Option<String>,
    pub(crate) import_from: Option<String>,
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) role: Role,
    pub(crate) keeps_variables: bool,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) stdin: Stdin,
    pub(crate) run_time: Option<Duration>,
    pub(crate) may_return: bool,
    pub(crate) has_table_data: bool,
    pub(crate) has_chart_pictures: bool,
    pub(crate) inputs: Vec<(String, Value)>,
    pub(crate) interrupt: Option<Arc<AtomicBool>>,
}

/// How the text of a cell is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Syntax {
    /// As Python reads a file.
    #[default]
    Python,
    /// As `python -c` does: without the indentation that all lines share.
    Command,
    /// As `IPython` does, for what stands for a cell of a notebook: without the indentation of the
    /// first line, and with its commands, such as `%timeit`. The session has `get_ipython()`, `In`,
    /// `Out` and `_` from then on. A value whose `repr` raises fails the cell.
    Ipython,
    /// As bash does: the cell is a script for the session's shell. See [`Cell::shell`].
    Shell,
}

impl Syntax {
    /// Returns the code as it is sent to the guest, which reads `IPython`'s commands itself.
    pub(crate) fn prepared(self, code: String) -> String {
        if self == Self::Command { dedented(&code).unwrap_or(code) } else { code }
    }
}

/// Removes the indentation that all lines share, as CPython does from 3.14 on; `None` if there is
/// none. Lines of blanks have no part in it, and become empty.
fn dedented(code: &str) -> Option<String> {
    let is_indent = |c: char| matches!(c, ' ' | '\t');
    let mut common: Option<&str> = None;
    for line in code.split('\n') {
        let text = line.trim_start_matches(is_indent);
        if text.is_empty() {
            continue;
        }
        let own = &line[..line.len() - text.len()];
        let shared = common.map_or(own, |common| {
            let count = common.bytes().zip(own.bytes()).take_while(|(a, b)| a == b).count();
            &own[..count]
        });
        if shared.is_empty() {
            return None;
        }
        common = Some(shared);
    }
    let indent = common?;
    let lines = code.split('\n').map(|line| {
        let is_blank = line.trim_start_matches(is_indent).is_empty();
        if is_blank { "" } else { &line[indent.len()..] }
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

/// What a cell runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// The code as given.
    #[default]
    Code,
    /// The module of the name given as code.
    Module,
    /// The `__main__.py` of the directory or zip file at the guest path given as code.
    Application,
}

/// How the session treats a cell.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Role {
    /// One of the session's cells.
    #[default]
    Cell,
    /// Code typed at a prompt: its value is kept in `_`.
    Prompt,
    /// A whole program: when it ends, what python does at its end is done.
    Program,
    /// A program whose variables outlive it.
    KeptProgram,
}

impl Cell {
    /// Makes a cell of `code`. By default it is named `<cell>` in tracebacks and has an empty
    /// standard input.
    #[must_use]
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            syntax: Syntax::Python,
            program: Program::Code,
            directory: None,
            import_from: None,
            name: "<cell>".to_owned(),
            is_file: false,
            role: Role::Cell,
            keeps_variables: false,
            argv: None,
            stdin: Stdin::empty(),
            run_time: None,
            may_return: false,
            has_table_data: false,
            has_chart_pictures: false,
            inputs: Vec::new(),
            interrupt: None,
        }
    }

    /// Makes a program of a module, which is found and run as by `python -m NAME`.
    ///
    /// The module can be part of the standard library, of a loaded package, or of a directory that
    /// the guest imports from: see [`import_from`](Self::import_from). If it does not exist, the
    /// guest exits with status 1. The first of the arguments given with [`argv`](Self::argv) is
    /// replaced by the module's file.
    #[must_use]
    pub fn module(name: impl Into<String>) -> Self {
        Self { program: Program::Module, ..Self::new(name).argv(["-m"]).program() }
    }

    /// Makes a cell of a script that the session's shell runs, as bash would.
    ///
    /// * Cells of the shell share its variables and functions, and with Python's cells the working
    ///   directory and the environment. A [program](Self::program) is a script with a shell of its
    ///   own, as by `bash -c`: nothing of it stays but the files.
    /// * The outcome is [`Outcome::Exited`](crate::Outcome::Exited) with the script's status. The
    ///   session goes on.
    /// * [`inputs`](Self::inputs) are exported variables, [`argv`](Self::argv) is `$0`, `$1` and
    ///   so on. A program's [`working_directory`](Self::working_directory) is its own.
    ///
    /// The shell is guest code: it starts no process, and has the session's permissions and limits.
    #[must_use]
    pub fn shell(script: impl Into<String>) -> Self {
        Self::new(script).syntax(Syntax::Shell)
    }

    /// Returns how the session is to treat it.
    pub(crate) fn role(&self) -> Role {
        match self.role {
            Role::Program if self.keeps_variables => Role::KeptProgram,
            role => role,
        }
    }

    /// Makes a program of a directory or zip file in the guest, whose `__main__.py` is run as by
    /// `python PATH`. Imports search that directory or file first. If it has no `__main__.py`, the
    /// guest exits with status 1.
    #[must_use]
    pub fn application(path: impl Into<String>) -> Self {
        let path = path.into();
        let argv = [path.clone()];
        Self { program: Program::Application, ..Self::new(path).argv(argv).program() }
    }

    /// Sets how the code is read. Default: [`Syntax::Python`].
    #[must_use]
    pub fn syntax(mut self, syntax: Syntax) -> Self {
        self.syntax = syntax;
        self
    }

    /// Makes the session search this guest directory first when it imports, as python does with a
    /// script's own directory. Later cells keep this setting.
    #[must_use]
    pub fn import_from(mut self, directory: impl Into<String>) -> Self {
        self.import_from = Some(directory.into());
        self
    }

    /// Sets the working directory, a guest path. Later cells keep this setting. If the directory
    /// does not exist, the run raises `FileNotFoundError`. Initially: `/home/user`.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Sets the name of the code in tracebacks. Default: `<cell>`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Makes the code a script: sets its name in tracebacks and `__file__`.
    #[must_use]
    pub fn script(mut self, path: impl Into<String>) -> Self {
        self.name = path.into();
        self.is_file = true;
        self
    }

    /// Marks the code as typed at a prompt: its value is kept in `_`, unless it is `None`.
    #[must_use]
    pub fn interactive(mut self) -> Self {
        self.role = Role::Prompt;
        self
    }

    /// Marks the code as a whole program. When it ends, what happens is what happens when python
    /// exits: threads come to their ends, the functions registered with `atexit` are called, the
    /// session's variables are deleted, so that the `__del__` of their values runs, and files that
    /// are still open are closed with all that was written to them.
    ///
    /// This counts as part of the run, and the same time limit applies. An empty program ends a
    /// session in this way: what its cells have left open would otherwise be lost with it.
    #[must_use]
    pub fn program(mut self) -> Self {
        self.role = Role::Program;
        self
    }

    /// Keeps the session's variables when a [program](Self::program) ends: open files are only
    /// flushed. For a session that goes on with the variables, or that is saved with them.
    #[must_use]
    pub fn keep_variables(mut self) -> Self {
        self.keeps_variables = true;
        self
    }

    /// Sets `sys.argv`. Default: unchanged since the session's last cell.
    #[must_use]
    pub fn argv<S: Into<String>>(mut self, argv: impl IntoIterator<Item = S>) -> Self {
        self.argv = Some(argv.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the standard input of the code. Default: empty.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets the wall-clock limit of this run, if it is less than
    /// [`Limits::max_run_time`](crate::Limits::max_run_time).
    #[must_use]
    pub fn timeout(mut self, time: Duration) -> Self {
        self.run_time = Some(time);
        self
    }

    /// Allows `return` at the top level of the code: it ends the cell, and its value is the cell's
    /// value, instead of that of the last expression. A bare `return` ends the cell without a
    /// value.
    ///
    /// It works as in a function, also in loops, `try` and `with`: `finally` runs, and no `except`
    /// catches it. Names that the cell binds are global as in any cell. Without this method it is a
    /// `SyntaxError`, as in a module.
    #[must_use]
    pub fn allow_return(mut self) -> Self {
        self.may_return = true;
        self
    }

    /// Gives displays of pandas' tables the format `application/vnd.isolet.table.v1+json`: an
    /// object with the cells of each column as a list, for clients that draw tables themselves.
    ///
    /// A table of more than 100,000 cells, or 1 MiB of JSON, is displayed without, and standard
    /// error says so.
    #[must_use]
    pub fn table_data(mut self) -> Self {
        self.has_table_data = true;
        self
    }

    /// Gives displays of charts of plotly and altair the format `image/png`: a picture that
    /// matplotlib draws, for terminals and others without a browser.
    ///
    /// The session needs the packages `isolet-charts` and matplotlib, which `isolet-science` has. A
    /// chart that `isolet-charts` cannot draw is displayed without a picture.
    #[must_use]
    pub fn chart_pictures(mut self) -> Self {
        self.has_chart_pictures = true;
        self
    }

    /// Binds these variables before the code runs, in addition to those given before.
    ///
    /// They remain bound after the run, as with [`Session::set_many`](crate::Session::set_many),
    /// which needs a second exchange with the guest. If one of them cannot be bound, the run is
    /// refused with [`ErrorKind::Value`](crate::ErrorKind::Value) and the session stays usable.
    /// They are not among [`Execution::locals`](crate::Execution::locals) unless the code binds
    /// them anew.
    #[must_use]
    pub fn inputs<N: Into<String>, V: Into<Value>>(
        mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
        self.inputs.extend(variables);
        self
    }

    /// Interrupts the run as it begins if this flag is set by then.
    ///
    /// An [`InterruptHandle`](crate::InterruptHandle) does nothing before the run has begun. A
    /// thread that cannot know whether it has sets the flag first and then calls
    /// [`interrupt`](crate::InterruptHandle::interrupt): the run is interrupted in either case, and
    /// no other one. Setting the flag later has no effect of its own.
    #[must_use]
    pub fn interrupt_flag(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupt = Some(flag);
        self
    }
}

impl From<&str> for Cell {
    fn from(code: &str) -> Self {
        Self::new(code)
    }
}

impl From<String> for Cell {
    fn from(code: String) -> Self {
        Self::new(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_loses_the_indentation_that_its_lines_share() {
        for (code, read) in [
            ("\n    x = 1\n    print(x)\n", "\nx = 1\nprint(x)\n"),
            ("  if x:\n    y", "if x:\n  y"),
            ("    a\n  b", "  a\nb"),
            ("\tx\n\ty", "x\ny"),
            // Blank lines have no part in it, a line of text in a string has.
            ("  x\n \n\n     \n  y", "x\n\n\n\ny"),
            ("  x = \"\"\"\n   é\n  \"\"\"", "x = \"\"\"\n é\n\"\"\""),
            ("  x\n  # y", "x\n# y"),
            // Nothing is shared.
            ("  x\ny", "  x\ny"),
            ("\tx\n  y", "\tx\n  y"),
            ("x\n  y\n  ", "x\n  y\n  "),
            ("\u{a0}x", "\u{a0}x"),
            ("   \n", "   \n"),
            ("", ""),
        ] {
            assert_eq!(Syntax::Command.prepared(code.to_owned()), read);
            assert_eq!(Syntax::Python.prepared(code.to_owned()), code);
        }
    }
}
