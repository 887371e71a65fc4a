//! Limits the length of answers. An answer is measured as JSON before it is written, because JSON
//! may be six times as long as the value. An execution that is too long is shortened, and says so.

use std::cmp::Reverse;

use serde::Serialize;

use super::body::is_small;
use super::problem::Problem;
use crate::wire::Wire;
use isolet_service::core::{Execution, Failure};
use isolet_service::node::{Node, Refusal, SessionLease};

/// The maximum length of a run's last WebSocket message, as far as its output was already sent as
/// events: clients accept a MiB by default.
const MESSAGE_BYTES: u64 = 1_000_000;

/// Returns the text between the first and the last part of a shortened text.
fn gap(dropped: usize) -> String {
    format!("\n[... {dropped} bytes dropped ...]\n")
}

/// Shortens an execution to the maximum length of an answer.
pub(super) fn fit(node: &Node, session: &SessionLease, execution: Execution) -> Execution {
    fit_for(node, session.session().max_value(), execution)
}

/// As [`fit`], for a session whose values have this maximum size.
pub(super) fn fit_for(node: &Node, max_value: u64, execution: Execution) -> Execution {
    let most = node.max_answer();
    fit_within(execution, most.min(max_value), most)
}

fn fit_within(mut execution: Execution, most_of_value: u64, most: u64) -> Execution {
    if is_small(&execution) && most_of_value >= most {
        return execution;
    }
    let length = execution.value.as_ref().map_or(0, measured);
    if length > most_of_value {
        let reason = format!(
            "the value has {length} bytes as JSON: limit {most_of_value}; write it to a file, or \
             return less"
        );
        (execution.value, execution.value_error) = (None, Some(reason));
    }
    let mut length = measured(&execution);
    while length > most
        && let Some(display) = execution.displays.pop()
    {
        length -= measured(&display);
        execution.truncated.displays += 1;
    }
    if length > most && !execution.locals.is_empty() {
        execution.locals.clear();
        length = measured(&execution);
    }
    shorten(&mut execution, length, most);
    execution
}

/// Shortens output that was already sent as events, to keep the message below clients' limits.
pub(super) fn fit_message(mut execution: Execution) -> Execution {
    let length = measured(&execution);
    let output = measured(&execution.stdout) + measured(&execution.stderr);
    if length.saturating_sub(output) < MESSAGE_BYTES / 2 {
        shorten(&mut execution, length, MESSAGE_BYTES);
    }
    execution
}

/// Shortens the output of an execution of this length to `most` bytes, the longer stream first.
fn shorten(execution: &mut Execution, length: u64, most: u64) {
    let Some(mut excess) = length.checked_sub(most).filter(|excess| *excess > 0) else { return };
    let Execution { stdout, stderr, truncated, .. } = execution;
    let mut streams = [
        (measured(stdout), stdout, &mut truncated.stdout_bytes),
        (measured(stderr), stderr, &mut truncated.stderr_bytes),
    ];
    streams.sort_unstable_by_key(|(length, ..)| Reverse(*length));
    for (its, text, count) in streams {
        let (short, dropped) = shortened(text, its.saturating_sub(excess));
        *text = short;
        *count += dropped as u64;
        excess = excess.saturating_sub(its.saturating_sub(measured(text)));
        if excess == 0 {
            return;
        }
    }
}

/// Returns the first and the last part of a text, with a total length of `most` bytes as JSON, and
/// the number of bytes between them.
fn shortened(text: &str, most: u64) -> (String, usize) {
    let room = most.saturating_sub(gap(text.len()).len() as u64 + 4) / 2;
    let reach = |chars: &mut dyn Iterator<Item = char>| {
        let (mut left, mut bytes) = (room, 0);
        for char in chars {
            let Some(rest) = left.checked_sub(escaped(char)) else { break };
            left = rest;
            bytes += char.len_utf8();
        }
        bytes
    };
    let head = reach(&mut text.chars());
    let tail = reach(&mut text.chars().rev()).min(text.len() - head);
    let dropped = text.len() - head - tail;
    let part = |from: usize, to: usize| text.get(from..to).unwrap_or_default();
    let short = [part(0, head), &gap(dropped), part(text.len() - tail, text.len())].concat();
    (short, dropped)
}

/// Returns the length of a character in a JSON string.
fn escaped(char: char) -> u64 {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8() as u64,
    }
}

/// Returns the length of something as JSON.
pub(super) fn measured(of: &(impl Serialize + Sync)) -> u64 {
    super::body::aside_of(of, || Wire::json_length(of))
}

