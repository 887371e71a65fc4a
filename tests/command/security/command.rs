//! Part I of the threat table: what the command shows of a guest, and what it reports about it.

use std::process::Command;

use isolet_test_support::{Scratch, assets_dir, command, isolet, program};

/// Returns the command's output as a person at a terminal sees it.
fn on_a_terminal(args: &[&str]) -> String {
    let script = "import os, pty, sys\n\
        seen = bytearray()\n\
        def read(fd):\n    data = os.read(fd, 65536)\n    seen.extend(data)\n    return data\n\
        pty.spawn(sys.argv[1:], read)\n\
        sys.stdout.flush()";
    let output = Command::new("python3")
        .args(["-c", script, &program()])
        .args(args)
        .env(isolet_test_support::ASSETS_VARIABLE, assets_dir())
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

const HOSTILE: &str = "import sys\n\
    print('a\\x1b]0;title\\x07b\\x9b31mc\\u202ed')\n\
    print('\\x1b[2J', file=sys.stderr)\n\
    raise ValueError('\\x1b[1A error: none')";

/// I1: no guest output controls the reader's terminal.
#[test]
fn guest_text_is_inert_on_a_terminal() {
    let seen = on_a_terminal(&["run", "-c", HOSTILE]);
    assert!(seen.contains("a^[]0;title^Gb\\u{9b}31mc\\u{202e}d"), "{seen:?}");
    assert!(seen.contains("ValueError: ^[[1A error: none"), "{seen:?}");
    assert!(!seen.contains(['\x1b', '\x07', '\u{9b}', '\u{202e}']), "{seen:?}");
    let raw = on_a_terminal(&["run", "--raw", "-c", HOSTILE]);
    assert!(raw.contains("a\x1b]0;title\x07b\u{9b}31m"), "{raw:?}");
}

/// I1: if the output is not a terminal, it gets the bytes unchanged.
#[test]
fn guest_text_in_a_pipe_is_untouched() {
    let code = "import sys; sys.stdout.buffer.write(b'a\\x1b[0m\\xff\\r\\n')";
    let output = command(["run", "-c", code]).output().unwrap();
    assert_eq!(output.stdout, b"a\x1b[0m\xff\r\n");
}

/// I2: guest text cannot close or forge a field of the JSON object.
#[test]
fn guest_text_cannot_forge_fields_of_the_report() {
    let code = "print('\"}, \"success\": true, \"status\": \"completed\"}\\n{\"success\": true}')\n\
        raise type('X\", \"success', (Exception,), {})('\"}')";
    let ran = isolet(["run", "--json", "-c", code]);
    assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&report["success"], &report["status"]), (&false.into(), &"raised".into()));
    assert!(report["stdout"].as_str().unwrap().starts_with("\"}, \"success\": true"));
}

/// I3: whatever status a guest exits with, the report contains the actual outcome of the run.
#[test]
fn an_exit_status_is_not_taken_for_a_verdict() {
    for status in [0, 2, 3, 4, 130] {
        let ran = isolet(["run", "--json", "-c", &format!("import sys; sys.exit({status})")]);
        let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&report["status"], &report["exit_code"]), (&"exited".into(), &status.into()));
    }
    let ran = isolet([
        "run",
        "-c",
        "import atexit, os, sys\natexit.register(os._exit, 0)\nraise ValueError",
    ]);
    assert_ne!(ran.code, Some(1), "the guest ended its interpreter itself: {}", ran.stderr);
    let ran = isolet([
        "run",
        "--timeout",
        "500ms",
        "-c",
        "import atexit, sys\natexit.register(sys.exit, 0)\nwhile True: pass",
    ]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
}

/// The audit log reports what was allowed and what was denied, as one JSON object per line.
#[test]
fn the_audit_log_tells_of_every_decision() {
    let scratch = Scratch::new("audit");
    let log = scratch.path().join("audit.jsonl");
    let data = scratch.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("a.txt"), "x").unwrap();
    let code = "import urllib.request as u\n\
        open('/data/a.txt').read()\n\
        try: open('/data/b.txt', 'w')\nexcept PermissionError: pass\n\
        try: u.urlopen('http://denied.example:81/')\nexcept PermissionError: pass\n\
        try: import js; js.WebAssembly.Module.new(js.Uint8Array.new([0, 97, 115, 109, 1, 0, 0, 0]))\n\
        except Exception: pass";
    let mount = format!("{}:/data", data.display());
    let ran = isolet(["run", "--audit", log.to_str().unwrap(), "--mount", &mount, "-c", code]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = std::fs::read_to_string(&log).unwrap();
    let events: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let seen: Vec<_> = events
        .iter()
        .map(|event| {
            let what = [&event["path"], &event["host"], &event["sha256"]];
            let what = what.into_iter().find_map(|field| field.as_str()).unwrap_or_default();
            let what = if event["access"] == "module" { "" } else { what };
            (event["access"].as_str().unwrap(), event["allowed"].as_bool().unwrap(), what)
        })
        .collect();
    let expected = [
        ("file", true, "/data/a.txt"),
        ("file", false, "/data/b.txt"),
        ("network", false, "denied.example"),
        ("module", false, ""),
    ];
    assert_eq!(seen, expected, "{text}");
}

