//! Tests of scripts of the shell: `isolet run -s`, `isolet run FILE.sh`, and `isolet sh`.

use std::fs;

use isolet_test_support::{Scratch, isolet, isolet_fed};

#[test]
fn a_script_runs_with_its_arguments_input_and_status() {
    let ran = isolet_fed(["run", "-s", "sort; echo $1 >&2; exit 3", "a"], "2\n1\n");
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("1\n2\n", "a\n", Some(3)));
    let ran = isolet(["run", "-s", "nosuch --flag"]);
    assert_eq!(ran.code, Some(127));
    assert_eq!(ran.stderr, "bash: nosuch: command not found\n");
}

#[test]
fn a_file_is_run_as_a_script_by_its_name_or_its_first_line() {
    let scratch = Scratch::new("shell-scripts");
    let named = scratch.file("clean.sh", "echo $0 $1 | tr a-z A-Z\n");
    let ran = isolet(["run", named.as_str(), "x"]);
    assert!(ran.stdout.ends_with("CLEAN.SH X\n"), "{}{}", ran.stdout, ran.stderr);
    let marked = scratch.file("clean", "#!/usr/bin/env bash\nseq 3 | tac | head -1\n");
    assert_eq!(isolet(["run", marked.as_str()]).stdout, "3\n");
    // One that the guest sees finds what is beside it.
    scratch.file("lib.sh", "greet() { read name; echo hello $name; }\n");
    let sourcing =
        scratch.file("main.sh", "source \"$(dirname \"${BASH_SOURCE[0]}\")/lib.sh\"; greet");
    let ran = isolet_fed(["run", "--here", sourcing.as_str()], "you\n");
    assert_eq!(ran.stdout, "hello you\n", "{}", ran.stderr);
}

#[test]
fn a_script_sees_the_directories_that_the_options_show_and_no_other() {
    let scratch = Scratch::new("shell-mounts");
    scratch.file("in.csv", "a,1\nb,2\n");
    let data = scratch.path().display().to_string();
    let script = "cut -d, -f1 /data/in.csv | paste -sd+; echo x > /data/out; cat \"$1\"";
    let canary = Scratch::new("shell-canary").file("canary", "canary");
    let ran = isolet(["run", "--mount", &format!("{data}:/data:ro"), "-s", script, &canary]);
    assert_eq!(ran.stdout, "a+b\n", "{}", ran.stderr);
    assert!(!fs::exists(scratch.path().join("out")).unwrap(), "the directory is read-only");
    assert!(ran.stderr.ends_with("canary: No such file or directory\n"), "{}", ran.stderr);
}

#[test]
fn a_prompt_keeps_variables_directory_and_unfinished_lines() {
    let input = "x=5\ncd /tmp\npwd; echo $x\ncat <<E\nhi $x\nE\nif true; then\necho yes\nfi\n\
                 read line\nfor the guest\necho $line\nfalse\necho $?\nexit 4\necho never\n";
    let ran = isolet_fed(["sh"], input);
    let expected = "/tmp\n5\nhi 5\nyes\nfor the guest\n1\n";
    assert_eq!((ran.stdout.as_str(), ran.code), (expected, Some(4)), "{}", ran.stderr);
}

#[test]
fn a_prompt_goes_on_after_a_command_past_its_time() {
    let ran = isolet_fed(["sh", "--timeout", "1s"], "x=1\nwhile :; do :; done\necho $x\n");
    assert_eq!((ran.stdout.as_str(), ran.code), ("1\n", Some(0)), "{}", ran.stderr);
    assert!(ran.stderr.contains("the limit is 1 s"), "{}", ran.stderr);
}