/// Fails if an answer is too long.
pub(super) fn checked<T: Serialize + Sync>(node: &Node, answer: T) -> Result<T, Problem> {
    let most = node.max_answer();
    let length = if is_small(&answer) { 0 } else { measured(&answer) };
    if length > most { Err(too_long(length, most).into()) } else { Ok(answer) }
}

/// Fails if an answer of this length is too long.
pub(super) fn check_length(node: &Node, length: u64) -> Result<(), Refusal> {
    let most = node.max_answer();
    if length > most { Err(too_long(length, most)) } else { Ok(()) }
}

/// Fails if a part of a request that stays in memory is too long.
pub(super) fn check_size(
    name: &str,
    part: &(impl Serialize + Sync),
    most: u64,
) -> Result<(), Problem> {
    let length = measured(part);
    if length <= most {
        return Ok(());
    }
    let detail = format!("`{name}` has {length} bytes as JSON: limit {most}");
    Err(Refusal::Failure(Failure::config(detail)).into())
}

/// Fails if the name in this field is too long.
pub(super) fn check_name(field: &str, name: Option<&str>) -> Result<(), Problem> {
    const MOST: usize = 256;
    match name.map(str::len).filter(|length| *length > MOST) {
        None => Ok(()),
        Some(length) => {
            let detail = format!("`{field}` has {length} bytes: limit {MOST}");
            Err(Refusal::Failure(Failure::config(detail)).into())
        }
    }
}

fn too_long(length: u64, most: u64) -> Refusal {
    Refusal::Failure(Failure::limit(format!("the answer has {length} bytes as JSON: limit {most}")))
}

#[cfg(test)]
mod tests {
    use isolet::Value;

    use super::*;
    use isolet_service::core::Plain;

    const MOST: u64 = 1 << 20;

    fn of_value(value: impl Into<Value>) -> Execution {
        Execution { value: Some(Plain(value.into())), ..Execution::default() }
    }

    #[test]
    fn a_value_that_json_makes_too_long_is_an_error_of_the_execution() {
        let execution = of_value("\0".repeat(500_000));
        let fitted = fit_within(execution.clone(), MOST, MOST);
        assert_eq!(
            fitted.value_error.as_deref(),
            Some(
                "the value has 3000002 bytes as JSON: limit 1048576; write it to a file, or \
                 return less"
            )
        );
        assert!(fitted.value.is_none() && measured(&fitted) < 1000);
        assert_eq!(fit_within(execution.clone(), 3_000_002, 4_000_000), execution);
        assert!(fit_within(of_value("12345"), 6, MOST).value_error.is_some());
    }

    #[test]
    fn an_execution_fits_whatever_it_has() {
        for (out, err) in [("\0", "x"), ("é", "\""), ("x", "\n"), ("\n", "\u{1f600}")] {
            let execution = Execution {
                stdout: out.repeat(400_000),
                stderr: err.repeat(400_000),
                locals: vec![("a".to_owned(), "\0".repeat(50_000))],
                ..Execution::default()
            };
            let fitted = fit_within(execution.clone(), MOST, MOST);
            let length = measured(&fitted);
            assert!(length <= MOST + 500, "{out:?} {err:?}: {length}");
            for (kept, all, dropped, char) in [
                (&fitted.stdout, &execution.stdout, fitted.truncated.stdout_bytes, out),
                (&fitted.stderr, &execution.stderr, fitted.truncated.stderr_bytes, err),
            ] {
                let left = kept.matches(char).count() * char.len();
                assert!(left >= all.len() - usize::try_from(dropped).unwrap(), "{char:?}");
                assert_eq!(dropped > 0, kept.contains("bytes dropped"), "{char:?}");
            }
        }
    }

    #[test]
    fn the_last_message_of_a_run_with_all_output_is_below_a_mebibyte() {
        for char in ["x", "\n", "\0"] {
            let output = char.repeat(1 << 20);
            let (stdout, stderr) = (output.clone(), output);
            let execution = Execution { stdout, stderr, ..Execution::default() };
            let length = measured(&fit_message(execution));
            assert!((900_000..1_010_000).contains(&length), "{length}");
        }
    }

    #[test]
    fn characters_are_escaped_as_serde_does_it() {
        for char in (0..0x200).filter_map(char::from_u32).chain(['\u{2028}', '\u{1f600}']) {
            let json = serde_json::to_string(&char.to_string()).unwrap();
            assert_eq!(escaped(char), json.len() as u64 - 2, "{char:?}");
        }
    }
}
