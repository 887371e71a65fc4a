//! Tests of `isolet run` on a terminal: what the guest learns about it, and the contents of the
//! screen.

use std::fs;

use crate::pty::{COLUMNS, Pty, ROWS};
use isolet_test_support::{Scratch, assets_dir, isolet};

const TOLD: &str = "import json, os, sys\n\
    names = ['TERM', 'COLUMNS', 'LINES', 'COLORTERM', 'NO_COLOR']\n\
    told = [sys.stdout.isatty(), sys.stderr.isatty(), *(os.environ.get(name) for name in names)]\n\
    print(json.dumps(told), file=sys.stderr)";

fn told(line: &str, variables: &[(&str, &str)], args: &[&str]) -> String {
    let mut pty = Pty::start_with(&[&["run"], args, &["-c", TOLD]].concat(), line, variables);
    assert_eq!(pty.end(), Some(0), "{}", pty.screen());
    pty.screen().replace('\n', "")
}

#[test]
fn a_guest_is_told_of_the_terminal_it_writes_to() {
    let plain = r#"[true, true, "xterm-256color", "60", "20", null, null]"#;
    assert_eq!(told("exec \"$@\"", &[], &[]), plain);
    let piped = r#"[false, true, "xterm-256color", "60", "20", null, null]"#;
    assert_eq!(told("\"$@\" | cat", &[], &[]), piped);
    let variables = [("TERM", "of-mine"), ("COLORTERM", "truecolor"), ("NO_COLOR", "please")];
    let colors = r#"[true, true, "xterm-256color", "60", "20", "truecolor", "1"]"#;
    assert_eq!(told("exec \"$@\"", &variables, &[]), colors);
    let named = r#"[true, true, "mine", "60", "20", null, null]"#;
    assert_eq!(told("exec \"$@\"", &[], &["--env", "TERM=mine"]), named);
    let ran = isolet(["run", "-c", TOLD]);
    assert_eq!(ran.stderr, "[false, false, null, null, null, null, null]\n");
}

#[test]
fn a_guest_knows_the_size_of_the_terminal() {
    let code = "import os, shutil\nprint(*os.get_terminal_size(), *shutil.get_terminal_size())";
    let mut pty = Pty::start(&["run", "-c", code]);
    assert_eq!(pty.end(), Some(0));
    assert_eq!(pty.screen(), format!("{COLUMNS} {ROWS} {COLUMNS} {ROWS}"));
}

#[test]
fn colors_pass_and_end_with_the_run() {
    let code = "print('\\x1b[31mred\\x1b[0m plain \\x1b[1;44mbold', end='')";
    let line = "\"$@\"; echo after";
    let mut pty = Pty::start_with(&["run", "-c", code], line, &[]);
    assert_eq!(pty.end(), Some(0));
    assert_eq!(pty.screen(), "red plain boldafter");
    assert_eq!(pty.cell(0, 0).fgcolor(), vt100::Color::Idx(1));
    assert_eq!(pty.cell(0, 4).fgcolor(), vt100::Color::Default);
    assert!(pty.cell(0, 10).bold() && pty.cell(0, 10).bgcolor() == vt100::Color::Idx(4));
    let after = pty.cell(0, 14);
    assert!(!after.bold() && after.bgcolor() == vt100::Color::Default);
}

/// Whatever a guest prints, the earlier contents of the screen stay.
#[test]
fn a_guest_cannot_change_what_it_has_not_written() {
    let code = "import sys\n\
        print('one\\ntwo\\x1b[9A\\x1b[2K\\rchanged\\x1b[9A\\x1b[2K\\x1b[A\\rx')\n\
        for part in ['\\x1b[', '9', 'A', 'y\\x1b', '[2K\\x08\\x08\\x08', '\\x1b[H\\x1b[1;1Hz\\x1b[2J']:\n\
        \x20   sys.stdout.write(part)\n\
        sys.stderr.write('\\x1b[5Ae')";
    let line = "echo before; echo \"> isolet\"; \"$@\"; echo; echo after";
    let mut pty = Pty::start_with(&["run", "-c", code], line, &[]);
    assert_eq!(pty.end(), Some(0));
    let screen = pty.screen();
    assert!(screen.starts_with("before\n> isolet\n"), "{screen}");
    assert!(screen.ends_with("\nafter"), "{screen}");
    assert!(screen.contains("^[[H^[[1;1Hz^[[2J"), "{screen}");
}

#[test]
fn bars_of_tqdm_look_right() {
    let code = "from tqdm import tqdm\n\
        tqdm.monitor_interval = 0\n\
        for _ in tqdm(range(3), desc='outer', mininterval=0):\n\
        \x20   for _ in tqdm(range(4), desc='inner', mininterval=0, leave=False, position=1): pass\n\
        print('done')";
    let mut pty = Pty::start(&["run", "--timeout", "2m", "-q", "--with", "tqdm", "-c", code]);
    assert_eq!(pty.end(), Some(0), "{}", pty.screen());
    let screen = pty.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    assert_eq!(lines.len(), 2, "{screen}");
    assert!(lines[0].starts_with("outer: 100%|█") && lines[0].contains("| 3/3 ["), "{screen}");
    assert!(lines[0].chars().count() >= usize::from(COLUMNS) - 1, "{screen}");
    assert_eq!(lines[1], "done", "{screen}");
}

