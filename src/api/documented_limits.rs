//! Compares the limits in `docs/` with those of the code: a limit that was changed, added or
//! removed in only one of them fails a test.

use std::time::Duration;

use crate::api::engine::{Engine, EngineBuilder};
use crate::api::session::checkpoint::CHECKPOINT_BYTES;
use crate::api::session::setup::SETUP_BYTES;
use crate::data::limits::Limits;
use crate::data::value::MAX_CROSSING_DEPTH;
use crate::fs::{FileLimits, mount};
use crate::host::saved;
use crate::net::NetLimits;
use crate::protocol::codec::report;
use crate::worker::START_TIME;

const LIMITS: &str = include_str!("../../docs/reference/limits.md");
const PERMISSIONS: &str = include_str!("../../docs/concepts/permissions.md");

/// Returns the cells of the rows of the table that begins with `header`.
fn table<'a>(page: &'a str, header: &str) -> Vec<Vec<&'a str>> {
    let (_, table) = page.split_once(header).unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| row.trim_matches('|').split(" |").map(str::trim).collect()).collect()
}

#[track_caller]
fn check(rows: &[Vec<&str>], column: usize, expected: &[(&str, String)]) {
    for (row, (name, value)) in rows.iter().zip(expected) {
        assert_eq!((row[0], row[column]), (*name, value.as_str()));
    }
    assert_eq!(rows.len(), expected.len(), "rows of the table, and limits of the code");
}

