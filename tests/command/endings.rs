//! Tests of the end of a program: it loses nothing that `python` would keep.

use std::fs;

use isolet_test_support::{Scratch, isolet};

#[test]
fn the_command_keeps_them_too_and_so_does_the_end_of_a_prompt() {
    let scratch = Scratch::new("endings-command");
    let mount = format!("{}:/data:rw", scratch.path().display());
    let code = "class R:\n    def __del__(self): print('\\ndel ran')\nr = R()\n\
                f = open('/data/f', 'w'); f.write('x')\nprint('a', end='')";
    let ran = isolet(["run", "--mount", &mount, "-c", code]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("a\ndel ran\n", Some(0)));
    assert_eq!(fs::read(scratch.path().join("f")).unwrap(), b"x");
}
