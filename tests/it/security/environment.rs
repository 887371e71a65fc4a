//! Part C of the threat table: the environment and the secrets in it.

use isolet::{Permissions, Value};

use crate::util::{builder, command, eval, exec};

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

/// C2: changes that the guest makes to its environment stay in the guest.
#[tokio::test]
async fn the_hosts_environment_cannot_be_changed() {
    let sandbox = builder().permissions(Permissions::none().env("GIVEN", "1")).build().unwrap();
    let mut one = sandbox.session().await.unwrap();
    let code =
        "import os\nos.environ['PLANTED'] = 'x'\nos.environ['GIVEN'] = '2'\nos.putenv('RAW', 'y')";
    exec(&mut one, code).await;
    let mut two = sandbox.session().await.unwrap();
    let seen = eval(&mut two, "import os\nsorted(os.environ.items())").await;
    let pair = |name: &str, value: &str| Value::from(vec![name, value]);
    assert_eq!(seen, Value::List(vec![pair("GIVEN", "1"), pair("HOME", "/home/user")]));
    for name in ["PLANTED", "RAW", "GIVEN"] {
        #[expect(clippy::disallowed_methods, reason = "that it is absent is what is tested")]
        let value = std::env::var_os(name);
        assert_eq!(value, None, "{name}");
    }
}

/// C3: printing the permissions does not reveal the values that a guest was given.
#[test]
fn values_of_variables_are_not_shown() {
    let shown = format!("{:?}", Permissions::none().env("TOKEN", CANARY));
    assert!(shown.contains("TOKEN") && !shown.contains(CANARY), "{shown}");
}