fn time(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn hours(time: Duration) -> String {
    format!("{} h", time.as_secs_f64() / 3600.0)
}

fn bytes(bytes: impl TryInto<u64>) -> String {
    let bytes = bytes.try_into().ok().unwrap();
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let (unit, name) = units.into_iter().find(|(unit, _)| bytes % unit == 0).unwrap();
    format!("{} {name}", bytes / unit)
}

/// Writes a number with a comma before each three digits.
fn count(count: impl Copy + ToString) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn documented_limits_of_a_session_are_those_of_the_code() {
    let limits = Limits::default();
    // Without `..`, so that a new limit does not compile until it has a row.
    let FileLimits { open_files, depth, name_bytes, path_bytes, list_entries, overlay_marks } =
        FileLimits::default();
    let quota_bytes = format!(
        "{} `rw`, {} `overlay`",
        bytes(mount::READ_WRITE_BYTES),
        bytes(mount::OVERLAY_BYTES)
    );
    let expected = [
        ("`max_run_time`", time(limits.run_time())),
        ("`max_host_time`", hours(limits.host_time())),
        ("`max_grace`", time(limits.grace())),
        ("`max_memory_bytes`", bytes(limits.memory_bytes())),
        ("`max_stdout_bytes`", bytes(limits.stdout_bytes())),
        ("`max_stderr_bytes`", bytes(limits.stderr_bytes())),
        ("`max_output_lines`", count(limits.output_lines())),
        ("`max_displays`", count(limits.displays())),
        ("`max_display_bytes`", bytes(limits.display_bytes())),
        ("`max_files`", count(limits.files())),
        ("`--max-output` without `--json`", "-".to_owned()),
        ("`QUEUED_OUTPUT_BYTES`, fixed", bytes(Limits::QUEUED_OUTPUT_BYTES)),
        ("`max_value_bytes`", bytes(limits.value_bytes())),
        ("`max_source_bytes`", bytes(limits.source_bytes())),
        ("`max_tool_calls`", count(limits.tool_calls())),
        ("`max_refusals`", count(limits.refusals())),
        ("`max_concurrent_tools`", count(limits.concurrent_tools())),
        ("`max_call_bytes`", bytes(limits.call_bytes())),
        ("`max_call_bytes`", bytes(limits.call_bytes())),
        ("`WAITING_TOOL_CALLS`, fixed", count(Limits::WAITING_TOOL_CALLS)),
        ("`PENDING_TIMERS`, fixed", count(Limits::PENDING_TIMERS)),
        ("`Tool::timeout`", "none".to_owned()),
        ("`Tool::max_calls`", "none".to_owned()),
        ("`Mount::quota_bytes`", quota_bytes),
        ("`Mount::quota_files`", count(mount::FILES)),
        ("open files in mounts, fixed (`src/fs/limits.rs`)", count(open_files)),
        ("entries of a listed directory in a mount, fixed", count(list_entries)),
        ("names in a path in a mount, fixed", count(depth)),
        ("length of a name in a mount, fixed", count(name_bytes)),
        ("length of a path in a mount, fixed", count(path_bytes)),
        ("entries of the host that an overlay hides or moves, fixed", count(overlay_marks)),
        // Has its own table.
        ("the network, fixed (`src/net/limits.rs`)", String::new()),
        ("`EngineBuilder::max_sessions`", count(Engine::DEFAULT_MAX_SESSIONS)),
        ("`AUDIT_EVENTS`, fixed", count(Limits::AUDIT_EVENTS)),
        ("`REPR_CHARS`, fixed", count(Limits::REPR_CHARS)),
        ("`LOCAL_REPR_CHARS`, fixed", count(Limits::LOCAL_REPR_CHARS)),
        ("`NAME_CHARS`, fixed", count(Limits::NAME_CHARS)),
        ("`locals` together, fixed", bytes(report::LOCALS_BYTES)),
        ("`EXCEPTION_CHARS`, fixed", count(Limits::EXCEPTION_CHARS)),
        ("chain of causes of an exception, fixed", count(report::CAUSES)),
        ("depth of a value, fixed", count(MAX_CROSSING_DEPTH)),
        ("`EngineBuilder::max_import_time`", time(EngineBuilder::IMPORT_TIME)),
        ("start of a worker, fixed", time(START_TIME)),
        (
            "packages of a saved session, loaded ones and those of its image each, fixed",
            count(saved::MAX_PACKAGES),
        ),
        ("name, and version, of a package of a saved session, fixed", count(saved::MAX_NAME_BYTES)),
        (
            "host's part of a [saved session](../concepts/saved.md#the-file) besides the files of \
             overlays, fixed",
            bytes(saved::STATE_BYTES),
        ),
        (
            "what a session is given before it moves to an \
             [image](../concepts/permissions.md#installed-packages), fixed",
            bytes(SETUP_BYTES),
        ),
        ("state of a [checkpoint](../concepts/checkpoints.md), fixed", bytes(CHECKPOINT_BYTES)),
    ];
    check(&table(LIMITS, "| limit | unit | default, library |"), 2, &expected);
}

#[test]
fn every_limit_of_a_session_is_documented() {
    let rows = table(LIMITS, "| limit | unit | default, library |");
    let limits = format!("{:#?}", Limits::default());
    let fields = limits.lines().filter_map(|line| line.trim().split_once(": "));
    let names: Vec<_> = fields.map(|(field, _)| format!("`max_{field}`")).collect();
    assert!(names.contains(&"`max_run_time`".to_owned()), "{limits}");
    for name in names {
        assert!(
            rows.iter().any(|row| row[0] == name),
            "docs/reference/limits.md has no row for {name}"
        );
    }
    let constants = include_str!("../data/limits.rs").lines();
    let constants = constants.filter_map(|line| line.trim().strip_prefix("pub const "));
    let constants = constants.filter(|line| !line.starts_with("DEFAULT_"));
    for name in constants.filter_map(|line| line.split_once(':')).map(|(name, _)| name) {
        assert!(
            LIMITS.contains(&format!("`{name}`")),
            "docs/reference/limits.md does not mention `{name}`"
        );
    }
}

#[test]
fn documented_limits_of_the_network_are_those_of_the_code() {
    // Without `..`, so that a new limit does not compile until it has a row.
    let NetLimits {
        response_bytes,
        request_bytes,
        requests,
        concurrent,
        waiting,
        open,
        request_time,
        connect_time,
        resolve_time,
        header_bytes,
        headers,
        redirects,
    } = NetLimits::default();
    let headers = format!("{}, {}", count(headers), bytes(header_bytes));
    let expected = [
        ("response bytes of a run, as received or decoded, the larger", bytes(response_bytes)),
        ("request bytes of a run", bytes(request_bytes)),
        ("requests of a run, and separately connections of sockets", count(requests)),
        ("requests at once", count(concurrent)),
        ("open responses", count(open)),
        ("time of one request", time(request_time)),
        ("time to look up a name", time(resolve_time)),
        ("time to connect, TLS included", time(connect_time)),
        ("idle connections, each kept for 30 s", count(NetLimits::IDLE_CONNECTIONS)),
        ("redirects of a request", count(redirects)),
        ("headers of a request or response", headers),
        ("length of a URL", bytes(NetLimits::URL_BYTES)),
        ("addresses of a name", count(NetLimits::ADDRESSES)),
    ];
    let rows = table(PERMISSIONS, "| limit | value | when exceeded |");
    check(&rows, 1, &expected);
    let waits = rows.iter().find(|row| row[0] == "requests at once").unwrap();
    assert_eq!(waits[2], format!("later ones wait, up to {}", count(waiting)));
}
