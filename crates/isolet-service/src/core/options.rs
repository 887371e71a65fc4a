//! Requests to run code, from all wires and dialects.

use isolet::{Cell, Stdin, Syntax, Value};
use serde::{Deserialize, Serialize};

use super::{Failure, execution};

/// Code to run.
#[derive(Debug, Default)]
pub struct Run {
    pub code: String,
    /// Variables to set before the run.
    pub inputs: Vec<(String, Value)>,
    pub options: RunOptions,
    /// Standard input that comes while the code runs, instead of that of the options.
    pub input: Option<Stdin>,
}

/// The options of a run, as `docs/reference/protocol.md` describes them.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct RunOptions {
    /// In seconds.
    pub timeout: Option<f64>,
    /// Set if the listener receives output and displays.
    pub stream: bool,
    pub stdin: Option<Input>,
    pub argv: Option<Vec<String>>,
    pub name: Option<String>,
    pub working_directory: Option<String>,
    pub program: bool,
    pub keep_variables: bool,
    pub allow_return: bool,
    pub table_data: bool,
    pub chart_pictures: bool,
    pub syntax: Syntax,
}

/// Standard input, as text or bytes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Input {
    Text(String),
    Bytes(serde_bytes::ByteBuf),
}

impl RunOptions {
    /// Reads options; `None` means defaults.
    pub fn read(options: Value) -> Result<Self, Failure> {
        if options.is_none() {
            return Ok(Self::default());
        }
        isolet::from_value(options)
            .map_err(|error| Failure::config(format!("the options of a run are invalid: {error}")))
    }
}

impl Run {
    /// Converts to the library's type.
    pub(crate) fn cell(self) -> Result<Cell, Failure> {
        let Self { code, inputs, options, input } = self;
        let RunOptions {
            timeout,
            stream: _,
            stdin,
            argv,
            name,
            working_directory,
            program,
            keep_variables,
            allow_return,
            table_data,
            chart_pictures,
            syntax,
        } = options;
        let mut cell = Cell::new(code).syntax(syntax).inputs(inputs);
        if let Some(argv) = argv.or_else(|| program.then(Vec::new)) {
            cell = cell.argv(std::iter::once(name.clone().unwrap_or_default()).chain(argv));
        }
        if let Some(name) = name {
            cell = cell.name(name);
        }
        if let Some(directory) = working_directory {
            cell = cell.working_directory(directory);
        }
        if program {
            cell = cell.program();
        }
        if keep_variables {
            cell = cell.keep_variables();
        }
        if allow_return {
            cell = cell.allow_return();
        }
        if table_data {
            cell = cell.table_data();
        }
        if chart_pictures {
            cell = cell.chart_pictures();
        }
        if let Some(seconds) = timeout {
            cell = cell.timeout(execution::duration("timeout", seconds)?);
        }
        if let Some(input) = input {
            return Ok(cell.stdin(input));
        }
        Ok(match stdin {
            Some(Input::Text(text)) => cell.stdin(Stdin::from_bytes(text)),
            Some(Input::Bytes(bytes)) => cell.stdin(Stdin::from_bytes(bytes.into_vec())),
            None => cell,
        })
    }
}
