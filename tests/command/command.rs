//! Tests of `isolet run` and its exit statuses.

use isolet_test_support::{Scratch, isolet, isolet_fed};

/// Returns `true` if the text is one sentence for people, and nothing else.
pub(crate) fn is_one_sentence(stderr: &str) -> bool {
    stderr.starts_with("error: ") && stderr.trim_end().lines().count() == 1
}

#[test]
fn the_version_of_python_is_the_one_promised() {
    let ran = isolet(["run", "-c", "import sys; print(sys.version_info[:2])"]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("(3, 14)\n", "", Some(0)));
}

#[test]
fn a_script_is_read_from_standard_input() {
    let code = "import json; print(json.dumps({\"a\": [1, 2.5, None]}))\n";
    for args in [&["run", "-"][..], &["run"]] {
        let ran = isolet_fed(args, code);
        assert_eq!(
            (ran.stdout.as_str(), ran.code),
            ("{\"a\": [1, 2.5, null]}\n", Some(0)),
            "{ran:?}"
        );
    }
    let ran = isolet_fed(["run", "-", "a"], "import sys; print(sys.argv, sys.stdin.read())");
    assert_eq!(ran.stdout, "['-', 'a'] \n");
}

#[test]
fn a_guest_that_raises_shows_its_traceback_and_exits_with_1() {
    let ran = isolet(["run", "-c", "print(\"before\"); 1/0"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("before\n", Some(1)));
    assert_eq!(
        ran.stderr,
        "Traceback (most recent call last):\n  File \"<string>\", line 1, in <module>\n    \
         print(\"before\"); 1/0\n                     ~^~\nZeroDivisionError: division by zero\n"
    );
}

#[test]
fn a_run_past_its_time_says_so_and_exits_with_3() {
    let code = "print(\"kept\"); import itertools\nwhile True: pass";
    let ran = isolet(["run", "--timeout", "1s", "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("kept\n", Some(3)));
    assert!(
        is_one_sentence(&ran.stderr) && ran.stderr.contains("the limit is 1 s (`--timeout`)"),
        "{}",
        ran.stderr
    );
}

#[test]
fn await_works_at_the_top_level() {
    let code = "import asyncio; await asyncio.sleep(0.1); print(\"slept\")";
    let ran = isolet(["run", "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("slept\n", "", Some(0)));
}

#[test]
fn nothing_of_the_host_is_seen() {
    let code = "import os; print(os.environ.get(\"HOME\"), sorted(os.listdir(\"/\")))";
    let ran = isolet(["run", "-c", code]);
    assert_eq!(ran.stdout, "/home/user ['dev', 'home', 'lib', 'mnt', 'proc', 'root', 'tmp']\n");
}

#[test]
fn a_syntax_error_is_shown_as_python_shows_it() {
    let ran = isolet(["run", "-c", "def"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)));
    assert_eq!(
        ran.stderr,
        "  File \"<string>\", line 1\n    def\n       ^\nSyntaxError: invalid syntax\n"
    );
}

#[test]
fn what_cannot_be_read_is_one_sentence_and_2() {
    let scratch = Scratch::new("unreadable");
    let dir = scratch.path().display().to_string();
    let latin = scratch.file("latin.py", b"print('\xe9')");
    for (path, said) in [("nosuch.py", "nosuch.py"), (&dir, &dir), (&latin, "byte 7 is 0xe9")] {
        let ran = isolet(["run", path]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{path}");
        assert!(
            is_one_sentence(&ran.stderr) && ran.stderr.contains(said),
            "{path}: {}",
            ran.stderr
        );
    }
    let ran = isolet_fed(["run", "-"], b"\xff");
    assert_eq!(ran.code, Some(2));
    assert!(is_one_sentence(&ran.stderr) && ran.stderr.contains("not UTF-8"), "{}", ran.stderr);
}

#[test]
fn arguments_that_make_no_sense_are_named_and_2() {
    let cases = [
        (&["--timeout", "soon"][..], "soon"),
        (&["--timeout", "0"], "0 s"),
        (&["--timeout", "-1"], "-1"),
        (&["--timeout", "99999999999999999999"], "99999999999999999999"),
        (&["--max-output", "lots"], "lots"),
        (&["--env", "NOVALUE"], "NOVALUE"),
        (&["--env", "=x"], "=x"),
        (&["--nosuch"], "--nosuch"),
    ];
    for (args, said) in cases {
        let ran = isolet(["run"].iter().chain(args).chain(&["-c", "print(1)"]));
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{args:?}: {ran:?}");
        assert!(ran.stderr.starts_with("error: ") && ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert_eq!(isolet(["nosuch"]).code, Some(2));
}

#[test]
fn the_guests_own_status_is_passed_on() {
    let cases = [
        ("1", 0, ""),
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit(256)", 0, ""),
        ("import sys; sys.exit(-1)", 255, ""),
        ("import sys; sys.exit('bad input')", 1, "bad input\n"),
        ("raise KeyboardInterrupt", 1, "KeyboardInterrupt"),
    ];
    for (code, status, stderr) in cases {
        let ran = isolet(["run", "-c", code]);
        assert_eq!(ran.code, Some(status), "{code}: {ran:?}");
        assert!(ran.stderr.contains(stderr) && ran.stdout.is_empty(), "{code}: {ran:?}");
    }
}

#[test]
fn arguments_reach_the_script() {
    let scratch = Scratch::new("argv");
    let script =
        scratch.file("argv.py", "import sys; print(sys.argv[1:], __file__ == sys.argv[0])");
    let ran = isolet(["run", &script, "a", "--", "--json", "-c", "é"]);
    assert_eq!(ran.stdout, "['a', '--', '--json', '-c', 'é'] True\n", "{}", ran.stderr);
    let ran = isolet(["run", "-c", "import sys; print(sys.argv)", "--json", "--", "-x"]);
    assert_eq!(ran.stdout, "['-c', '--json', '--', '-x']\n", "{}", ran.stderr);
    let ran = isolet_fed(["run", "-", "--json", "-h"], "import sys; print(sys.argv)");
    assert_eq!(ran.stdout, "['-', '--json', '-h']\n", "{}", ran.stderr);
    let ran = isolet(["run", "--", &script, "--timeout"]);
    assert_eq!(ran.stdout, "['--timeout'] True\n", "{}", ran.stderr);
}

#[test]
fn standard_input_is_the_scripts() {
    let scratch = Scratch::new("stdin");
    let script =
        scratch.file("upper.py", "import sys\nfor line in sys.stdin: print(line.upper(), end='')");
    assert_eq!(isolet_fed(["run", &script], "a\né\n").stdout, "A\nÉ\n");
    assert_eq!(isolet_fed(["run", "-c", "print(input())"], "x\n").stdout, "x\n");
    let bytes = "import sys; print(list(sys.stdin.buffer.read()))";
    assert_eq!(isolet_fed(["run", "-c", bytes], [0, 255, 10]).stdout, "[0, 255, 10]\n");
}

#[test]
fn scripts_of_any_shape_run() {
    let scratch = Scratch::new("shapes");
    let cases: [(&str, &[u8], &str); 5] = [
        ("empty.py", b"", ""),
        ("bom.py", b"\xef\xbb\xbfprint('bom')", "bom\n"),
        ("crlf.py", b"if True:\r\n    print('crlf')\r\n", "crlf\n"),
        (
            "shebang.py",
            b"#!/usr/bin/env python3\n# -*- coding: utf-8 -*-\nprint('\xc3\xa9')",
            "é\n",
        ),
        ("name with space.py", b"print(__name__)", "__main__\n"),
    ];
    for (name, contents, stdout) in cases {
        let ran = isolet(["run", &scratch.file(name, contents)]);
        assert_eq!(
            (ran.stdout.as_str(), ran.stderr.as_str(), ran.code),
            (stdout, "", Some(0)),
            "{name}"
        );
    }
    assert_eq!(isolet(["run", "-c", ""]).code, Some(0));
    assert_eq!(isolet_fed(["run", "-"], "").code, Some(0));
    let huge = format!("x = '{}'\nprint(len(x))", "y".repeat(100_000));
    assert_eq!(isolet(["run", "-c", &huge]).stdout, "100000\n");
}

#[test]
fn a_traceback_names_the_script_as_it_was_given() {
    let scratch = Scratch::new("traceback");
    let script = scratch.file("fails.py", "import functools\nfunctools.reduce(1)\n");
    let ran = isolet(["run", &script]);
    let first =
        format!("Traceback (most recent call last):\n  File \"{script}\", line 2, in <module>\n");
    assert!(ran.stderr.starts_with(&first), "{}", ran.stderr);
    assert!(!ran.stderr.contains("isolet>") && ran.stderr.matches("File ").count() == 1);
}

#[test]
fn variables_and_limits_of_the_command_line_are_in_force() {
    let ran = isolet([
        "run",
        "--env",
        "A=1=2",
        "--env",
        "B=",
        "-c",
        "import os; print(dict(os.environ))",
    ]);
    assert_eq!(ran.stdout, "{'HOME': '/home/user', 'A': '1=2', 'B': ''}\n");
    let code = "print('abcdefghijklmnopqrstuvwxyz')";
    let ran = isolet(["run", "--json", "--max-output", "10", "-c", code]);
    assert!(ran.stdout.contains(r"abcde\n[... 17 bytes dropped ...]\nwxyz\n"), "{}", ran.stdout);
}

#[test]
fn a_run_can_be_without_a_deadline() {
    let ran = isolet(["run", "--timeout", "none", "-c", "print('ran')"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("ran\n", Some(0)), "{}", ran.stderr);
}

#[test]
fn a_variable_that_there_is_none_of_is_said() {
    let code = "import os; print('NOSUCH' in os.environ)";
    let ran = isolet(["run", "--allow-env", "NOSUCH", "--allow-env", "PATH", "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("False\n", Some(0)));
    assert_eq!(
        ran.stderr,
        "warning: there is no variable `NOSUCH` in this environment for `--allow-env`\n"
    );
}

#[test]
fn functions_registered_for_the_end_are_called() {
    let ran = isolet(["run", "-c", "import atexit; atexit.register(print, 'bye'); print('hi')"]);
    assert_eq!(ran.stdout, "hi\nbye\n");
}

#[test]
fn doctor_says_what_is_in_force() {
    let ran = isolet(["doctor"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for said in
        ["isolet ", "V8 ", "Pyodide ", "Python     3.14.", "isolation ", "pyodide.asm.wasm: ok"]
    {
        assert!(ran.stdout.contains(said), "{said}: {}", ran.stdout);
    }
}

#[test]
fn doctor_tells_programs_the_same() {
    let ran = isolet(["doctor", "--json", "--verbose", "--serve", "1"]);
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let text = isolet(["doctor"]).stdout;
    for name in ["isolet", "v8", "pyodide", "python"] {
        assert!(text.contains(found[name].as_str().unwrap()), "{name} of {found}");
    }
    assert_eq!(found["ok"], ran.code == Some(0));
    assert_eq!(found["error"], serde_json::Value::Null);
    assert_eq!(found["assets"]["files"].as_array().unwrap().len(), 4);
    assert!(found["assets"]["files"].as_array().unwrap().iter().all(|f| f["problem"].is_null()));
    assert!(["process", "thread"].contains(&found["isolation"]["kind"].as_str().unwrap()));
    let layers = found["isolation"]["layers"].as_array().unwrap();
    assert_eq!(layers.len(), isolet::Layer::ALL.len());
    assert!(found["system_calls"].as_array().unwrap().len() > 10);
    assert_eq!(found["capacity"]["sessions"], 1);
    assert_eq!(found["capacity"]["needs"].as_array().unwrap().len(), 6);
    // What is missing is an object, too.
    let ran = isolet(["doctor", "--json", "--assets", "/nosuch"]);
    assert_eq!(ran.code, Some(2));
    let found: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&found["ok"], &found["python"]), (&false.into(), &serde_json::Value::Null));
    assert!(found["assets"]["files"][0]["problem"].is_string(), "{found}");
}

#[test]
fn doctor_gives_the_reason_for_every_system_call_of_a_worker() {
    let calls = isolet::system_calls();
    assert_eq!(calls.is_empty(), cfg!(not(target_os = "linux")));
    for option in ["-v", "--verbose"] {
        let ran = isolet(["doctor", option]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let lines: Vec<&str> = ran.stdout.lines().collect();
        let (_, said) = lines.split_at(lines.len() - calls.len());
        for (line, call) in said.iter().zip(&calls) {
            let (name, rest) = line.split_once(' ').unwrap();
            let (rule, reason) = rest.trim_start().split_once(' ').unwrap();
            assert_eq!((name, rule), (call.name, call.rule.name()), "{line}");
            assert_eq!(reason.trim_start(), call.reason, "{line}");
        }
    }
    let brief = isolet(["doctor"]).stdout;
    assert!(calls.iter().all(|call| !brief.contains(call.reason)), "{brief}");
}

#[test]
fn help_and_version_are_told() {
    let ran = isolet(["-V"]);
    assert_eq!(ran.stdout, format!("isolet {}\n", env!("CARGO_PKG_VERSION")));
    let ran = isolet(["--version"]);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    let [version, commit, v8, pyodide, python] = lines[..] else { panic!("{}", ran.stdout) };
    assert_eq!(version, concat!("isolet ", env!("CARGO_PKG_VERSION")));
    assert!(commit.starts_with("commit   "), "{commit}");
    assert_eq!(v8, format!("V8       {}", isolet::v8_version()));
    let release = isolet_pyodide_assets::lock().unwrap().version();
    assert_eq!(pyodide, format!("Pyodide  {release}"));
    let actual = isolet(["run", "-c", "import platform; print(platform.python_version())"]);
    assert_eq!(format!("{python}\n"), format!("Python   {}", actual.stdout));
    assert!(isolet(["run", "--help"]).stdout.contains("--max-output"));
}

#[test]
fn the_page_of_the_command_has_the_help_of_every_subcommand() {
    let help = |words: &[&str]| {
        let mut command = isolet_test_support::command(words);
        // The variable's value would appear in the help.
        let said = command.arg("--help").env_remove("ISOLET_ISOLATION").output().unwrap();
        let said = String::from_utf8(said.stdout).unwrap();
        let lines: Vec<&str> = said.trim_end().lines().map(str::trim_end).collect();
        lines.join("\n") + "\n"
    };
    let place = isolet_test_support::root().join("docs/reference/options.md");
    let page = std::fs::read_to_string(&place).unwrap();
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    let is_written = std::env::var_os("ISOLET_GOLDEN").is_some();
    let mut shown = Vec::new();
    let mut sections = page.split("\n## `isolet");
    let mut written = sections.next().unwrap().to_owned();
    for section in sections {
        let (words, rest) = section.split_once('`').unwrap();
        let (before, block) = rest.split_once("```text\n").unwrap();
        let (text, after) = block.split_once("```").unwrap();
        let said = help(&words.split_whitespace().collect::<Vec<_>>());
        assert!(is_written || text == said, "isolet{words}: `cargo xtask golden` writes it");
        for part in ["\n## `isolet", words, "`", before, "```text\n", &said, "```", after] {
            written.push_str(part);
        }
        shown.push(words.trim().to_owned());
    }
    if is_written {
        std::fs::write(place, written).unwrap();
    }
    let all = help(&[]);
    let (_, commands) = all.split_once("Commands:\n").unwrap();
    let names = commands.lines().take_while(|line| !line.is_empty());
    let names = names.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    for name in names.filter(|name| !["", "help"].contains(name)) {
        assert!(
            shown.iter().any(|one| one == name),
            "docs/reference/options.md has no `isolet {name}`"
        );
    }
}

#[test]
fn the_short_help_of_every_subcommand_fits_a_screen() {
    const LINES: usize = 40;
    let page = isolet_test_support::root().join("docs/reference/options.md");
    let page = std::fs::read_to_string(page).unwrap();
    let names = page.lines().filter_map(|line| line.strip_prefix("## `isolet")?.strip_suffix('`'));
    let mut count = 0;
    for name in names {
        let words: Vec<&str> = name.split_whitespace().collect();
        let help = |option| isolet(words.iter().copied().chain([option])).stdout;
        let (short, long) = (help("-h"), help("--help"));
        assert!(!short.is_empty() && short.lines().count() <= LINES, "isolet{name} -h: {short}");
        assert!(short.lines().count() <= long.lines().count(), "isolet{name}");
        // One for all: the help of isolet itself has it.
        assert_eq!(long.contains("--assets <DIR>"), words.is_empty(), "isolet{name}: {long}");
        count += 1;
    }
    assert!(count > 30, "{count} subcommands");
}

#[test]
fn a_program_runs_without_the_word_run() {
    let scratch = Scratch::new("no_run");
    let script = scratch.file("argv.py", "import sys; print(sys.argv[1:])");
    let shown = |arguments: &[&str]| {
        let ran = isolet(arguments);
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)), "{arguments:?}");
        ran.stdout
    };
    assert_eq!(shown(&[&script, "a", "--json"]), "['a', '--json']\n");
    assert_eq!(shown(&["--timeout", "30s", "--quiet", &script, "-c"]), "['-c']\n");
    assert_eq!(shown(&["-c", "import sys; print(sys.argv)", "--help"]), "['-c', '--help']\n");
    assert_eq!(shown(&["-qc", "print(1)"]), "1\n");
    assert!(shown(&["-m", "platform"]).contains("Emscripten"));
    assert_eq!(shown(&["-s", "echo $1", "x"]), "x\n");
    assert!(shown(&["--json", "-c", "1"]).starts_with("{\"status\":\"completed\""));
    let package = scratch.path().join("package");
    std::fs::create_dir(&package).unwrap();
    std::fs::write(package.join("__main__.py"), "print('main')").unwrap();
    assert_eq!(shown(&[package.to_str().unwrap()]), "main\n");
    for arguments in [&["-"][..], &["--timeout", "30s"]] {
        let ran = isolet_fed(arguments, "print('fed')");
        assert_eq!((ran.stdout.as_str(), ran.code), ("fed\n", Some(0)), "{arguments:?}");
    }
    assert_eq!(shown(&["version"]), isolet(["--version"]).stdout);
}

#[test]
fn a_word_that_is_neither_a_file_nor_a_subcommand_is_told_what_is_like_it() {
    let ran = isolet(["rnu", "x.py"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    for said in ["'rnu'", "a similar subcommand exists: 'run'", "there is no file 'rnu' either"] {
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    let ran = isolet(["nosuch.py"]);
    assert!(is_one_sentence(&ran.stderr) && ran.stderr.contains("cannot read `nosuch.py`"));
    // Nobody is at a terminal here.
    let ran = isolet_fed([] as [&str; 0], "print(1)");
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)));
    assert!(ran.stderr.contains("Usage: isolet") && ran.stderr.lines().count() <= 40);
    // It would make an argument of the program of it.
    let ran = isolet(["run", "--cpu", "3", "-c", "1"]);
    assert!(ran.stderr.contains("'--cpu'") && !ran.stderr.contains("-- --cpu"), "{}", ran.stderr);
}

#[test]
fn completions_name_every_subcommand_and_option() {
    let scratch = Scratch::new("completions");
    for (shell, says) in [
        ("bash", "complete -F _isolet"),
        ("zsh", "#compdef isolet"),
        ("fish", "complete -c isolet"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let ran = isolet(["completions", shell]);
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
        for said in [says, "doctor", "allow-net"] {
            assert!(ran.stdout.contains(said), "{shell}: {said}");
        }
        if shell == "bash" {
            // Completes with bash itself.
            let script = scratch.file("isolet.bash", &ran.stdout);
            let words = "COMP_WORDS=(isolet run --allow-n); COMP_CWORD=2; _isolet isolet --allow-n run; \
                         echo ${COMPREPLY[@]}";
            let bash = std::process::Command::new("bash")
                .args(["--norc", "-c", &format!("source {script}; {words}")])
                .output()
                .unwrap();
            assert_eq!(String::from_utf8(bash.stdout).unwrap(), "--allow-net\n");
        }
    }
    assert_eq!(isolet(["completions", "nosuch"]).code, Some(2));
}

#[test]
fn the_manual_has_a_page_for_each_subcommand() {
    let page = isolet(["man", "run"]);
    assert_eq!(page.code, Some(0), "{}", page.stderr);
    assert!(page.stdout.contains(".TH isolet-run 1"), "{}", page.stdout);
    assert!(page.stdout.contains("allow\\-net"), "{}", page.stdout);
    let scratch = Scratch::new("man");
    let dir = scratch.path().join("man1");
    let ran = isolet(["man", "--dir", dir.to_str().unwrap()]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str(), ran.code), ("", "", Some(0)));
    let entries = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name());
    let names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    for name in ["isolet.1", "isolet-run.1", "isolet-cache-list.1", "isolet-doctor.1"] {
        assert!(names.iter().any(|written| written == name), "{name}: {names:?}");
    }
    assert!(
        !names.iter().any(|name| name.contains("worker") || name.contains("help")),
        "{names:?}"
    );
    let ran = isolet(["man", "nosuch"]);
    assert_eq!(
        (ran.stderr.as_str(), ran.code),
        ("error: `isolet` has no subcommand `nosuch`\n", Some(2))
    );
}

#[test]
fn the_notices_of_all_parts_travel_with_the_command() {
    let ran = isolet(["licenses"]);
    assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
    for said in [
        // A component, and words of its licence.
        "V8 as in v8 ",
        "Redistributions in binary form must reproduce the above",
        "ICU as in v8 ",
        "UNICODE LICENSE V3",
        "Pyodide as in Pyodide 314.",
        "Mozilla Public License Version 2.0",
        "CPython as in Pyodide 314.",
        "PYTHON SOFTWARE FOUNDATION LICENSE VERSION 2",
        "Copyright the Deno authors",
        "tokio 1.",
        "rustls 0.",
    ] {
        assert!(ran.stdout.contains(said), "{said}");
    }
}
