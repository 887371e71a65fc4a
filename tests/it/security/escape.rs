//! A part of `cargo xtask escape`: programs that look for flags in files, mounts, the environment
//! and the network read none, and the control, which may read them, is found to.

#[path = "../../../benches/escape/flags.rs"]
mod flags;
#[path = "../../../benches/escape/host.rs"]
mod host;
#[path = "../../../benches/escape/programs.rs"]
mod programs;

use std::fs::{self, File};
use std::time::Duration;

use serde_json::Value;

use self::flags::{Flags, Kind, Reached, VARIABLE};
use self::host::{Allowed, Request};
use self::programs::Program;
use crate::util::{Scratch, engine_builder, isolation};
use isolet_test_support::in_child;

/// The kinds that run here. `cargo xtask escape` runs all.
const KINDS: [&str; 4] =
    ["Files of the host", "Out of a mount", "Environment and credentials", "Network"];

/// The environment variable with the path of the host's request.
const REQUEST: &str = "ISOLET_ESCAPE_REQUEST";

/// Runs programs against one host, in a process of its own. Returns what they have reached, or
/// `None` in that process.
fn reached(test: &str, programs: Vec<Program>, allowed: Allowed) -> Option<Vec<Reached>> {
    let test = format!("security::escape::{test}");
    let flags = Flags::plant().unwrap();
    let scratch = Scratch::new("escape");
    let programs = programs.into_iter().map(|program| (program.name, program.code));
    let request = Request {
        isolation: isolation(),
        allowed,
        programs: programs.collect(),
        worker: None,
        time: match allowed {
            Allowed::Nothing => Duration::from_secs(1),
            // It has to come to its end, also on a busy machine.
            Allowed::Everything => Duration::from_mins(1),
        },
    };
    let path = scratch.file("request.json", request.to_json(&flags).to_string());
    let output = in_child(&test, |command| {
        command.env(VARIABLE, flags.flag(Kind::Environment)).env(REQUEST, &path);
    });
    let Some(output) = output else {
        #[expect(clippy::disallowed_methods, reason = "how the test calls itself")]
        let path = std::env::var(REQUEST).unwrap();
        let request: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let answers = File::create(path + ".answers").unwrap();
        host::serve(engine_builder(), &request, answers).unwrap();
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answers = fs::read_to_string(path + ".answers").unwrap();
    let answers = answers.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let returned: Vec<Value> = answers.map(|answer| answer["returned"].clone()).collect();
    assert_eq!(returned.len(), request.programs.len());
    let returned: Vec<&str> = returned.iter().map(|returned| returned.as_str().unwrap()).collect();
    Some(flags.reached(returned.join("\n").as_bytes()))
}

#[test]
fn no_program_that_tries_to_escape_reaches_a_flag() {
    let all = programs::all().unwrap();
    assert!(all.len() >= 60, "{}", all.len());
    let here = all.into_iter().filter(|(kind, _)| KINDS.contains(kind));
    let here = here.map(|(_, program)| program).collect();
    let test = "no_program_that_tries_to_escape_reaches_a_flag";
    if let Some(reached) = reached(test, here, Allowed::Nothing) {
        assert_eq!(reached, []);
    }
}

#[test]
fn programs_that_may_read_the_flags_are_found_to_have_read_them() {
    let test = "programs_that_may_read_the_flags_are_found_to_have_read_them";
    let control = programs::control().unwrap();
    if let Some(reached) = reached(test, control, Allowed::Everything) {
        for kind in Kind::ALL {
            assert!(reached.contains(&Reached::Flag(kind)), "{kind:?}: {reached:?}");
        }
        let is_server = |reached: &Reached| matches!(reached, Reached::Server(_));
        assert!(reached.iter().any(is_server), "{reached:?}");
    }
}
