//! Part C of the threat table: the environment and the secrets in it.

use isolet_test_support::command;

const CANARY: &str = "canary-9b0e41";

/// C1: with every getter, the guest sees the variables that it was given, and no other.
#[test]
fn only_named_variables_are_seen_by_every_getter() {
    let code = "import os, js, pyodide_js, ctypes, sysconfig\n\
        libc = ctypes.CDLL(None)\n\
        libc.getenv.restype = ctypes.c_char_p\n\
        print(sorted(os.environ), os.getenv('SECRET'), os.environb if hasattr(os, 'environb') else '')\n\
        print(libc.getenv(b'SECRET'), libc.getenv(b'SHOWN'))\n\
        print(pyodide_js._module.ENV.to_py() if hasattr(pyodide_js._module.ENV, 'to_py') else '')\n\
        print(hasattr(js, 'process'), hasattr(js, 'Deno'))\n";
    let output = command(["run", "--allow-env", "SHOWN", "--allow-env", "ABSENT", "-c", code])
        .env("SECRET", CANARY)
        .env("SHOWN", "shown-value")
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with("['HOME', 'SHOWN'] None"), "{stdout}");
    assert!(stdout.ends_with("False False\n"), "{stdout}");
    assert!(!stdout.contains(CANARY), "{stdout}");
}