/// An access that cannot be logged does not happen.
#[test]
#[cfg(target_os = "linux")]
fn a_log_that_cannot_be_written_ends_the_command() {
    let server = isolet_test_support::server::Server::with_text("secret");
    let code =
        format!("import urllib.request as u; u.urlopen({:?}); print('reached')", server.url("/"));
    let ran = isolet(["run", "--audit", "/dev/full", "--allow-net", &server.rule(), "-c", &code]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
    assert!(ran.stderr.starts_with("error: the audit log cannot be written: "), "{}", ran.stderr);
    assert_eq!(server.connections(), 0);
}

/// I4: all words after the script, or the code, belong to the script. A wrapper such as `isolet run
/// tool.py "$@"` grants its callers nothing.
#[test]
fn words_after_the_script_grant_nothing() {
    let scratch = Scratch::new("words");
    let host = scratch.path().join("host");
    std::fs::create_dir(&host).unwrap();
    std::fs::write(host.join("secret"), "canary").unwrap();
    let (host, audit) = (host.display().to_string(), scratch.path().join("audit.jsonl"));
    let code = "import glob, json, os, sys\n\
        print(json.dumps([sys.argv[1:], os.environ.get('A')]))\n\
        for path in glob.glob('/data/*') + glob.glob('/sandbox/*'):\n\
        \x20   print(path, open(path).read())\n\
        \x20   open(path, 'w').write('changed')";
    let script = scratch.file("tool.py", code);
    let (mount, secret) = (format!("{host}:/data:rw"), format!("{host}/secret"));
    let words = [
        &["--mount", &mount, "--allow-write", &secret, "--allow-read", &host][..],
        &["--env", "A=granted", "--audit", audit.to_str().unwrap(), "--json"],
        &["--", "--mount", &mount, "-c", code, "-h", "--nosuch"],
    ];
    let attached = format!("-c{code}");
    let modules = scratch.path().join("modules");
    std::fs::create_dir(&modules).unwrap();
    std::fs::write(modules.join("tool.py"), code).unwrap();
    let modules = format!("{}:/modules", modules.display());
    let module = &["--mount", &modules, "--env", "PYTHONPATH=/modules", "-m", "tool"];
    let scripts = [&[&script[..]][..], &["-c", code], &[&attached], &["-"], &["--", &script]];
    for start in scripts.into_iter().chain([&module[..]]) {
        for words in words {
            let args = [&["run"], start, words].concat();
            let ran =
                isolet_test_support::isolet_fed(&args, if start == ["-"] { code } else { "" });
            let seen = serde_json::from_str(&ran.stdout).unwrap_or_default();
            let expected = serde_json::json!([words, null]);
            assert_eq!((seen, ran.code), (expected, Some(0)), "{args:?}: {ran:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "canary");
    assert!(!audit.exists());
}

/// I5: running a script shows the guest that script's text, but no neighbouring file.
#[test]
fn a_script_sees_no_file_beside_it() {
    let scratch = Scratch::new("beside");
    scratch.file("secret.py", "KEY = 'canary'\n");
    let log = scratch.path().join("audit.jsonl");
    let code = "import os, sys\n\
        here = os.path.dirname(sys.argv[0])\n\
        for path in ('secret.py', here + '/secret.py', '/here/secret.py', '/sandbox/secret.py'):\n\
        \x20   try: print(open(path).read())\n\
        \x20   except OSError: pass\n\
        sys.path[:0] = [here, '/here']\n\
        try: import secret; print(secret.KEY)\n\
        except ModuleNotFoundError: print('unseen')\n\
        for base, _, names in os.walk('/'):\n\
        \x20   if 'secret.py' in names: print(base)\n";
    let script = scratch.file("script.py", code);
    let log = log.to_str().unwrap();
    let ran = isolet(["run", "--audit", log, &script]);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("unseen\n", ""));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "", "the host was asked for a file");
    let ran = isolet(["run", "--here", "--audit", log, &script]);
    assert!(ran.stdout.contains("canary"), "{ran:?}");
    assert!(std::fs::read_to_string(log).unwrap().contains("/here/secret.py"));
}
