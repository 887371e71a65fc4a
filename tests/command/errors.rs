//! Tests of errors: their causes, and the Python exceptions that they were made from.

use isolet_test_support::{Scratch, isolet};

#[test]
fn the_command_says_a_cause_once() {
    let reason = "No such file or directory";
    for json in [false, true] {
        let mount = ["run", "--mount", "/nowhere/at/all:/data", "-c", "1"];
        let ran = isolet(mount.into_iter().chain(json.then_some("--json")));
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(said.matches(reason).count(), 1, "{said}");
    }
}

/// What the library calls by its own methods, the command calls by its options.
#[test]
fn messages_name_options_and_no_call() {
    let scratch = Scratch::new("words");
    let file = scratch.file("a.txt", "");
    let root = ["--mount", "/:/data"];
    let file_mount = format!("{file}:/data");
    let cases: [(&[&str], &str); 9] = [
        (&["--timeout", "0.2", "-c", "while True: pass"], "(`--timeout`)"),
        (&[root[0], root[1], "-c", "1"], "hint: mount a directory that has only what"),
        (&["--mount", &file_mount, "-c", "1"], "it is a file, not a directory"),
        (&["--mount", ".:/lib", "-c", "1"], "cannot mount at \"/lib\": `/lib`"),
        (&["--allow-net", "*", "-c", "1"], "`--allow-public-net` allows the public network"),
        (&["--offline", "--with", "nosuch", "-c", "1"], "`--offline` forbids downloads"),
        (&["--timeout", "abc", "-c", "1"], "`abc` is no time, such as 500ms, 10s, 2m or none"),
        (&["--isolation", "thread", "--require", "seccomp", "-c", "1"], "seccomp"),
        (&["--wheels", "/nosuch", "--with", "nosuch", "--offline", "-c", "1"], "/nosuch"),
    ];
    for (arguments, says) in cases {
        let ran = isolet([&["run"], arguments].concat());
        assert_ne!(ran.code, Some(0), "{arguments:?}");
        assert!(ran.stderr.contains(says), "{arguments:?}: {}", ran.stderr);
        assert!(!ran.stderr.contains("::"), "{arguments:?}: {}", ran.stderr);
    }
}
