//! The result of one execution.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::mark::Mark;
use super::shown::shown;
use crate::data::execution::{Execution, Outcome};

/// The result of one execution. Serialised, it is OpenEnv's: an object of the public fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// The printed output, then the value of the last expression unless it is `None`, separated by
    /// a newline. The value is shown as `json.dumps` gives it, or as its `repr` if `json.dumps`
    /// rejects it.
    ///
    /// Unlike in OpenEnv, it is kept if the code raises.
    ///
    /// Beyond [`max_output_length`](super::ExecutorOptions::max_output_length) it is truncated and
    /// ends in a separate line such as `... (truncated, total 9000 chars)`.
    pub stdout: String,
    /// The text written to standard error, then the [`exception`](Self::exception). Truncated as
    /// [`stdout`](Self::stdout) is.
    pub stderr: String,
    /// The new names, without private names and modules, and the `repr` of their values, truncated
    /// to 500 characters. A name is new if it was never bound since the executor was made or reset,
    /// even if it was deleted since.
    ///
    /// Empty if the execution was terminated.
    #[serde(serialize_with = "as_map")]
    pub locals_snapshot: Vec<(String, String)>,
    /// The wall-clock time of the execution. Serialised in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub execution_time: Duration,
    /// `true` if the code completed.
    pub success: bool,
    /// Why the code did not complete: the exception's type and message, followed by the traceback
    /// on further lines. If a limit, an interrupt or `os._exit` ended the code, this is a sentence.
    /// `SystemExit` is treated as any other exception, whatever its status.
    pub exception: Option<String>,
    #[serde(skip)]
    pub(super) mark: Option<Mark>,
}

impl ExecutionResult {
    /// Makes the result of an execution. All names except the `known` ones are new.
    pub(super) fn new(
        execution: &Execution,
        max_output_length: usize,
        known: &HashSet<String>,
    ) -> Self {
        let printed = execution.stdout();
        let value = shown(execution);
        let value_text = value.as_ref().map(|value| value.text.as_str());
        let plain_text = value.as_ref().and_then(|value| value.plain).or(value_text);
        let exception = exception(execution);
        let new = execution.locals().iter().filter(|local| !known.contains(&local.name));
        Self {
            stdout: truncated(joined(printed, value_text), max_output_length),
            stderr: truncated(joined(execution.stderr(), exception.as_deref()), max_output_length),
            locals_snapshot: new.map(|local| (local.name.clone(), local.repr.clone())).collect(),
            execution_time: execution.usage().wall_time,
            success: exception.is_none(),
            mark: Mark::find(&[printed, plain_text.unwrap_or_default()]),
            exception,
        }
    }
}

/// Returns why the code did not complete.
fn exception(execution: &Execution) -> Option<String> {
    let raised = execution.exception().or_else(|| execution.system_exit());
    if let Some(error) = raised {
        return Some(format!("{}: {}\n{}", error.type_name, error.message, error.traceback));
    }
    match execution.outcome() {
        Outcome::Exited(status) => Some(format!("the code exited with status {status}")),
        Outcome::Terminated(termination) => Some(termination.to_string()),
        _ => None,
    }
}

fn joined(first: &str, second: Option<&str>) -> String {
    let parts = [first, second.unwrap_or_default()];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join("\n")
}

fn truncated(mut text: String, limit: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(limit) {
        let notice = format!("\n... (truncated, total {} chars)", text.chars().count());
        text.truncate(end);
        text.push_str(&notice);
    }
    text
}

fn as_map<S: Serializer>(locals: &[(String, String)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(locals.iter().map(|(name, repr)| (name, repr)))
}

fn as_seconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_by_characters_and_says_how_many_there_were() {
        assert_eq!(truncated("äöü".to_owned(), 3), "äöü");
        assert_eq!(truncated("äöü\n".to_owned(), 3), "äöü\n... (truncated, total 4 chars)");
        assert_eq!(truncated("ä".to_owned(), 0), "\n... (truncated, total 1 chars)");
        assert_eq!(truncated(String::new(), 0), "");
    }
}
