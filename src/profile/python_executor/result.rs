//! What the executor says about one execution.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::mark::Mark;
use super::shown::shown;
use crate::data::execution::{Execution, Outcome};

/// The result of one execution. Serialised it is OpenEnv's: an object of the public fields.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ExecutionResult {
    /// What was printed, then the value of the last expression unless it is `None`, as the text
    /// that `json.dumps` gives, or its `repr` where that refuses it. A newline is put between the
    /// two.
    ///
    /// Other than OpenEnv's it is kept if the code raises.
    ///
    /// Past [`max_output_length`](super::ExecutorOptions::max_output_length) it is cut and ends in
    /// `... (truncated, total 9000 chars)` on a line of its own.
    pub stdout: String,
    /// What was written to standard error, then the [`exception`](Self::exception), cut as
    /// [`stdout`](Self::stdout).
    pub stderr: String,
    /// The names that are new, private names and modules aside, with the `repr` of their values,
    /// cut after 500 characters. A name is new if nobody has bound it since the executor was made
    /// or reset, whether it was deleted meanwhile or not.
    ///
    /// Empty if the execution was terminated.
    #[serde(serialize_with = "as_map")]
    pub locals_snapshot: Vec<(String, String)>,
    /// The wall-clock time it took; serialised in seconds.
    #[serde(serialize_with = "as_seconds")]
    pub execution_time: Duration,
    /// Whether the code ran to its end.
    pub success: bool,
    /// Why it did not: the exception's type and message, and on the next lines the traceback; or a
    /// sentence, if a limit, an interrupt or `os._exit` ended it. `SystemExit` is an exception like
    /// others, whatever its status.
    pub exception: Option<String>,
    #[serde(skip)]
    pub(super) mark: Option<Mark>,
}

impl ExecutionResult {
    /// Describes an execution after which all names but the `known` ones are new.
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

/// Why the code did not run to its end.
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
