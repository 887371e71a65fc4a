//! One piece of code to run, and how it sees itself.

use std::time::Duration;

use crate::data::stdin::Stdin;

/// Code to run, with the name, arguments and standard input it runs under.
///
/// A `&str` or `String` is a cell with the defaults.
#[derive(Debug)]
pub struct Cell {
    pub(crate) code: String,
    pub(crate) program: Program,
    pub(crate) directory: Option<String>,
    pub(crate) import_from: Option<String>,
    pub(crate) name: String,
    pub(crate) is_file: bool,
    pub(crate) role: Role,
    pub(crate) argv: Option<Vec<String>>,
    pub(crate) stdin: Stdin,
    pub(crate) run_time: Option<Duration>,
}

/// What is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Program {
    /// The code itself.
    #[default]
    Code,
    /// The module of this name.
    Module,
    /// The `__main__.py` of the directory or the zip file at this path of the guest.
    Application,
}

/// What a cell is to its session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Role {
    /// One of several.
    #[default]
    Cell,
    /// Typed at a prompt: its value is kept in `_`.
    Prompt,
    /// A whole program: exit functions are called at its end.
    Program,
}

impl Cell {
    /// Makes a cell of `code`, named `<cell>` in tracebacks, with an empty standard input.
    #[must_use]
    pub fn new(code: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            program: Program::Code,
            directory: None,
            import_from: None,
            name: "<cell>".to_owned(),
            is_file: false,
            role: Role::Cell,
            argv: None,
            stdin: Stdin::empty(),
            run_time: None,
        }
    }

    /// Makes a program of a module, which is found and run as `python -m NAME` does.
    ///
    /// It can be of the standard library, of a loaded package, or of a directory that the guest
    /// imports from: see [`import_from`](Self::import_from). If there is none of this name the
    /// guest exits with status 1. The arguments of [`argv`](Self::argv) begin with one that is
    /// replaced by the module's file.
    #[must_use]
    pub fn module(name: impl Into<String>) -> Self {
        Self { program: Program::Module, ..Self::new(name).argv(["-m"]).program() }
    }

    /// Makes a program of a directory or a zip file of the guest, whose `__main__.py` is run as
    /// `python PATH` does: it imports from there first. If there is none the guest exits with
    /// status 1.
    #[must_use]
    pub fn application(path: impl Into<String>) -> Self {
        let path = path.into();
        let argv = [path.clone()];
        Self { program: Program::Application, ..Self::new(path).argv(argv).program() }
    }

    /// Has the session import from this directory of the guest first, as python does from a
    /// script's own; it stays so for later cells.
    #[must_use]
    pub fn import_from(mut self, directory: impl Into<String>) -> Self {
        self.import_from = Some(directory.into());
        self
    }

    /// Sets the working directory, one of the guest; it stays so for later cells. If it is not
    /// there the run raises `FileNotFoundError`. At first it is `/home/user`.
    #[must_use]
    pub fn working_directory(mut self, directory: impl Into<String>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Names the code in tracebacks.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Makes the code a script: names it in tracebacks and sets `__file__`.
    #[must_use]
    pub fn script(mut self, path: impl Into<String>) -> Self {
        self.name = path.into();
        self.is_file = true;
        self
    }

    /// Makes the code one typed at a prompt: its value is kept in `_`, unless it is `None`.
    #[must_use]
    pub fn interactive(mut self) -> Self {
        self.role = Role::Prompt;
        self
    }

    /// Makes the code a whole program: when it ends, the functions registered with `atexit` are
    /// called, as when python ends.
    #[must_use]
    pub fn program(mut self) -> Self {
        self.role = Role::Program;
        self
    }

    /// Sets `sys.argv`. By default it stays as the session's last cell left it.
    #[must_use]
    pub fn argv<S: Into<String>>(mut self, argv: impl IntoIterator<Item = S>) -> Self {
        self.argv = Some(argv.into_iter().map(Into::into).collect());
        self
    }

    /// Sets what the code reads from its standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets the wall-clock budget of this one run, where it is less than
    /// [`Limits::max_run_time`](crate::Limits::max_run_time).
    #[must_use]
    pub fn max_run_time(mut self, time: Duration) -> Self {
        self.run_time = Some(time);
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
