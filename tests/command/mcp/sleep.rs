//! Sessions of `isolet mcp --session-store` that sleep in a directory.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;

use serde_json::json;

use super::client::{Client, session, text};
use isolet_test_support::{LONGEST, Scratch, command};

/// Returns the path of something in a directory of the test.
fn inside(scratch: &Scratch, name: &str) -> String {
    scratch.path().join(name).into_os_string().into_string().unwrap()
}

/// Starts a server whose sessions sleep in `store`, and of which one is awake.
fn server(store: &str, more: &[&str]) -> Client {
    Client::start(&[&["--session-store", store, "--max-sessions", "1"], more].concat())
}

fn files(store: &str) -> usize {
    fs::read_dir(store).unwrap().count()
}

#[test]
fn a_session_that_makes_room_sleeps_and_goes_on_by_its_handle() {
    let scratch = Scratch::new("sleep-room");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &[]);
    let code = "
import os
os.makedirs('/tmp/a'); os.chdir('/tmp/a')
open('note', 'w').write('kept')
def numbers(): yield from range(10)
n = numbers(); next(n)
";
    let first = session(&client.run(code));
    let second = session(&client.run("x = 2"));
    assert_eq!(files(&store), 1);
    let result = client.run_in(&first, "[next(n), open('note').read(), os.getcwd()]");
    assert_eq!(result["structuredContent"]["value"], json!([1, "kept", "/tmp/a"]), "{result}");
    assert_eq!(session(&result), first);
    // Now the other one sleeps.
    assert_eq!(client.run_in(&second, "x")["structuredContent"]["value"], 2);
    assert_eq!(client.run_in(&first, "next(n)")["structuredContent"]["value"], 2);
    assert_eq!(files(&store), 1);
    for name in fs::read_dir(&store).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        assert!(!name.contains(&second["s_".len()..]), "{name}");
    }
}

#[test]
fn a_session_that_nobody_uses_sleeps() {
    let scratch = Scratch::new("sleep-idle");
    let store = inside(&scratch, "store");
    let mut client = Client::start(&["--session-store", &store, "--session-ttl", "0s"]);
    let first = session(&client.run("x = 1"));
    let start = Instant::now();
    while files(&store) == 0 && start.elapsed() < LONGEST {
        // Whatever is called, time passes.
        client.call("close_session", &json!({"session": "s_0"}));
    }
    assert_eq!(files(&store), 1);
    assert_eq!(client.run_in(&first, "x")["structuredContent"]["value"], 1);
}

#[test]
fn a_handle_outlives_the_server_and_works_once_in_the_next() {
    let scratch = Scratch::new("sleep-restart");
    let store = inside(&scratch, "store");
    let mut client = Client::start(&["--session-store", &store]);
    let handles: Vec<String> =
        (0..3).map(|at| session(&client.run(&format!("x = [{at}]")))).collect();
    assert!(client.end().success());
    assert_eq!(files(&store), 3);
    let mut client = Client::start(&["--session-store", &store]);
    for (at, handle) in handles.iter().enumerate() {
        let value = &client.run_in(handle, "x.append(len(x)); x")["structuredContent"]["value"];
        assert_eq!(*value, json!([at, 1]));
    }
    assert_eq!(files(&store), 0);
    let closed = client.call("close_session", &json!({"session": handles[0]}));
    assert_eq!(closed["structuredContent"], json!({"closed": true}));
    assert!(client.end().success());
    let mut client = Client::start(&["--session-store", &store]);
    let gone = client.run_in(&handles[0], "x");
    assert!(text(&gone).starts_with("there is no session s_"), "{gone}");
    // One that sleeps can be closed, too.
    let close = json!({"session": handles[1]});
    assert_eq!(client.call("close_session", &close)["isError"], false);
    assert_eq!(client.call("close_session", &close)["isError"], true);
    let value = &client.run_in(&handles[2], "x")["structuredContent"]["value"];
    assert_eq!(*value, json!([2, 1]));
}

#[test]
fn code_that_runs_at_the_end_of_the_server_is_interrupted_and_its_session_sleeps() {
    let scratch = Scratch::new("sleep-end");
    let store = inside(&scratch, "store");
    let out = inside(&scratch, "out");
    fs::create_dir(&out).unwrap();
    let mount = format!("{out}:/out:rw");
    let args = ["--session-store", &store, "--mount", &mount];
    let mut client = Client::start(&args);
    let handle = session(&client.run("x = ['before']"));
    let code = "x.append('begun')\nopen('/out/begun', 'w').close()\nwhile True: pass";
    let arguments = json!({"code": code, "session": handle});
    client.begin("tools/call", &json!({"name": "run_python", "arguments": arguments}));
    let start = Instant::now();
    while !fs::exists(inside(&scratch, "out/begun")).unwrap() {
        assert!(start.elapsed() < LONGEST, "the code has not begun");
        std::thread::yield_now();
    }
    assert!(client.end().success());
    let mut client = Client::start(&args);
    let value = client.run_in(&handle, "x")["structuredContent"]["value"].clone();
    assert_eq!(value, json!(["before", "begun"]));
}

