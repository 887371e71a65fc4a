//! The size of an answer: it is measured as JSON before it is written, because JSON may have six
//! times the bytes of a value. What does not fit is left out of an execution, which says so.

use isolet::Value;

use super::super::wire::Wire;
use super::body::is_small;
use super::problem::Problem;
use crate::service::Failure;
use crate::service::node::{Node, Refusal, SessionLease};

/// The most bytes of the last message of a run on a WebSocket, as far as it has only what events
/// have said before: clients take a MiB, unless they are told otherwise.
const MESSAGE_BYTES: u64 = 1_000_000;

/// What is between the first and the last part of a text that was shortened.
fn gap(dropped: usize) -> String {
    format!("\n[... {dropped} bytes dropped ...]\n")
}

/// Leaves out of an execution what its answer has no room for.
pub(super) fn fit(node: &Node, session: &SessionLease, execution: Value) -> Value {
    let most = node.max_answer();
    fit_within(execution, most.min(session.session().max_value()), most)
}

fn fit_within(execution: Value, most_of_value: u64, most: u64) -> Value {
    if is_small(&execution) && most_of_value >= most {
        return execution;
    }
    let Value::Dict(mut fields) = execution else { return execution };
    let place = |fields: &[(Value, Value)], name: &str| {
        fields.iter().position(|(key, _)| key.as_str() == Some(name))
    };
    if let Some(at) = place(&fields, "value") {
        let length = measured(&fields[at].1);
        if length > most_of_value {
            let reason = format!(
                "the value has {length} bytes as JSON: limit {most_of_value}; write it to a file, \
                 or return less"
            );
            fields[at] = ("value_error".into(), reason.into());
        }
    }
    let mut length = fields.iter().map(|(_, field)| measured(field)).sum::<u64>();
    let mut dropped = 0;
    if let Some(at) = place(&fields, "displays").filter(|_| length > most)
        && let Value::List(displays) = &mut fields[at].1
    {
        while length > most
            && let Some(display) = displays.pop()
        {
            length -= measured(&display);
            dropped += 1;
        }
    }
    if dropped > 0 {
        truncate(&mut fields, "displays", dropped);
    }
    if length > most
        && let Some(at) = place(&fields, "locals")
    {
        length -= measured(&fields.remove(at).1);
    }
    shorten(&mut fields, length, most);
    Value::Dict(fields)
}

/// Shortens the output of an execution whose events have had all of it, so that the message with it
/// has a length that clients take, if that suffices.
pub(super) fn fit_message(execution: Value) -> Value {
    let Value::Dict(mut fields) = execution else { return execution };
    let length = fields.iter().map(|(_, field)| measured(field)).sum::<u64>();
    let others: u64 = fields
        .iter()
        .filter(|(name, _)| !matches!(name.as_str(), Some("stdout" | "stderr")))
        .map(|(_, field)| measured(field))
        .sum();
    if others < MESSAGE_BYTES / 2 {
        shorten(&mut fields, length, MESSAGE_BYTES);
    }
    Value::Dict(fields)
}

/// Shortens the output of an execution of this length to what fits, the longer stream first.
fn shorten(fields: &mut Vec<(Value, Value)>, length: u64, most: u64) {
    let Some(mut excess) = length.checked_sub(most).filter(|excess| *excess > 0) else { return };
    let mut streams: Vec<_> = fields
        .iter()
        .enumerate()
        .filter(|(_, (name, _))| matches!(name.as_str(), Some("stdout" | "stderr")))
        .map(|(at, (_, text))| (measured(text), at))
        .collect();
    streams.sort_unstable_by(|one, other| other.cmp(one));
    for (its, at) in streams {
        let Value::Str(text) = &mut fields[at].1 else { continue };
        let (short, dropped) = shortened(text, its.saturating_sub(excess));
        *text = short;
        let name = if fields[at].0.as_str() == Some("stderr") { "stderr" } else { "stdout" };
        excess = excess.saturating_sub(its.saturating_sub(measured(&fields[at].1)));
        truncate(fields, &format!("{name}_bytes"), dropped);
        if excess == 0 {
            return;
        }
    }
}

/// Returns the first and the last part of a text that have so many bytes as JSON together, and how
/// many bytes are between them.
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

/// Returns how many bytes a character has in a string of JSON.
fn escaped(char: char) -> u64 {
    match char {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        _ => char.len_utf8() as u64,
    }
}

