//! A1 to A5, A11, A20, A22: the way from Python to JavaScript to the host offers nothing to
//! exploit.

use isolet_test_support::command;

/// A text that no guest may ever see.
const CANARY: &str = "canary-7c41e9d2";

/// A20: the host's secrets are not in the memory that the guest can read.
#[test]
fn a_secret_of_the_host_is_not_in_the_guests_memory() {
    let code = "
from pyodide.code import run_js
import pyodide_js, sys
found = run_js('''(memory, reversed) => {
    const needle = [...reversed].reverse().map((letter) => letter.charCodeAt(0));
    let found = 0;
    for (let at = memory.indexOf(needle[0]); at >= 0; at = memory.indexOf(needle[0], at + 1)) {
        if (needle.every((byte, i) => memory[at + i] === byte)) found++;
    }
    return found;
}''')
planted = sys.argv[2].encode()
print(found(pyodide_js._module.HEAPU8, sys.argv[1]), found(pyodide_js._module.HEAPU8, sys.argv[2][::-1]) > 0)
";
    // Reversed, so that the search does not find its own argument.
    let reversed: String = CANARY.chars().rev().collect();
    let args = ["run", "-c", code, &reversed, "something that is there"];
    let ran = command(args).env("SECRET", CANARY).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "0 True\n", "{ran:?}");
}
