//! Displays and failures of a cell as Jupyter has them, in notebooks and in messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isolet::{Display, Execution, MimeData, Outcome, Termination};
use serde_json::Value as Json;

use crate::json_text::count;

/// The most values of a display that is kept as JSON and not as a text.
const JSON_VALUES: usize = 1_000_000;

/// The data of a display in one format.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Text(String),
    Json(Json),
    /// In base64.
    Bytes(String),
}

/// How a cell ended that did not complete, as an output of the type `error`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellError {
    pub name: String,
    pub message: String,
    /// The lines of the traceback.
    pub traceback: Vec<String>,
}

/// Returns the formats of a display: bytes in base64, JSON as it is.
pub fn bundle(display: &Display) -> Vec<(String, Data)> {
    let data = |(format, data): (&str, &MimeData)| (format.to_owned(), data_of(format, data));
    display.formats().map(data).collect()
}

fn data_of(format: &str, data: &MimeData) -> Data {
    let is_json = is_json(format);
    match data.as_str() {
        None => Data::Bytes(STANDARD.encode(data.as_bytes())),
        Some(text) if is_json && count(text.as_bytes()) <= JSON_VALUES => {
            Data::Json(serde_json::from_str(text).unwrap_or_else(|_| text.into()))
        }
        Some(text) if is_json => Data::Json(text.into()),
        Some(text) => Data::Text(text.to_owned()),
    }
}

/// Returns `true` for a format whose data is JSON.
pub fn is_json(format: &str) -> bool {
    format == "application/json" || format.ends_with("+json")
}

impl CellError {
    /// Returns how a cell ended, unless it completed. `in_words` puts the names of limits in the
    /// words of the surface.
    pub fn of(execution: &Execution, in_words: impl FnOnce(&str) -> String) -> Option<Self> {
        Some(match execution.outcome() {
            Outcome::Raised(exception) => Self {
                name: exception.type_name.clone(),
                message: exception.message.clone(),
                traceback: exception.traceback.lines().map(str::to_owned).collect(),
            },
            Outcome::Exited(status) => {
                let message = execution.system_exit().map(|exit| exit.message.clone());
                Self::new("SystemExit", message.unwrap_or_else(|| status.to_string()))
            }
            Outcome::Terminated(termination) => {
                let name = match termination {
                    Termination::Deadline { .. } | Termination::HostTime { .. } => "TimeoutError",
                    Termination::Memory { .. } => "MemoryError",
                    Termination::Interrupted => "KeyboardInterrupt",
                    _ => "RuntimeError",
                };
                Self::new(name, in_words(&termination.to_string()))
            }
            _ => return None,
        })
    }

    /// Makes one without frames.
    pub fn new(name: &str, message: String) -> Self {
        let traceback = vec![format!("{name}: {message}")];
        Self { name: name.to_owned(), message, traceback }
    }
}