/// Notes how much was left out.
fn truncate(fields: &mut Vec<(Value, Value)>, what: &str, much: usize) {
    let much = i64::try_from(much).unwrap_or(i64::MAX);
    let at = fields.iter().position(|(key, _)| key.as_str() == Some("truncated"));
    let at = at.unwrap_or_else(|| {
        let none = ["stdout_bytes", "stderr_bytes", "displays", "files"];
        let none = Value::dict(none.map(|name| (name, Value::Int(0))));
        fields.push(("truncated".into(), none));
        fields.len() - 1
    });
    if let Value::Dict(counts) = &mut fields[at].1 {
        for (name, count) in counts {
            if name.as_str() == Some(what) {
                *count = count.as_i64().unwrap_or_default().saturating_add(much).into();
            }
        }
    }
}

/// Returns how many bytes a value has as JSON.
pub(super) fn measured(value: &Value) -> u64 {
    super::body::aside_of(value, || Wire::json_length(value))
}

/// Checks that an answer is not too long.
pub(super) fn checked(node: &Node, value: Value) -> Result<Value, Problem> {
    let most = node.max_answer();
    let length = if is_small(&value) { 0 } else { measured(&value) };
    if length > most { Err(too_long(length, most).into()) } else { Ok(value) }
}

/// Checks that an answer has no more bytes than it may.
pub(super) fn check_length(node: &Node, length: u64) -> Result<(), Refusal> {
    let most = node.max_answer();
    if length > most { Err(too_long(length, most)) } else { Ok(()) }
}

/// Checks that a part of a request that stays in the node has no more bytes than it may.
pub(super) fn check_size(name: &str, part: &Value, most: u64) -> Result<(), Problem> {
    let length = measured(part);
    if length <= most {
        return Ok(());
    }
    let detail = format!("`{name}` has {length} bytes as JSON: limit {most}");
    Err(Refusal::Failure(Failure::config(detail)).into())
}

/// Checks what a client calls something, in this field.
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
    use super::*;

    const MOST: u64 = 1 << 20;

    fn text<'a>(execution: &'a Value, name: &str) -> &'a str {
        execution.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn count(execution: &Value, name: &str) -> i64 {
        execution.get("truncated").and_then(|counts| counts.get(name)?.as_i64()).unwrap_or(-1)
    }

    #[test]
    fn a_value_that_json_makes_too_long_is_an_error_of_the_execution() {
        let execution = Value::dict([
            ("status", Value::from("completed")),
            ("value", "\0".repeat(500_000).into()),
        ]);
        let fitted = fit_within(execution.clone(), MOST, MOST);
        assert_eq!(
            text(&fitted, "value_error"),
            "the value has 3000002 bytes as JSON: limit 1048576; write it to a file, or return less"
        );
        assert!(fitted.get("value").is_none() && measured(&fitted) < 1000);
        assert_eq!(fit_within(execution.clone(), 3_000_002, 4_000_000), execution);
        let short = Value::dict([("value", Value::from("12345"))]);
        assert!(fit_within(short, 6, MOST).get("value_error").is_some());
    }

    #[test]
    fn an_execution_fits_whatever_it_has() {
        let display = Value::dict([("data", Value::dict([("text/plain", "\0".repeat(50_000))]))]);
        for (out, err, displays) in
            [("\0", "x", 20), ("é", "\"", 0), ("x", "\n", 2), ("\n", "\u{1f600}", 9)]
        {
            let execution = Value::dict([
                ("stdout", Value::from(out.repeat(400_000))),
                ("stderr", err.repeat(400_000).into()),
                ("displays", Value::List(vec![display.clone(); displays])),
                ("locals", Value::dict([("a", "\0".repeat(50_000))])),
            ]);
            let fitted = fit_within(execution.clone(), MOST, MOST);
            let length = measured(&fitted);
            assert!(length <= MOST + 500, "{out:?} {err:?}: {length}");
            let kept = fitted.get("displays").and_then(Value::as_list).unwrap().len();
            assert_eq!(count(&fitted, "displays").max(0), i64::try_from(displays - kept).unwrap());
            for (name, char) in [("stdout", out), ("stderr", err)] {
                let (kept, all) = (text(&fitted, name), text(&execution, name));
                let dropped = count(&fitted, &format!("{name}_bytes")).max(0);
                let left = kept.matches(char).count() * char.len();
                assert!(left >= all.len() - usize::try_from(dropped).unwrap(), "{name} {char:?}");
                assert_eq!(dropped > 0, kept.contains("bytes dropped"), "{name}");
            }
        }
    }

    #[test]
    fn the_last_message_of_a_run_with_all_output_is_below_a_mebibyte() {
        for char in ["x", "\n", "\0"] {
            let execution = Value::dict([
                ("stdout", Value::from(char.repeat(1 << 20))),
                ("stderr", char.repeat(1 << 20).into()),
            ]);
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