#[test]
fn tables_and_progress_of_rich_look_right() {
    let code = "from rich.console import Console\n\
        from rich.progress import Progress\n\
        from rich.table import Table\n\
        console = Console()\n\
        table = Table('name', 'n')\n\
        table.add_row('[red]a[/red]', '1')\n\
        console.print(table)\n\
        with Progress(console=console, auto_refresh=False) as progress:\n\
        \x20   tasks = [progress.add_task(name, total=5) for name in ('one', 'two')]\n\
        \x20   for _ in range(5):\n\
        \x20       for task in tasks:\n\
        \x20           progress.advance(task)\n\
        \x20           progress.refresh()\n\
        console.print('[bold]done[/bold]')";
    let mut pty = Pty::start(&["run", "--timeout", "2m", "-q", "--with", "rich", "-c", code]);
    assert_eq!(pty.end(), Some(0), "{}", pty.screen());
    let screen = pty.screen();
    let lines: Vec<&str> = screen.lines().map(str::trim_end).collect();
    let table = ["┏━━━━━━┳━━━┓", "┃ name ┃ n ┃", "┡━━━━━━╇━━━┩", "│ a    │ 1 │", "└──────┴───┘"];
    assert_eq!(lines[..5], table, "{screen}");
    assert_eq!(pty.cell(3, 2).fgcolor(), vt100::Color::Idx(1));
    assert!(lines[5].starts_with("one ━━━━") && lines[5].contains("100%"), "{screen}");
    assert!(lines[6].starts_with("two ━━━━") && lines[6].contains("100%"), "{screen}");
    assert_eq!(lines[7..], ["done"], "{screen}");
    assert!(pty.cell(7, 0).bold());
}

#[test]
fn a_server_on_a_pipe_says_what_it_is_at_a_terminal_and_ctrl_c_ends_it() {
    for (arguments, says) in [
        (&["serve", "--stdio"][..], "isolet serve --listen"),
        (&["monty"], "MONTY_BIN"),
        (&["dspy"], "PythonInterpreter"),
        (&["mcp"], "isolet mcp add"),
    ] {
        let mut pty = Pty::start(arguments);
        pty.wait_for(|screen| screen.replace('\n', " ").contains("Ctrl-C ends it."));
        let screen = pty.screen().replace('\n', "");
        assert!(screen.contains(&says.replace(' ', "")) || screen.contains(says), "{screen}");
        pty.send("\x03");
        // By the signal, or by a handler of it.
        assert_ne!(pty.end(), Some(2), "{arguments:?}: {}", pty.screen());
    }
}

#[test]
fn a_manual_page_is_readable_at_a_terminal() {
    let mut pty = Pty::start(&["man", "version"]);
    assert_eq!(pty.end(), Some(0));
    let screen = pty.screen();
    assert!(screen.contains("Usage: isolet version") && screen.contains("man -l -"), "{screen}");
    assert!(!screen.contains(".TH"), "{screen}");
}

/// Making an image takes some seconds. A terminal has a line for it that is erased, a log one that
/// stays.
#[test]
fn what_takes_long_is_said_unless_it_is_not_wanted() {
    let scratch = Scratch::new("progress");
    let images = || {
        for entry in fs::read_dir(scratch.path()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "bin") {
                fs::remove_file(path).unwrap();
            }
        }
    };
    for entry in fs::read_dir(assets_dir()).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), scratch.path().join(entry.file_name())).unwrap();
    }
    let dir = scratch.path().to_str().unwrap();
    let log = "\"$@\" 2> \"$ISOLET_ASSETS/stderr\"";
    let logged = || fs::read_to_string(scratch.path().join("stderr")).unwrap();
    for (options, line, is_said) in [
        (&[][..], "\"$@\"", true),
        (&["--quiet"], "\"$@\"", false),
        (&["--quiet"], log, false),
        (&[], log, false),
    ] {
        images();
        let args = [&["--assets", dir, "run"], options, &["-c", "print('ran')"]].concat();
        let mut pty = Pty::start_with(&args, line, &[("ISOLET_ASSETS", dir)]);
        assert_eq!(pty.end(), Some(0), "{}", pty.screen());
        let shown = String::from_utf8_lossy(&pty.bytes).into_owned();
        let said = "isolet: making the memory image, once ... 1 s";
        assert_eq!(shown.contains(said), is_said, "{shown:?}");
        assert_eq!(pty.screen(), "ran");
        if line == log {
            let is_wanted = options.is_empty();
            let said = if is_wanted { "isolet: making the memory image, once\n" } else { "" };
            assert_eq!(logged(), said);
        }
    }
}
