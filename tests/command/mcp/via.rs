//! Tests of `isolet mcp add --via`: the files of clients on systems that isolet does not run on.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use isolet_mcp::Client;
use serde_json::{Value, json};

use isolet_test_support::{Ran, Scratch, command, program};

fn add(client: Client, distribution: &str, args: &[&str]) -> Ran {
    let mut command = command(["mcp", "add", client.name()]);
    command.args(args).env("WSL_DISTRO_NAME", distribution).output().unwrap().into()
}

/// Returns the file in what was printed, after an empty line, and the lines before it.
fn halves(printed: &str) -> (&str, &str) {
    printed.split_once("\n\n").unwrap()
}

/// Returns the command line that the client starts.
fn line(client: Client, printed: &str) -> Value {
    let own = client.to_own(halves(printed).1).unwrap();
    let own: Value = serde_json::from_str(&own).unwrap();
    let entry = &own["mcpServers"]["isolet"];
    let mut words = vec![entry["command"].clone()];
    words.extend(entry["args"].as_array().unwrap().iter().cloned());
    words.into()
}

#[test]
fn a_client_on_windows_starts_isolet_in_wsl() {
    for client in Client::ALL {
        let ran = add(client, "", &["--via", "wsl", "--", "--timeout", "50s"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        let words = line(client, &ran.stdout);
        assert_eq!(words.as_array().unwrap()[..4], ["wsl", "--exec", "sh", "-c"]);
        assert_eq!(words.as_array().unwrap()[5..], ["isolet", "mcp", "--timeout", "50s"]);
        assert!(halves(&ran.stdout).0.contains("Windows %"), "{ran:?}");
        assert!(!halves(&ran.stdout).0.contains("macOS"), "{ran:?}");
    }
    // There it knows where it is, and what the distribution is called.
    let ran = add(Client::ClaudeDesktop, "Debian", &["--via", "wsl"]);
    let words = json!(["wsl", "--distribution", "Debian", "--exec", program(), "mcp"]);
    assert_eq!(line(Client::ClaudeDesktop, &ran.stdout), words);
    assert!(ran.stdout.contains(r"%APPDATA%\Claude\claude_desktop_config.json"), "{ran:?}");
}

#[test]
fn what_starts_isolet_in_wsl_finds_the_installed_one_and_changes_no_option() {
    let options =
        ["--mount", "/my data/*:/data", "--allow-net", "*.example:443", "--env", "A=$B\"'"];
    let ran = add(Client::Cursor, "", &[&["--via", "wsl", "--"][..], &options].concat());
    let words = line(Client::Cursor, &ran.stdout);
    let words: Vec<_> =
        words.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
    assert!(!words[4].contains(['"', '\'']), "{words:?}");
    // `wsl --exec` starts the words after it as they are.
    let home = Scratch::new("via-wsl");
    fs::create_dir_all(home.path().join(".local/bin")).unwrap();
    home.file(".local/bin/isolet", "#!/bin/sh\nprintf '%s\\n' \"$@\"\n");
    let program = home.path().join(".local/bin/isolet");
    fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut started = Command::new(words[2]);
    started.args(&words[3..]).env("HOME", home.path()).current_dir(home.path());
    let output = started.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(said.lines().collect::<Vec<_>>(), [&["mcp"][..], &options].concat());
}

#[test]
fn a_client_on_any_system_starts_isolet_in_a_container() {
    let built = concat!("isolet:", env!("CARGO_PKG_VERSION"));
    for (via, program) in [("container", "docker"), ("docker", "docker"), ("podman", "podman")] {
        for (args, image) in
            [(&[][..], built), (&["--image", "reg.example/isolet:2"], "reg.example/isolet:2")]
        {
            let args = [&["--via", via], args, &["--", "--with", "numpy"]].concat();
            let ran = add(Client::Cursor, "", &args);
            assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
            let run =
                ["run", "-i", "--rm", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"];
            let words = [
                &[program][..],
                &run,
                &["--entrypoint", "isolet", image, "mcp"],
                &["--with", "numpy"],
            ];
            assert_eq!(line(Client::Cursor, &ran.stdout), json!(words.concat()));
            let before = halves(&ran.stdout).0;
            for place in
                ["macOS   ~/.cursor/mcp.json", r"Windows %USERPROFILE%\.cursor\mcp.json", "`-v`"]
            {
                assert!(before.contains(place), "{before}");
            }
        }
    }
}

#[test]
fn what_is_printed_only_is_not_also_written_and_options_are_checked() {
    for (args, reason) in [
        (&["--via", "wsl", "--project"][..], "cannot be used with"),
        (&["--via", "wsl", "--replace"], "cannot be used with"),
        (&["--via", "container", "--move-servers", "/tmp/x.json"], "cannot be used with"),
        (&["--via", "container", "--image", "--privileged"], "unexpected argument"),
        (&["--via", "container", "--image=--privileged"], "it is no name of an image"),
        (&["--image", "isolet:1"], "--via <HOW>"),
        (&["--via", "wsl", "--", "--no-such-option"], "does not start with the options"),
        (&["--via", "vm"], "invalid value 'vm'"),
    ] {
        let ran = add(Client::Cursor, "", args);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        assert!(ran.stderr.contains(reason), "{args:?}: {}", ran.stderr);
    }
}
