//! Tests of `isolet repl` on a terminal.

use crate::pty::Pty;
use isolet_test_support::Scratch;

/// Starts a prompt with a separate history, and waits until it is shown.
fn prompt(scratch: &Scratch, variables: &[(&str, &str)]) -> Pty {
    let home = scratch.path().to_str().unwrap();
    let variables = [&[("XDG_STATE_HOME", home)], variables].concat();
    let mut pty = Pty::start_with(&["repl"], "exec \"$@\"", &variables);
    pty.wait_for(|screen| screen.contains(">>>"));
    pty
}

#[test]
fn isolet_alone_is_the_prompt_and_exit_alone_ends_it() {
    let scratch = Scratch::new("alone");
    let home = scratch.path().to_str().unwrap();
    for arguments in [&[][..], &["--timeout", "1m"]] {
        let mut pty = Pty::start_with(arguments, "exec \"$@\"", &[("XDG_STATE_HOME", home)]);
        pty.wait_for(|screen| screen.contains(">>>"));
        pty.send("import nosuchmodule\r");
        pty.wait_for(|screen| screen.replace('\n', "").contains("`--with nosuchmodule` loads it"));
        pty.send("exit\r");
        assert_eq!(pty.end(), Some(0), "{}", pty.screen());
    }
    let mut pty = prompt(&scratch, &[]);
    // A name that the user has given a value.
    pty.send("exit = 'kept'\r");
    pty.wait_for(|screen| screen.matches(">>>").count() == 2);
    pty.send("exit\r");
    pty.wait_for(|screen| screen.contains("'kept'"));
    pty.send("quit\r");
    assert_eq!(pty.end(), Some(0), "{}", pty.screen());
}

fn ends(mut pty: Pty) {
    pty.send("exit()\r");
    assert_eq!(pty.end(), Some(0), "{}", pty.screen());
}

#[test]
fn no_line_is_lost_when_several_come_at_once() {
    let scratch = Scratch::new("at-once");
    let mut pty = prompt(&scratch, &[]);
    pty.send(
        "a = 1\rb = a + 1\rfor i in range(2):\r    a += b\r    b += a\r\rprint('sum', a + b)\r",
    );
    pty.wait_for(|screen| screen.contains("sum 21"));
    ends(pty);
}

#[test]
fn a_paste_is_one_cell() {
    let scratch = Scratch::new("paste");
    let mut pty = prompt(&scratch, &[]);
    pty.send("\x1b[200~def f(x):\n    y = x + 1\n\n    return y\n\nprint('f', f(1))\x1b[201~");
    pty.wait_for(|screen| screen.contains("print('f', f(1))"));
    pty.send("\r");
    pty.wait_for(|screen| screen.contains("f 2"));
    ends(pty);
}

#[test]
fn a_block_is_indented_as_it_is_typed() {
    let scratch = Scratch::new("indent");
    let mut pty = prompt(&scratch, &[]);
    pty.send("def f():\r");
    pty.wait_for(|screen| screen.contains("..."));
    pty.send("if True:\r");
    pty.wait_for(|screen| screen.matches("...").count() == 2);
    pty.send("return 'inner'\r");
    pty.wait_for(|screen| screen.matches("...").count() == 3);
    assert!(
        pty.screen().contains("...     if True:\n...         return 'inner'"),
        "{}",
        pty.screen()
    );
    pty.send("\r");
    pty.wait_for(|screen| screen.matches(">>>").count() == 2);
    pty.send("f() * 2\r");
    pty.wait_for(|screen| screen.contains("'innerinner'"));
    ends(pty);
}

#[test]
fn names_are_completed() {
    let scratch = Scratch::new("complete");
    let mut pty = prompt(&scratch, &[]);
    pty.send("longest_name = {'a': 1}\rlonge\t.se\t('b', 'found')\r");
    pty.wait_for(|screen| screen.contains("longest_name.setdefault('b', 'found')\n'found'"));
    ends(pty);
}

#[test]
fn code_and_exceptions_have_colors_unless_nobody_wants_them() {
    let scratch = Scratch::new("colors");
    for (variables, has_color) in [(&[][..], true), (&[("NO_COLOR", "1")], false)] {
        let mut pty = prompt(&scratch, variables);
        pty.send("if 'a': 1/0\r\r");
        pty.wait_for(|screen| screen.contains("ZeroDivisionError"));
        let screen = pty.screen();
        let row_of = |text: &str| {
            let row = screen.lines().position(|line| line.contains(text)).unwrap();
            u16::try_from(row).unwrap()
        };
        let (code, error) = (row_of(">>> if"), row_of("ZeroDivisionError"));
        let colored = |color: u8| {
            if has_color { vt100::Color::Idx(color) } else { vt100::Color::Default }
        };
        assert_eq!(pty.cell(code, 4).fgcolor(), colored(4), "a keyword");
        assert_eq!(pty.cell(code, 7).fgcolor(), colored(2), "a string");
        assert_eq!(pty.cell(error, 0).fgcolor(), colored(5), "an exception");
        ends(pty);
    }
}

#[test]
fn an_interrupted_wait_for_input_takes_no_line() {
    let scratch = Scratch::new("interrupted");
    let mut pty = prompt(&scratch, &[]);
    pty.send("input('name? ')\r");
    pty.wait_for(|screen| screen.contains("\nname?"));
    pty.send("\x03");
    pty.wait_for(|screen| {
        screen.contains("KeyboardInterrupt") && screen.trim_end().ends_with(">>>")
    });
    pty.send("input('again? ')\r");
    pty.wait_for(|screen| screen.contains("\nagain?"));
    pty.send("Ada\r");
    pty.wait_for(|screen| screen.contains("'Ada'"));
    ends(pty);
}

const TABLE: &str = "class Table:\r    def _repr_html_(self):\r        \
    return '<table><tr><th>name</th><th>moons</th></tr><tr><td>Mars</td><td>2</td></tr></table>'\r\r";

#[test]
fn a_table_is_drawn_in_place_of_its_repr() {
    let scratch = Scratch::new("table");
    let mut pty = prompt(&scratch, &[]);
    pty.send(TABLE);
    pty.wait_for(|screen| screen.matches(">>>").count() == 2);
    pty.send("Table()\r");
    pty.wait_for(|screen| screen.matches(">>>").count() == 3);
    pty.send("'next'\r");
    pty.wait_for(|screen| screen.matches(">>>").count() == 4);
    let drawn = "\
>>> Table()
┌──────┬───────┐
│ name ┆ moons │
╞══════╪═══════╡
│ Mars ┆     2 │
└──────┴───────┘
>>> 'next'
'next'";
    assert!(pty.screen().contains(drawn), "{}", pty.screen());
    ends(pty);
}
