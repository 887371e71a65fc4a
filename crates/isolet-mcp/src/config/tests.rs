//! Tests of reading configurations.

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::*;
use crate::config::redact::Redactor;

fn environment() -> Environment {
    Environment::new([("HOME", "/h"), ("PATH", "/bin"), ("GH", "gh-t0ken-value")])
}

fn parsed(text: &str) -> Result<Config, String> {
    Config::parse(text, "f.json", &environment(), Origin::Own).map_err(|error| error.to_string())
}

fn reached(server: &ServerConfig) -> (Reached, Redactor) {
    let mut redactor = Redactor::default();
    let reached = server.reach(&mut redactor).unwrap();
    (reached, redactor)
}

#[test]
fn a_server_is_off_if_either_key_says_so_and_half_a_pair_is_a_character() {
    for (keys, is_disabled) in [
        (r#""enabled": false"#, true),
        (r#""enabled": true"#, false),
        (r#""enabled": null"#, false),
        (r#""enabled": true, "disabled": true"#, true),
        (r#""env": {"N": "\ud83d"}"#, false),
    ] {
        let text = format!(r#"{{"mcpServers": {{"a": {{"command": "x", {keys}}}}}}}"#);
        assert_eq!(parsed(&text).unwrap().servers()[0].is_disabled(), is_disabled, "{keys}");
    }
}

#[test]
fn the_file_of_claude_code_is_where_its_variable_says() {
    let file = |variables: &[(&'static str, &'static str)]| {
        Client::ClaudeCode.file(&Environment::new(variables.iter().copied()))
    };
    assert_eq!(file(&[("HOME", "/h")]), Some("/h/.claude.json".into()));
    let named = file(&[("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c/d")]);
    assert_eq!(named, Some("/c/d/.claude.json".into()));
}

#[test]
fn the_file_of_each_client_is_shown_as_people_of_each_system_know_it() {
    for (client, linux, mac, windows) in [
        (
            Client::ClaudeDesktop,
            "~/.config/Claude/claude_desktop_config.json",
            "~/Library/Application Support/Claude/claude_desktop_config.json",
            r"%APPDATA%\Claude\claude_desktop_config.json",
        ),
        (
            Client::Cursor,
            "~/.cursor/mcp.json",
            "~/.cursor/mcp.json",
            r"%USERPROFILE%\.cursor\mcp.json",
        ),
        (
            Client::Zed,
            "~/.config/zed/settings.json",
            "~/.config/zed/settings.json",
            r"%APPDATA%\zed\settings.json",
        ),
        (
            Client::Goose,
            "~/.config/goose/config.yaml",
            "~/.config/goose/config.yaml",
            r"%APPDATA%\Block\goose\config\config.yaml",
        ),
    ] {
        let shown = [System::Linux, System::MacOs, System::Windows];
        assert_eq!(shown.map(|system| client.shown_file(system)), [linux, mac, windows]);
    }
    for client in Client::ALL {
        for system in [System::Linux, System::MacOs, System::Windows] {
            let shown = client.shown_file(system);
            assert!(shown.starts_with(['~', '%']) && !shown.contains("-directory"), "{shown}");
        }
    }
}

#[test]
fn the_shapes_of_all_clients_are_read() {
    for key in ["mcpServers", "servers"] {
        let text = format!(
            r#"{{"inputs": [], "{key}": {{ // comment
                "b": {{"command": "npx", "args": ["-y", "x"], "env": {{"T": "${{env:GH}}", "N": 1}},
                       "cwd": "/tmp", "disabled": true, "autoApprove": [3], "gallery": "x"}},
                "a": {{"type": "streamable-http", "url": "https://a.example/mcp",
                       "headers": {{"Authorization": "Bearer ${{GH}}"}}}},
            }}}}"#
        );
        let config = parsed(&text).unwrap();
        let names: Vec<_> = config.servers().iter().map(ServerConfig::name).collect();
        assert_eq!(names, ["a", "b"]);
        let [http, stdio] = config.servers() else { panic!("{config:?}") };
        assert!(stdio.is_disabled() && !http.is_disabled());
        assert_eq!(stdio.shown(), "npx -y x");
        let (Reached::Stdio { program, arguments, env, directory }, redactor) = reached(stdio)
        else {
            panic!("{stdio:?}")
        };
        assert_eq!(
            (program.as_str(), arguments.as_slice()),
            ("npx", &["-y".into(), "x".into()][..])
        );
        assert_eq!(directory.as_deref(), Some(Path::new("/tmp")));
        let env: Vec<_> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(env, [("HOME", "/h"), ("N", "1"), ("PATH", "/bin"), ("T", "gh-t0ken-value")]);
        assert_eq!(redactor.text("say gh-t0ken-value"), "say [secret]");
        let (Reached::Http { url, headers }, _) = reached(http) else { panic!("{http:?}") };
        assert_eq!(url, "https://a.example/mcp");
        assert_eq!(headers["Authorization"], "Bearer gh-t0ken-value");
        assert!(!format!("{config:?}").contains("t0ken"), "{config:?}");
    }
}

#[test]
fn the_rules_of_a_server_are_read() {
    let text = r#"{"mcpServers": {"s": {"command": "x", "isolet": {"allow": ["get_*"],
        "ask": ["create_*"], "deny": ["delete_*"], "maxCalls": 5, "timeout": "1.5s",
        "trustHints": true}}}}"#;
    let config = parsed(text).unwrap();
    let server = &config.servers()[0];
    assert_eq!(
        server.globs(),
        [["get_*"], ["create_*"], ["delete_*"]].map(|g| g.map(String::from))
    );
    assert_eq!(server.call_limit(), Some(5));
    assert_eq!(server.call_time(), Some(Duration::from_millis(1500)));
    assert!(server.trusts_hints());
}

