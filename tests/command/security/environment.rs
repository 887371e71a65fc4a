//! Part C of the threat table: the environment and the secrets in it.

use isolet_test_support::server::{Response, Server};
use isolet_test_support::{Scratch, command};

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

/// C4: a secret of the command's own environment, of a file or of a command is sent to its host, in
/// headers and with `--secret-in-body` in bodies, and the code sees a placeholder.
#[test]
fn secrets_of_the_command_are_sent_and_not_seen() {
    let server = Server::start(|request| {
        let body = String::from_utf8_lossy(&request.body);
        Response::text(&format!("{:?} {body}", request.header("authorization")))
    });
    let scratch = Scratch::new("command-secrets");
    let file = scratch.path().join("key");
    std::fs::write(&file, format!("{CANARY}-file\n")).unwrap();
    let code = format!(
        "import os, urllib.request as u\n\
         for name in ['A', 'B', 'C']:\n    \
             key = os.environ[name]\n    \
             r = u.Request({:?}, key.encode(), {{'Authorization': 'Bearer ' + key}})\n    \
             print(key, u.urlopen(r).read())",
        server.url("/")
    );
    let host = server.url("");
    let output = command(["run", "--allow-net", &server.rule(), "--secret-in-body", "C"])
        .arg(format!("--secret=A=${{env:SECRET}}@{host}"))
        .arg(format!("--secret=B=${{file:{}}}@api.example.com,{host}", file.display()))
        .arg(format!("--secret=C=${{command:echo $SECRET-command}}@{host}"))
        .args(["-c", &code])
        .env("SECRET", CANARY)
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(!stdout.contains(CANARY), "{stdout}");
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{stdout}{}", String::from_utf8_lossy(&output.stderr));
    assert!(lines[0].starts_with("ISOLET_SECRET_A_"), "{stdout}");
    let seen = server.requests();
    let secrets = [CANARY.to_owned(), format!("{CANARY}-file"), format!("{CANARY}-command")];
    for (nth, secret) in secrets.iter().enumerate() {
        assert_eq!(seen[nth].header("authorization"), Some(&*format!("Bearer {secret}")));
        assert_eq!(seen[nth].body.ends_with(secret.as_bytes()), nth == 2, "{nth}");
    }
}

/// A secret that cannot be kept or cannot be had is refused before any code runs.
#[test]
fn secrets_that_cannot_be_used_are_refused_by_the_name_of_their_variable() {
    for (args, expected) in [
        (vec!["--secret", "K=short@a.test"], "the secret `K` has 5 bytes, it needs 8 to 4096"),
        (vec!["--secret", "K=canary-canary"], "it is not of the form NAME=VALUE@HOST"),
        (vec!["--secret", "K=${env:ABSENT}@a.test"], "`--secret` for `K`: the variable `ABSENT`"),
        (vec!["--secret", "K=canary-canary@*.com"], "the secret `K` is for a host"),
        (vec!["--secret-in-body", "K"], "`--secret-in-body K` needs a `--secret` of this name"),
        (
            vec!["--env", "K=1", "--secret", "K=canary-canary@a.test"],
            "the environment variable `K` is to have a value and to be a secret",
        ),
    ] {
        let output = command(["run"]).args(&args).args(["-c", "print('ran')"]).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(expected), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty() && !output.status.success(), "{args:?}");
    }
}