#[test]
fn calls_at_the_same_time_wake_a_session_once_and_take_turns() {
    let scratch = Scratch::new("sleep-turns");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &[]);
    let first = session(&client.run("order = []"));
    client.run("1");
    let calls: Vec<u64> = (0..5)
        .map(|at| {
            let code = format!("order.append({at}); order");
            let arguments = json!({"code": code, "session": first});
            client.begin("tools/call", &json!({"name": "run_python", "arguments": arguments}))
        })
        .collect();
    let answers: Vec<_> = calls.iter().map(|_| client.next()).collect();
    let longest = answers.iter().map(|answer| {
        let value = &answer["result"]["structuredContent"]["value"];
        value.as_array().unwrap_or_else(|| panic!("{answer}")).len()
    });
    assert_eq!(longest.max(), Some(5));
}

#[test]
fn a_session_that_cannot_be_saved_ends_and_the_reason_is_said() {
    let scratch = Scratch::new("sleep-unsaved");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &[]);
    let first = session(&client.run("import js; held = js.Object.new()"));
    client.run("1");
    let gone = client.run_in(&first, "held");
    let said = text(&gone);
    assert!(said.contains("at most 1 are kept"), "{said}");
    assert!(said.contains("it could not be put to sleep: "), "{said}");
    assert!(said.contains("`held` of the module `__main__`"), "{said}");
    let second = session(&client.run("data = list(range(10**6))"));
    assert!(client.end().success());
    let mut client = server(&store, &["--store-size", "64KiB"]);
    let gone = client.run_in(&second, "data");
    assert!(text(&gone).starts_with("there is no session s_"), "{gone}");
    let third = session(&client.run("data = list(range(10**6))"));
    client.run("1");
    let gone = client.run_in(&third, "data");
    let said = text(&gone);
    assert!(said.contains("the limit is 64.0 KiB (`--store-size`)"), "{said}");
}

#[test]
fn a_woken_session_has_the_permissions_of_the_server_that_wakes_it() {
    let scratch = Scratch::new("sleep-policy");
    let (store, data) = (inside(&scratch, "store"), inside(&scratch, "data"));
    fs::create_dir(&data).unwrap();
    fs::write(format!("{data}/secret"), "canary").unwrap();
    let mount = format!("{data}:/data");
    let mut client = Client::start(&["--session-store", &store, "--mount", &mount]);
    let code = "f = open('/data/secret'); f.read()";
    let result = client.run(code);
    assert_eq!(result["structuredContent"]["value"], "canary");
    let handle = session(&result);
    assert!(client.end().success());
    let mut client = Client::start(&["--session-store", &store]);
    let attempts =
        [("f.seek(0); f.read()", "OSError"), ("open('/data/secret')", "FileNotFoundError")];
    for (code, error) in attempts {
        let result = client.run_in(&handle, code);
        assert_eq!(result["structuredContent"]["error"]["type"], error, "{result}");
        assert!(!result.to_string().contains("canary"), "{result}");
    }
}

#[test]
fn a_file_in_the_store_that_is_no_session_is_refused_and_grants_nothing() {
    let scratch = Scratch::new("sleep-damaged");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &[]);
    let first = session(&client.run("x = 1"));
    client.run("1");
    let file = fs::read_dir(&store).unwrap().next().unwrap().unwrap().path();
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, bytes).unwrap();
    for _ in 0..2 {
        let refused = client.run_in(&first, "x");
        assert_eq!(refused["isError"], true);
        assert!(text(&refused).contains("it is damaged"), "{refused}");
    }
}

#[test]
fn a_directory_that_others_may_use_is_refused() {
    let scratch = Scratch::new("sleep-open");
    let store = inside(&scratch, "store");
    fs::create_dir(&store).unwrap();
    fs::set_permissions(&store, fs::Permissions::from_mode(0o755)).unwrap();
    let output = command(["mcp", "--session-store", &store]).output().unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("`chmod 700` it"), "{said}");
}

#[test]
fn models_are_told_how_long_sessions_sleep() {
    let scratch = Scratch::new("sleep-told");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &["--store-ttl", "3d"]);
    let tools = client.request("tools/list", &json!({}));
    let said = tools["result"]["tools"].to_string();
    assert!(said.contains("A session ends when nobody has used it for 3 days."), "{said}");
}

