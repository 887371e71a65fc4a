//! Determines what `isolet run` runs: code, a script of Python or of the shell, a module, a
//! directory or zip file with a `__main__.py`, or a notebook.

pub(crate) mod output_files;

use std::io::{self, Cursor, IsTerminal, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Command;
use isolet::blocking::Session;
use isolet::{Cell, Stdin, Syntax};
use zip::ZipArchive;

use crate::args::permissions::PermissionArgs;
use crate::args::words;
use crate::kit::import_hints::ImportHints;
use crate::notebook::Notebook;

/// The guest directory for a copy of a zip file, if no directory that the guest sees contains the
/// file.
const HOME: &str = "/home/user";

/// `$0` of a script of the shell that has no name.
const SHELL: &str = "bash";

/// Runs a script that the guest sees, with its arguments.
const RUN_FILE: &str = "bash \"$@\"";

/// The options and arguments that name the program.
pub(crate) struct ProgramArgs {
    pub(crate) file: Option<String>,
    pub(crate) code: Option<String>,
    pub(crate) module: Option<String>,
    pub(crate) shell: Option<String>,
    /// The arguments of the program.
    pub(crate) rest: Vec<String>,
}

/// A program to run.
pub(crate) struct Program {
    /// The text of a script, which may declare packages; otherwise empty.
    pub(crate) source: String,
    cell: Cell,
    /// A file that is copied to the guest first.
    file: Option<(String, Vec<u8>)>,
    hints: ImportHints,
    /// The notebook to run after the cell, which only sets the session up.
    pub(crate) notebook: Option<Notebook>,
}

impl Program {
    /// Reads what to run. If it is a directory, mounts it for the guest.
    /// `definition` makes the definition of isolet's command line.
    pub(crate) fn read(
        program_args: ProgramArgs,
        permissions: &mut PermissionArgs,
        definition: fn() -> Command,
    ) -> Result<Self> {
        let misplaced = words::option_among(&program_args.rest, definition);
        let mut program = Self::read_program(program_args, permissions)?;
        program.hints.misplaced = misplaced;
        Ok(program)
    }

    fn read_program(program_args: ProgramArgs, permissions: &mut PermissionArgs) -> Result<Self> {
        let ProgramArgs { file, code, module, shell, rest } = program_args;
        if let Some(code) = code {
            // With -c there is no file: the first positional word is the first argument.
            let argv = ["-c".to_owned()].into_iter().chain(file).chain(rest);
            let cell = Cell::new(code.as_str()).syntax(Syntax::Command).name("<string>");
            let cell = cell.argv(argv).stdin(inherited_stdin());
            return Self::in_current_directory(code, cell, permissions);
        }
        if let Some(module) = module {
            let argv = ["-m".to_owned()].into_iter().chain(file).chain(rest);
            let cell = Cell::module(module.as_str()).argv(argv).stdin(inherited_stdin());
            let mut program = Self::in_current_directory(String::new(), cell, permissions)?;
            program.hints.module = Some(module);
            return Ok(program);
        }
        if let Some(script) = shell {
            let argv = [SHELL.to_owned()].into_iter().chain(file).chain(rest);
            let cell = Cell::shell(script).argv(argv).stdin(inherited_stdin());
            return Self::in_current_directory(String::new(), cell, permissions);
        }
        match file.as_deref() {
            None if io::stdin().is_terminal() => {
                bail!(
                    "nothing to run: give a FILE, `-` for standard input, `-c CODE`, `-m MODULE` \
                     or `-s SCRIPT`"
                )
            }
            None | Some("-") => {
                let mut bytes = Vec::new();
                io::stdin().read_to_end(&mut bytes).context("cannot read standard input")?;
                let argv = ["-".to_owned()].into_iter().chain(rest);
                let source = text(bytes, "standard input")?;
                let cell = Cell::new(source.as_str()).name("<stdin>").argv(argv);
                Self::in_current_directory(source, cell, permissions)
            }
            Some(path) => Self::of_path(path, rest, permissions),
        }
    }

    /// Makes a program without a file. It imports from the current directory, if the guest sees
    /// that.
    fn in_current_directory(
        source: String,
        cell: Cell,
        permissions: &mut PermissionArgs,
    ) -> Result<Self> {
        // One that was deleted has nothing to import, as for python.
        Ok(match std::env::current_dir() {
            Ok(current) => Self::beside(current, source, cell, permissions),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::new(source, cell),
            Err(error) => return Err(error).context("the current directory is unknown"),
        })
    }

    /// Makes a program that imports from a directory of the host, if the guest sees that.
    fn beside(
        directory: PathBuf,
        source: String,
        cell: Cell,
        permissions: &PermissionArgs,
    ) -> Self {
        if let Some(guest) = permissions.guest_path(&directory) {
            return Self::new(source, cell.import_from(guest));
        }
        let hints = ImportHints { directory: Some(directory), ..ImportHints::default() };
        Self { hints, ..Self::new(source, cell) }
    }

    fn new(source: String, cell: Cell) -> Self {
        Self { source, cell, file: None, hints: ImportHints::default(), notebook: None }
    }

    fn of_path(path: &str, rest: Vec<String>, permissions: &mut PermissionArgs) -> Result<Self> {
        let unreadable = || format!("cannot read `{path}`");
        if Path::new(path).is_dir() {
            return Self::directory(path, rest, permissions);
        }
        let bytes = std::fs::read(path).with_context(unreadable)?;
        let whole = Path::new(path).canonicalize().with_context(unreadable)?;
        let directory = whole.parent().unwrap_or(&whole).to_path_buf();
        permissions.show_here(&directory);
        let seen = permissions.guest_path(&whole);
        if ZipArchive::new(Cursor::new(&bytes)).is_ok() {
            let (guest, file) = if let Some(guest) = seen {
                (guest, None)
            } else {
                let name = whole.file_name().unwrap_or_default().to_string_lossy();
                let guest = format!("{HOME}/{name}");
                (guest.clone(), Some((guest, bytes)))
            };
            let argv = [guest.clone()].into_iter().chain(rest);
            let cell = Cell::application(guest).argv(argv).stdin(inherited_stdin());
            return Ok(Self { file, ..Self::new(String::new(), cell) });
        }
        let source = text(bytes, &format!("`{path}`"))?;
        let is_seen = seen.is_some();
        let name = seen.unwrap_or_else(|| path.to_owned());
        let argv = [name.clone()].into_iter().chain(rest);
        if words::is_notebook(path) {
            let notebook = Notebook::read(path, &source)?;
            let program =
                Self::beside(directory, String::new(), Cell::new("").argv(argv), permissions);
            return Ok(Self { notebook: Some(notebook), ..program });
        }
        if words::is_shell_script(path, &source) {
            // A script that is there can find what is beside it.
            let (script, first) =
                if is_seen { (RUN_FILE, Some(SHELL.to_owned())) } else { (&*source, None) };
            let argv = first.into_iter().chain(argv);
            let cell = Cell::shell(script).argv(argv).stdin(inherited_stdin());
            return Ok(Self::beside(directory, String::new(), cell, permissions));
        }
        let cell = Cell::new(source.as_str()).script(name).argv(argv).stdin(inherited_stdin());
        Ok(Self::beside(directory, source, cell, permissions))
    }

    /// Makes a program of a directory, which is mounted for the guest.
    fn directory(path: &str, rest: Vec<String>, permissions: &mut PermissionArgs) -> Result<Self> {
        let main = Path::new(path).join("__main__.py");
        if !main.is_file() {
            bail!("cannot run `{path}`: it is a directory without a `__main__.py`");
        }
        let whole = Path::new(path).canonicalize();
        let whole = whole.with_context(|| format!("cannot read `{path}`"))?;
        permissions.show_here(&whole);
        if permissions.guest_path(&whole).is_none() {
            permissions.show(&whole);
        }
        let guest = permissions.guest_path(&whole);
        let guest = guest.with_context(|| format!("`{path}` has no name to show"))?;
        let argv = [guest.clone()].into_iter().chain(rest);
        let cell = Cell::application(guest).argv(argv).stdin(inherited_stdin());
        Ok(Self::new(String::new(), cell))
    }

    /// Prepares the session for the program, and returns the cell to run.
    pub(crate) fn prepare(self, session: &mut Session) -> Result<(Cell, ImportHints)> {
        if let Some((path, contents)) = self.file {
            session.files().put(&path, contents)?;
        }
        Ok((self.cell, self.hints))
    }
}

fn inherited_stdin() -> Stdin {
    Stdin::from_reader(io::stdin())
}

fn text(bytes: Vec<u8>, name: &str) -> Result<String> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned)),
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            bail!("{name} is not UTF-8: byte {at} is {:#04x}", error.as_bytes()[at])
        }
    }
}
