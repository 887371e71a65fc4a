//! Tests of `isolet run --record`, `isolet resume` and `isolet replay`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use isolet_test_support::{Ran, Scratch, command, isolet, isolet_fed};

/// Notes each step in a file of the host, once, and prints what it knows then.
const PROGRAM: &str = "
import os, random, time
drawn = random.random()
def step(n):
    with open('/work/steps', 'a') as steps:
        steps.write(f'{n}\\n')
    os.mkdir(f'/work/{n}')
    time.sleep(0.01)
    with open('/work/steps') as steps:
        print(n, drawn, time.time(), len(steps.readlines()), sorted(os.listdir('/work')))
for n in range(12):
    step(n)
";

fn ran(args: &[&str]) -> Ran {
    let ran = isolet(args);
    assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
    ran
}

/// Starts to run a program, and kills it once it has printed so many lines. Returns these.
fn killed_after(lines: usize, args: &[&str]) -> String {
    let mut child = command(args).stdout(Stdio::piped()).spawn().unwrap();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let seen: Vec<String> = stdout.lines().take(lines).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(seen.len(), lines);
    seen.into_iter().flat_map(|line| [line, "\n".to_owned()]).collect()
}

#[test]
fn a_run_that_is_killed_goes_on_and_does_nothing_twice() {
    let scratch = Scratch::new("command-journal");
    let work = scratch.path().join("work");
    fs::create_dir(&work).unwrap();
    let mount = format!("{}:/work:rw", work.display());
    let program = scratch.file("steps.py", PROGRAM);
    let journal = scratch.path().join("run.journal").display().to_string();
    let first = killed_after(3, &["run", "--mount", &mount, "--record", &journal, &program]);
    let second = killed_after(7, &["resume", "--mount", &mount, &journal]);
    assert!(second.starts_with(&first), "{first} {second}");
    let last = ran(&["resume", "--mount", &mount, &journal]).stdout;
    assert!(last.starts_with(&second), "{second} {last}");
    assert_eq!(last.lines().count(), 12);
    let steps = fs::read_to_string(work.join("steps")).unwrap();
    assert!(steps.lines().eq((0..12).map(|n| n.to_string())), "{steps}");

    // Nothing of it is needed to look back.
    fs::remove_dir_all(&work).unwrap();
    assert_eq!(ran(&["replay", &journal]).stdout, last);
    let json = ran(&["replay", "--json", &journal]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["stdout"], last);
    let traced = ran(&["replay", "--trace", &journal]).stderr;
    assert!(traced.contains("file: open steps") && traced.contains("create directory 11"));
}

#[test]
fn a_replay_has_the_variables_of_the_function_in_which_it_stops() {
    let scratch = Scratch::new("command-journal");
    let journal = scratch.path().join("run.journal").display().to_string();
    let program = scratch.file(
        "wait.py",
        "
import time
def wait(n):
    found = n * 10
    time.sleep(0.05)
    print('waited', n)
for n in range(20): wait(n)
",
    );
    ran(&["run", "--record", &journal, &program]);
    let args = ["replay", "--until", "0.5s", "--repl", &journal];
    let looked = isolet_fed(args, "print(found == n * 10, n < 19)\n");
    assert!(looked.stdout.ends_with("True True\n"), "{} {}", looked.stdout, looked.stderr);
    // In the wait, or where it has ended.
    let stop = |line| format!("stopped in wait, line {line} with the variables found, n");
    let is_there = [5, 6].iter().any(|line| looked.stderr.contains(&stop(line)));
    assert!(is_there, "{}", looked.stderr);
}

#[test]
fn a_replay_stops_before_a_line_of_code() {
    let scratch = Scratch::new("command-journal");
    let journal = scratch.path().join("run.journal").display().to_string();
    let program = scratch.file(
        "steps.py",
        "
import json
def step(n):
    found = json.dumps(n * 10)
    print('step', n)
for n in range(5): step(n)
",
    );
    ran(&["run", "--record", &journal, &program]);
    for (until, stop, printed) in [
        ("steps.py:5", "stopped in step, line 5 with the variables found, n", "0 0\n"),
        (":4", "stopped in step, line 4 with the variables n", ""),
        (":6", "stopped in <module>, line 6", ""),
    ] {
        let args = ["replay", "--until", until, "--repl", &journal];
        let looked = isolet_fed(args, "print(found, n)\n");
        assert!(looked.stderr.contains(stop), "{until}: {}", looked.stderr);
        assert_eq!(looked.stdout, printed, "{until}");
    }
    // A line that no code comes to.
    assert_eq!(ran(&["replay", "--until", "other.py:5", &journal]).stdout.lines().count(), 5);
    let refused = isolet(["replay", "--until", "steps.py:0", &journal]);
    assert!(refused.stderr.contains("`0` is no line, and lines count from 1"));
}

#[test]
fn what_is_no_journal_is_refused_and_one_is_not_written_twice() {
    let scratch = Scratch::new("command-journal");
    let journal = scratch.path().join("run.journal").display().to_string();
    ran(&["run", "--record", &journal, "-c", "1"]);
    let before = fs::read(&journal).unwrap();
    for (args, reason) in [
        (&["run", "--record", &journal, "-c", "1"][..], "File exists"),
        (&["resume", "--env", "A=1", &journal], "other environment variables"),
        (&["resume", &scratch.file("empty", "")], "it is empty: the session was killed before it"),
        (&["resume", &scratch.file("other", "{}")], "it is no journal"),
        (&["resume", &scratch.file("next", "isolet journal 9\n")], "its format is 9"),
        (&["resume", "nosuch.journal"], "No such file"),
        (&["replay", "--until", "0", &journal], "calls are counted from 1"),
    ] {
        let refused = isolet(args);
        assert_ne!(refused.code, Some(0), "{args:?}");
        assert!(refused.stderr.contains(reason), "{args:?}: {}", refused.stderr);
    }
    assert!(fs::read(&journal).unwrap() == before);

    // Only the first record: the session was killed before it began.
    let begin = before.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let length = u32::from_le_bytes(before[begin..begin + 4].try_into().unwrap()) as usize;
    let unbegun = scratch.file("unbegun", &before[..begin + 8 + length]);
    let refused = isolet(["resume", &unbegun]);
    assert!(
        refused.stderr.contains("the program was killed before it began"),
        "{}",
        refused.stderr
    );
}