/// Where guests may write, one of them could have put a link in the place of a file of the server.
#[test]
fn files_of_the_server_that_guests_could_change_are_refused_at_the_start() {
    const CANARY: &str = "canary-5c21d7";
    let scratch = Scratch::new("sleep-reach");
    let (mounted, outside) = (inside(&scratch, "mounted"), inside(&scratch, "outside"));
    fs::create_dir_all(inside(&scratch, "mounted/around/inner")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o700)).unwrap();
    let canary = inside(&scratch, "outside/canary");
    fs::write(&canary, CANARY).unwrap();
    let mount = format!("{mounted}:/m:rw");
    // Links of the owner that lead out, and what a guest of an earlier server can make of them.
    std::os::unix::fs::symlink(&outside, inside(&scratch, "mounted/out")).unwrap();
    std::os::unix::fs::symlink(&canary, inside(&scratch, "mounted/file")).unwrap();
    let planted = "import os; os.symlink('out', '/m/store'); os.symlink('file', '/m/log')";
    let output = command(["run", "--mount", &mount, "-c", planted]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let beneath = |name: &str| format!("{mounted}/{name}");
    let around = format!("{}:/m:rw", beneath("around/inner"));
    for (mount, option, path) in [
        (&mount, "--session-store", beneath("store")),
        (&mount, "--session-store", beneath("new/store")),
        (&around, "--session-store", beneath("around")),
        (&mount, "--audit", beneath("log")),
        (&mount, "--audit", beneath("new-log")),
        (&mount, "--token-file", beneath("log")),
    ] {
        let http: &[&str] =
            if option == "--token-file" { &["--http", "unix:/nosuch/socket"] } else { &[] };
        let args = [&["mcp", "--mount", mount, option, &path], http].concat();
        let output = command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{option} {path}");
        let named = [option, &path, mount.split(':').next().unwrap(), "with `rw` at `/m`"];
        assert!(named.iter().all(|part| said.contains(part)), "{option} {path}: {said}");
    }
    fs::write(beneath("servers.json"), r#"{"mcpServers": {}}"#).unwrap();
    let authority = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj /CN=a";
    let mut openssl = std::process::Command::new("openssl");
    openssl.args(authority.split(' ')).args(["-keyout", "/dev/null", "-out", &beneath("ca.pem")]);
    assert!(openssl.output().unwrap().status.success());
    for (args, named) in [
        (["mcp", "--config", &beneath("servers.json")], "the servers of `--config`, `"),
        (["run", "--ca-file", &beneath("ca.pem")], "the authorities of `--ca-file`, `"),
        (["run", "--wheels", &beneath("around")], "what `--wheels` names, `"),
    ] {
        let [action, option, path] = args;
        let code: &[&str] = if action == "run" { &["-c", "1"] } else { &[] };
        let args = [&[action, "--mount", &mount, option, path], code].concat();
        let output = command(args).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.contains(named), "{option}: {said}");
        assert!(said.contains(path) && said.contains("with `rw` at `/m`"), "{option}: {said}");
    }
    let log = beneath("log");
    let output = command(["run", "--mount", &mount, "--audit", &log, "-c", "1"]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("the log of `--audit`, `"));
    assert_eq!(fs::read_to_string(&canary).unwrap(), CANARY);
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!fs::exists(beneath("new-log")).unwrap() && !fs::exists(beneath("new")).unwrap());
}

/// Images and packages in the cache are trusted, as is what was pinned and accepted.
#[test]
fn a_guest_writes_to_no_directory_of_isolet() {
    let scratch = Scratch::new("own-directories");
    let own = inside(&scratch, "home/isolet");
    fs::create_dir_all(&own).unwrap();
    for variable in ["XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        for (mounted, mode) in [("home", "rw"), ("home/isolet", "rw"), ("home/isolet", "ro")] {
            let mount = format!("{}:/m:{mode}", inside(&scratch, mounted));
            let run = ["run", "--mount", &mount, "-c", "1"];
            let output = command(run).env(variable, inside(&scratch, "home")).output().unwrap();
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.success(), mode == "ro", "{said}");
            assert_eq!(said.contains("change isolet's own files, `"), mode == "rw", "{said}");
        }
    }
}

#[test]
fn the_context_of_decimal_lives_from_call_to_call_and_through_sleep() {
    let scratch = Scratch::new("sleep-context");
    let store = inside(&scratch, "store");
    let mut client = server(&store, &[]);
    let first = session(&client.run("import decimal; decimal.getcontext().prec = 10"));
    let code = "str(decimal.Decimal(1) / 7)";
    let value = |result: serde_json::Value| result["structuredContent"]["value"].clone();
    assert_eq!(value(client.run_in(&first, code)), "0.1428571429");
    client.run("x = 2");
    assert_eq!(files(&store), 1);
    assert_eq!(value(client.run_in(&first, code)), "0.1428571429");
}