#[test]
fn what_is_wrong_is_named_by_file_server_and_key() {
    let server = |entry: &str| parsed(&format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#));
    for (entry, said) in [
        ("3", "it is a number, it has to be an object"),
        ("{}", "it has neither `command` nor `url`"),
        (r#"{"command": ["x"]}"#, "`command` is a list, it has to be a text"),
        (r#"{"command": "x", "args": "y"}"#, "`args` is a text, it has to be a list of texts"),
        (r#"{"command": "x", "env": {"A": []}}"#, "`env.A` is a list, it has to be a text"),
        (r#"{"command": "x", "url": "y"}"#, "it has both `command` and `url`"),
        (r#"{"type": "sse", "url": "y"}"#, "its type is `sse`, which MCP has given up"),
        (r#"{"type": "ws", "url": "y"}"#, "its type is `ws`, the types are stdio and http"),
        (r#"{"type": "http"}"#, "its type is `http`, it needs `url`"),
        (r#"{"command": "${NOPE}"}"#, "in `command`, the variable `NOPE` is not set"),
        (r#"{"url": "u", "headers": {"A": "${input:t}"}}"#, "in `headers.A`, `${input:t}`"),
        (r#"{"command": "x", "isolet": {"timeout": "soon"}}"#, "in `isolet`, `timeout` is `soon`"),
        (r#"{"command": "x", "isolet": {"alow": []}}"#, "in `isolet`, `alow` is unknown"),
        (r#"{"command": "x", "disabled": "yes"}"#, "`disabled` is a text"),
    ] {
        let error = server(entry).unwrap_err();
        let start = format!("`f.json`: the server `s`: {said}");
        assert!(error.starts_with(&start), "{error}\n{start}");
    }
    assert_eq!(parsed("[]").unwrap_err(), "`f.json`: it is a list, it has to be an object");
    assert_eq!(
        parsed("{\n \"a\" 1}").unwrap_err(),
        "`f.json`: it is no JSON, look at line 2, column 6"
    );
    let error = parsed(r#"{"mcp": {}}"#).unwrap_err();
    assert!(error.ends_with("it has neither `mcpServers` nor `servers`"), "{error}");
}

#[test]
fn isolet_itself_is_no_server() {
    let text = r#"{"mcpServers": {
        "me": {"command": "/opt/isolet", "args": ["mcp", "--with", "numpy"]},
        "other": {"command": "isolet", "args": ["run", "x.py"]}}}"#;
    let config = parsed(text).unwrap();
    let names: Vec<_> = config.servers().iter().map(ServerConfig::name).collect();
    assert_eq!(names, ["other"]);
}

#[test]
fn a_file_of_variables_is_read() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "# c\nexport A=one\nB=\"two words\"\n\nC='x'\nEMPTY=\n").unwrap();
    let path = file.path().display();
    let entry = format!(r#"{{"command": "x", "envFile": "{path}", "env": {{"C": "own"}}}}"#);
    let text = format!(r#"{{"mcpServers": {{"s": {entry}}}}}"#);
    let config = parsed(&text).unwrap();
    let (Reached::Stdio { env, .. }, _) = reached(&config.servers()[0]) else { panic!() };
    let get = |name: &str| env.get(name).map(String::as_str);
    assert_eq!(get("A"), Some("one"));
    assert_eq!(get("B"), Some("two words"));
    assert_eq!(get("C"), Some("own"));
    assert_eq!(get("EMPTY"), Some(""));
}

#[test]
fn a_server_can_be_an_option() {
    let server = ServerConfig::from_text("web=https://x.example/mcp", &environment()).unwrap();
    assert_eq!((server.name(), server.shown().as_str()), ("web", "https://x.example/mcp"));
    let server = ServerConfig::from_text("f=npx -y 'a b' ${GH}", &environment()).unwrap();
    let (Reached::Stdio { arguments, .. }, redactor) = reached(&server) else { panic!() };
    assert_eq!(arguments, ["-y", "a b", "gh-t0ken-value"]);
    assert_eq!(redactor.text("gh-t0ken-value"), "[secret]");
    for wrong in ["x", "=y", "x=", "x='", "x=${NOPE}", "x=ftp://y"] {
        assert!(ServerConfig::from_text(wrong, &environment()).is_err(), "{wrong}");
    }
}

#[test]
fn the_key_follows_everything_and_the_identity_no_secret() {
    let server = |env: &str, arg: &str| ServerConfig::command("s", "x", [arg]).env("T", env);
    let first = server("1", "a");
    assert_eq!(first.key(), server("1", "a").key());
    assert_ne!(first.key(), server("2", "a").key());
    assert_ne!(first.key(), server("1", "b").key());
    assert_eq!(first.identity(), server("2", "a").identity());
    assert_ne!(first.identity(), server("1", "b").identity());
}

#[test]
fn the_files_of_other_clients_are_found_and_read() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join("settings");
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let environment = Environment::new([
        ("HOME", path(home.path())),
        ("XDG_CONFIG_HOME", path(&settings)),
        ("APPDATA", path(&settings)),
        ("TOKEN", "t".to_owned()),
    ]);
    let entry = r#"{"one": {"command": "x"}, "me": {"command": "isolet", "args": ["mcp"]},
                   "bad": {"command": "x", "args": ["${command:id}"]}}"#;
    for (client, text) in [
        (Client::ClaudeDesktop, format!(r#"{{"mcpServers": {entry}}}"#)),
        (
            Client::ClaudeCode,
            format!(
                r#"{{"tips": 3, "mcpServers": {entry}, "projects": {{"/p": {{"mcpServers":
                {{"two": {{"type": "http", "url": "u"}}}}}}, "/q": {{}}}}}}"#
            ),
        ),
        (Client::Cursor, format!(r#"{{"mcpServers": {entry}}}"#)),
        (Client::VsCode, format!(r#"{{"servers": {entry}, "inputs": []}}"#)),
        (Client::GeminiCli, format!(r#"{{"theme": "x", "mcpServers": {entry}}}"#)),
        (Client::Windsurf, format!(r#"{{"mcpServers": {entry}}}"#)),
        (
            Client::Zed,
            format!(
                r#"{{"vim_mode": true, // mine
            "context_servers": {entry}}}"#
            ),
        ),
        (Client::Cline, format!(r#"{{"mcpServers": {entry}}}"#)),
        (
            Client::Codex,
            "model = \"m\"\n[mcp_servers.one]\ncommand = \"x\"\nenv_vars = [\"TOKEN\"]\n\
             tool_timeout_sec = 5\n[mcp_servers.me]\ncommand = \"isolet\"\nargs = [\"mcp\"]\n\
             [mcp_servers.bad]\nurl = \"u\"\nbearer_token_env_var = \"NOPE\"\n"
                .to_owned(),
        ),
    ] {
        assert_eq!(Client::from_name(client.name()), Some(client));
        let none = Config::import(client, &environment, None).unwrap();
        assert!(none.0.servers().is_empty() && none.1.is_empty());
        let file = client.file(&environment).unwrap();
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let (config, skipped) =
            Config::import(client, &environment, Some(Path::new("/p/"))).unwrap();
        let names: Vec<_> = config.servers().iter().map(ServerConfig::name).collect();
        let expected: &[&str] =
            if client == Client::ClaudeCode { &["one", "two"] } else { &["one"] };
        assert_eq!(names, expected, "{client:?}");
        let mut skipped: Vec<_> = skipped.iter().map(|skipped| skipped.server.as_str()).collect();
        skipped.sort_unstable();
        assert_eq!(skipped, ["bad", "me"], "{client:?}");
    }
    // The names that some clients have for an address, and Zed's older entries.
    for (client, text, shown) in [
        (
            Client::Windsurf,
            r#"{"mcpServers": {"a": {"serverUrl": "https://a.example/x"}}}"#,
            "https://a.example/x",
        ),
        (
            Client::GeminiCli,
            r#"{"mcpServers": {"a": {"httpUrl": "https://b.example/x"}}}"#,
            "https://b.example/x",
        ),
        (
            Client::Zed,
            r#"{"context_servers": {"a": {"command": {"path": "run", "args": ["b"]}},
                "of-extension": {"settings": {}}}}"#,
            "run b",
        ),
    ] {
        fs::write(client.file(&environment).unwrap(), text).unwrap();
        let (config, _) = Config::import(client, &environment, None).unwrap();
        let found: Vec<_> = config.servers().iter().map(ServerConfig::shown).collect();
        assert_eq!(found, [shown], "{client:?}");
    }
    let (codex, _) = Config::import(Client::Codex, &environment, None).unwrap();
    assert_eq!(codex.servers()[0].call_time(), Some(Duration::from_secs(5)));
    let (Reached::Stdio { env, .. }, _) = reached(&codex.servers()[0]) else { panic!() };
    assert_eq!(env["TOKEN"], "t");
}

#[test]
fn later_servers_replace_earlier_ones_of_the_same_name() {
    let mut config = parsed(r#"{"mcpServers": {"a": {"command": "1"}, "b": {"command": "2"}}}"#);
    let config = config.as_mut().unwrap();
    config.merge(parsed(r#"{"servers": {"b": {"command": "3"}, "c": {"command": "4"}}}"#).unwrap());
    let shown: Vec<_> = config.servers().iter().map(ServerConfig::shown).collect();
    assert_eq!(shown, ["1", "3", "4"]);
}

#[test]
fn extensions_of_goose_are_servers_unless_they_are_parts_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().to_str().unwrap();
    fs::create_dir(directory.path().join("config")).unwrap();
    let environment =
        Environment::new([("HOME", "/h"), ("GOOSE_PATH_ROOT", root), ("GH", "t0ken")]);
    let text = "\
GOOSE_MODEL: m
extensions:
  developer: {type: builtin, enabled: true}
  todo:
    type: platform
  git:
    type: stdio
    cmd: npx
    args: [-y, x]
    enabled: false
    envs:
      N: 1
    env_keys: [GH]
    timeout: 120
  web:
    type: streamable_http
    uri: https://web.example/mcp
    headers:
      Authorization: Bearer ${GH}
    envs: {}
    timeout: null
  old: {type: sse, uri: https://x}
  kept:
    type: stdio
    cmd: y
    args: []
    env_keys: [IN_KEYRING]
";
    fs::write(directory.path().join("config/config.yaml"), text).unwrap();
    let (config, skipped) = Config::import(Client::Goose, &environment, None).unwrap();
    let names: Vec<_> = config.servers().iter().map(ServerConfig::name).collect();
    assert_eq!(names, ["git", "web"]);
    let git = &config.servers()[0];
    assert_eq!((git.is_disabled(), git.timeout), (true, Some(Duration::from_mins(2))));
    let (Reached::Stdio { program, arguments, env, .. }, _) = reached(git) else {
        panic!("{git:?}");
    };
    assert_eq!((program.as_str(), arguments), ("npx", vec!["-y".to_owned(), "x".to_owned()]));
    assert_eq!((env["N"].as_str(), env["GH"].as_str()), ("1", "t0ken"));
    let (Reached::Http { url, headers }, _) = reached(&config.servers()[1]) else {
        panic!("{config:?}");
    };
    assert_eq!(
        (url.as_str(), headers["Authorization"].as_str()),
        ("https://web.example/mcp", "Bearer t0ken")
    );
    let skipped: Vec<_> =
        skipped.iter().map(|it| (it.server.as_str(), it.reason.as_str())).collect();
    let [("old", old), ("kept", kept)] = skipped[..] else { panic!("{skipped:?}") };
    assert!(old.contains("sse") && kept.contains("`IN_KEYRING` is not set"), "{skipped:?}");
    fs::write(directory.path().join("config/config.yaml"), "a: [s3cret\n").unwrap();
    let error = Config::import(Client::Goose, &environment, None).unwrap_err().to_string();
    assert!(error.contains("it is no YAML, look at line") && !error.contains("s3cret"), "{error}");
}
