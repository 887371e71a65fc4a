//! Tests of `isolet mcp add`, with the files of all clients in a home of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use isolet_mcp::{Client as Program, Config, Environment, Origin};
use serde_json::{Value, json};

use super::client::Client;
use isolet_test_support::{Ran, Scratch, assets_dir, command, program};

/// A home in which the clients have their files.
struct Home(Scratch);

impl Home {
    fn new(test: &str) -> Self {
        Self(Scratch::new(test))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn variables(&self) -> [(&'static str, String); 5] {
        let path = |name| self.path(name).to_str().unwrap().to_owned();
        let settings = path("settings");
        [
            ("HOME", path("")),
            ("XDG_CONFIG_HOME", settings.clone()),
            ("APPDATA", settings),
            ("CODEX_HOME", path("codex")),
            ("GOOSE_PATH_ROOT", path("goose")),
        ]
    }

    fn file(&self, client: Program) -> PathBuf {
        client.file(&Environment::new(self.variables())).unwrap()
    }

    fn write(&self, client: Program, text: &str) -> PathBuf {
        let file = self.file(client);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    fn mcp(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    fn mcp_in(&self, directory: &Path, args: &[&str]) -> Ran {
        self.command(args).current_dir(directory).output().unwrap().into()
    }

    fn command(&self, args: &[&str]) -> Command {
        let data = [("XDG_DATA_HOME", self.path("data")), ("XDG_CACHE_HOME", self.path("cache"))];
        let mut command = command(["mcp"]);
        command.args(args).envs(self.variables()).envs(data);
        command
    }

    fn add(&self, client: Program, args: &[&str]) -> Ran {
        self.mcp(&[&["add", client.name()], args].concat())
    }

    /// Adds, which has to succeed. Returns what was printed.
    fn added(&self, client: Program, args: &[&str]) -> String {
        let ran = self.add(client, args);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        ran.stdout
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Returns the names in the directory of a file.
fn names(file: &Path) -> Vec<String> {
    let entries = fs::read_dir(file.parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort_unstable();
    names
}

/// Returns the entry in a client's file.
fn entry(client: Program, text: &str, name: &str) -> Value {
    let own: Value = serde_json::from_str(&client.to_own(text).unwrap()).unwrap();
    own["mcpServers"][name].clone()
}

#[test]
fn every_client_gets_a_file_that_starts_isolet_and_that_isolet_understands() {
    let home = Home::new("mcp-add-all");
    for client in Program::ALL {
        let said = home.added(client, &["--", "--timeout", "50s"]);
        let file = home.file(client);
        let text = read(&file);
        let shown = file.display();
        assert!(said.starts_with(&format!("--- /dev/null\n+++ {shown}\n@@ -0,0 +1,")), "{said}");
        let end = format!("wrote `isolet` into `{shown}`\nrestart {}: it", client.name());
        assert!(said.contains(&end), "{said}");
        let entry = entry(client, &text, "isolet");
        assert_eq!(entry["command"], program());
        assert_eq!(entry["args"], json!(["mcp", "--timeout", "50s"]));
        let has_type = matches!(client, Program::VsCode | Program::ClaudeCode | Program::Goose);
        assert_eq!(entry["type"] == "stdio", has_type, "{text}");

        let said = home.added(client, &["--", "--timeout", "50s"]);
        assert!(said.contains("already, nothing changes there"), "{said}");
        assert_eq!(read(&file), text);
        assert!(!names(&file).iter().any(|name| name.contains("backup")), "{:?}", names(&file));

        let ran = home.mcp(&["check", "--import", client.name()]);
        let skipped = "warning: skipped the server isolet: it is isolet itself\n";
        assert!(ran.stderr.starts_with(skipped), "{ran:?}");

        let mut server = Command::new(entry["command"].as_str().unwrap());
        let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
        server.args(words).env(isolet_test_support::ASSETS_VARIABLE, assets_dir());
        let mut server = Client::of(server, true, &json!({}));
        let tools = server.request("tools/list", &json!({}))["result"]["tools"].clone();
        assert!(tools.to_string().contains("run_python"), "{tools}");
    }
}

#[test]
fn what_else_is_in_a_file_stays_byte_for_byte() {
    let home = Home::new("mcp-add-kept");
    let cursor = "{\n\t// the team's servers\n\t\"mcpServers\": {\n\t\t\"x\": {\"command\":   \
                  \"y\"}, // keep\n\t\t/* end */\n\t},\n\t\"z\": [1, 2,],\n}\n";
    let codex = "model = \"m\" # mine\n\n# servers\n[mcp_servers.x]\ncommand = 'y'\n\n[tui]\n";
    let goose = "GOOSE_MODEL: m # mine\n\n# servers\nextensions:\n  x:\n    cmd:   'y' # keep\n\n\
                 # end\nGOOSE_MODE: auto\n";
    for (client, text, first, last) in [
        (Program::Goose, goose, "  isolet:\n", "    timeout: 300\n"),
        (Program::Cursor, cursor, "\t\t\"isolet\": {\n", "\t\t},\n"),
        (Program::Cursor, &cursor.replace('\n', "\r\n"), "\t\t\"isolet\": {\r\n", "\t\t},\r\n"),
        (Program::Codex, codex, "[mcp_servers.isolet]\n", "]\n\n"),
    ] {
        let file = home.write(client, text);
        home.added(client, &["--", "--with", "numpy"]);
        let new = read(&file);
        let start = new.find(first).unwrap();
        let inner = start + first.len();
        let end = inner + new[inner..].find(last).unwrap() + last.len();
        assert_eq!([&new[..start], &new[end..]].concat(), text, "{new}");
        let again = home.added(client, &["--", "--with", "numpy"]);
        assert!(again.contains("already"), "{again}");
        assert_eq!(read(&file), new);
        let backup = PathBuf::from(format!("{}.isolet-backup", file.display()));
        assert_eq!(read(&backup), text);
        fs::remove_file(backup).unwrap();
    }
}

#[test]
fn a_file_that_is_broken_is_named_and_not_touched() {
    let home = Home::new("mcp-add-broken");
    let twice = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}, \"mcpServers\": \
                 {\"a\": {\"command\": \"y\"}}}";
    for (client, text, said) in [
        (Program::Cursor, "{\n  \"mcpServers\": {,}\n}", "it is no JSON, look at line 2"),
        (Program::VsCode, "{\"servers\": []}", "`servers` is no object, it has to be one"),
        (Program::ClaudeCode, "[]", "it is no object, it has to be one"),
        (Program::ClaudeDesktop, twice, "isolet cannot edit"),
        (Program::Codex, "a = 1\nb = secret\n", "it is no TOML, look at line 2"),
        (Program::Goose, "a: 1\nb: [secret\n", "it is no YAML, look at line 2"),
    ] {
        let file = home.write(client, text);
        let before = names(&file);
        for more in [&[][..], &["--print"], &["--move-servers", "x.json"]] {
            let ran = home.add(client, more);
            let start = format!("error: `{}`: {said}", file.display());
            assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
            assert!(ran.stderr.starts_with(&start), "{ran:?}");
            assert!(!ran.stderr.contains("secret"), "{ran:?}");
        }
        assert_eq!((read(&file).as_str(), names(&file)), (text, before));
    }
    let file = home.file(Program::Cursor);
    fs::write(&file, b"{\"a\": \"\xff\"}").unwrap();
    assert!(home.add(Program::Cursor, &[]).stderr.contains("is not UTF-8, save it as that"));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(home.add(Program::Cursor, &[]).stderr.contains("is no file, it has to be one"));
}

#[test]
fn another_entry_is_replaced_only_if_that_is_said_and_each_state_is_kept() {
    let home = Home::new("mcp-add-other");
    let first = "{\"mcpServers\": {\"isolet\": {\"command\": \"docker\", \"args\": [\"run\"]}}}\n";
    let file = home.write(Program::Cursor, first);
    let ran = home.add(Program::Cursor, &[]);
    assert_eq!(ran.code, Some(2));
    let said = format!(
        "error: `{}` has another `isolet`, which starts `docker run` and not `{} mcp`; \
         `--replace` replaces it",
        file.display(),
        program()
    );
    assert!(ran.stderr.starts_with(&said), "{ran:?}");
    assert_eq!(read(&file), first);

    home.added(Program::Cursor, &["--replace"]);
    let second = read(&file);
    assert_eq!(entry(Program::Cursor, &second, "isolet")["args"], json!(["mcp"]));
    home.added(Program::Cursor, &["--name", "other", "--", "--offline"]);
    let backup = |more: &str| read(Path::new(&format!("{}.isolet-backup{more}", file.display())));
    assert_eq!((backup("").as_str(), backup("-2").as_str()), (first, second.as_str()));
    assert_eq!(names(&file).len(), 3);

    // What the user has added to the entry is the user's.
    let more =
        read(&file).replace("\"isolet\": {", "\"isolet\": {\"autoApprove\": [\"run_python\"],");
    fs::write(&file, &more).unwrap();
    assert!(home.added(Program::Cursor, &[]).contains("already"));
    assert_eq!(read(&file), more);
}

#[test]
fn a_change_can_be_looked_at_before_and_shows_no_secret() {
    let home = Home::new("mcp-add-print");
    let entry = json!({"command": "x", "env": {"TOKEN": "hunter2-\"quoted\""}});
    let text = serde_json::to_string_pretty(&json!({"mcpServers": {"x": entry}})).unwrap();
    let file = home.write(Program::Cursor, &text);
    let servers = home.path("servers.json").to_str().unwrap().to_owned();
    for more in [&["--print"][..], &["--print", "--move-servers", &servers]] {
        let said = home.added(Program::Cursor, more);
        assert!(said.starts_with(&format!("--- {0}\n+++ {0}\n@@ -", file.display())), "{said}");
        assert!(said.contains("\n+    \"isolet\": {\n"), "{said}");
        assert!(said.contains("[secret]") && !said.contains("hunter2"), "{said}");
    }
    assert_eq!((read(&file), names(&file).len()), (text, 1));
    assert!(!Path::new(&servers).exists());
    for client in [Program::ClaudeDesktop, Program::Codex] {
        home.added(client, &["--print"]);
        assert!(!home.file(client).parent().unwrap().exists());
    }
    let said = home.added(Program::Cursor, &["--move-servers", &servers]);
    assert!(!said.contains("hunter2"), "{said}");
}

#[test]
fn servers_are_moved_once_and_those_that_isolet_cannot_use_stay() {
    let home = Home::new("mcp-add-move");
    let servers = home.path("own/servers.json");
    let to = servers.to_str().unwrap();
    let json = "{\"mcpServers\": {\n  \"a\": {\"command\": \"x\", \"env\": {\"T\": \"${T:-1}\"}}, \
                // a\n  \"bad\": {\"type\": \"sse\", \"url\": \"u\"}, // stays\n  \
                \"b\": {\"url\": \"http://127.0.0.1:1/mcp\"}\n}}\n";
    let toml = "[mcp_servers.c]\ncommand = \"x\"\nenv_vars = [\"T\"]\n\n[mcp_servers.c.env]\n\
                A = \"1\"\n\n[mcp_servers.bad]\nurl = \"${input:x}\"\n\n# end\n[tui]\n";
    let yaml = "extensions:\n  d:\n    type: stdio\n    cmd: x\n    envs: {A: s3cret}\n  # stays\n  \
                bad: {type: sse, uri: u}\n  developer:\n    type: builtin\n# end\nz: 1\n";
    let mut all = vec!["a", "b"];
    for (client, text) in [(Program::Cursor, json), (Program::Codex, toml), (Program::Goose, yaml)]
    {
        let file = home.write(client, text);
        let said = home.added(client, &["--move-servers", to, "--", "--timeout", "9s"]);
        assert!(said.contains(&format!("moved into `{to}`: ")), "{said}");
        assert!(said.contains(&format!("`bad` stays in `{}`: ", file.display())), "{said}");
        let new = read(&file);
        let own: Value = serde_json::from_str(&client.to_own(&new).unwrap()).unwrap();
        let left: Vec<&String> = own["mcpServers"].as_object().unwrap().keys().collect();
        assert!(left == ["bad", "isolet"] || left == ["isolet", "bad"], "{new}");
        let args = json!(["mcp", "--config", to, "--timeout", "9s"]);
        assert_eq!(entry(client, &new, "isolet")["args"], args);
        let kept = match client {
            Program::Codex => "# end\n[tui]",
            Program::Goose => "  # stays\n  bad: {type: sse, uri: u}\n  developer:\n",
            _ => "// stays",
        };
        assert!(new.contains(kept), "{new}");
        match client {
            Program::Codex => all.push("c"),
            Program::Goose => all.push("d"),
            _ => {}
        }
        let config = Config::read(&servers, &Environment::default(), Origin::Own).unwrap();
        let names: Vec<&str> =
            config.servers().iter().map(isolet_mcp::ServerConfig::name).collect();
        assert_eq!(names, all);
        let moved = read(&servers);
        let again = home.added(client, &["--move-servers", to, "--", "--timeout", "9s"]);
        assert!(again.contains("already") && !again.contains("moved into"), "{again}");
        assert_eq!((read(&file), read(&servers)), (new, moved));
    }
    // One backup of each of the states that were replaced, and none of what was made.
    let backups = ["servers.json.isolet-backup", "servers.json.isolet-backup-2"];
    assert_eq!(names(&servers), [&["servers.json"], &backups[..]].concat());
}

#[test]
fn a_move_that_would_lose_something_is_refused() {
    let home = Home::new("mcp-add-refused");
    let text = "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}";
    let file = home.write(Program::Cursor, text);
    let other = home.0.file("other.json", "{\"servers\": {\"a\": {\"command\": \"y\"}}}");
    let broken = home.0.file("broken.json", "{");
    let own = file.to_str().unwrap();
    for (to, said) in [
        (other.as_str(), "has another server `a` than"),
        (&broken, "it is no JSON"),
        (own, "is the file of `cursor` itself"),
    ] {
        let before = fs::read_to_string(to).unwrap();
        let ran = home.add(Program::Cursor, &["--move-servers", to]);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{ran:?}");
        assert_eq!((read(&file).as_str(), fs::read_to_string(to).unwrap()), (text, before));
    }
    let new = home.path("new.json");
    let none = home.add(Program::VsCode, &["--move-servers", new.to_str().unwrap()]);
    assert!(none.stderr.contains("has no server that isolet can use"), "{none:?}");
    assert!(!home.file(Program::VsCode).exists() && !new.exists());
    // The same entry is there already: an earlier move was not completed.
    let same = home.0.file("same.json", text);
    home.added(Program::Cursor, &["--move-servers", &same]);
    assert_eq!(read(Path::new(&same)), text);
    assert_eq!(entry(Program::Cursor, &read(&file), "a"), Value::Null);
}

#[cfg(unix)]
#[test]
fn the_mode_of_a_file_and_a_link_to_it_are_kept() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let home = Home::new("mcp-add-mode");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let file = home.write(Program::ClaudeCode, "\u{feff}{\"tips\": 3}\n");
    let real = home.path("dotfiles.json");
    fs::rename(&file, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink("dotfiles.json", &file).unwrap();
    home.added(Program::ClaudeCode, &[]);
    assert_eq!(fs::read_link(&file).unwrap(), Path::new("dotfiles.json"));
    let backup = home.path(".claude.json.isolet-backup");
    assert_eq!((mode(&real), mode(&backup)), (0o640, 0o640));
    let text = read(&real);
    assert!(text.starts_with("\u{feff}{") && text.contains("\"tips\": 3,"), "{text}");
    // A new file is its owner's.
    home.added(Program::Cursor, &[]);
    assert_eq!(mode(&home.file(Program::Cursor)), 0o600);
    // A link to nothing is not replaced.
    fs::remove_file(&real).unwrap();
    let ran = home.add(Program::ClaudeCode, &[]);
    assert!(ran.stderr.contains("is a link to `dotfiles.json`, which does not exist"), "{ran:?}");
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
}

#[test]
fn options_that_isolet_does_not_start_with_are_refused_at_once() {
    let home = Home::new("mcp-add-options");
    for (args, said) in [
        (&["--", "--wiht", "numpy"][..], "unexpected argument '--wiht' found"),
        (&["--", "--http", "127.0.0.1:1"], "`--http` is of no use"),
        (&["--", "--http=127.0.0.1:1"], "`--http` is of no use"),
        (&["--", "check"], "is a command, it has to be options of `isolet mcp`"),
        (&["--", "--help"], "they print something and end"),
        (&["--", "--timeout", "soon"], "invalid value 'soon'"),
        (&["--name", "a b"], "a name has letters, digits, `-` and `_` only"),
    ] {
        let ran = home.add(Program::Cursor, args);
        assert!(ran.code == Some(2) && ran.stderr.contains(said), "{args:?}: {ran:?}");
        assert!(!home.file(Program::Cursor).exists());
    }
    let ran = home.mcp(&["add", "emacs"]);
    assert!(ran.stderr.contains("there is no client `emacs`"), "{ran:?}");
}

#[test]
fn imported_servers_start_only_after_the_user_has_accepted_their_commands() {
    let home = Home::new("mcp-import-accept");
    let log = home.path("starts");
    let fake = isolet_test_support::root().join("tests/mcp/fake.py");
    let mut entry = json!({
        "command": "python3",
        "args": [fake, format!("starts={}", log.display())],
        "env": {"FAKE_TOKEN": "hunter2"},
    });
    let write = |entry: &Value| {
        home.write(Program::Cursor, &json!({"mcpServers": {"fake": entry}}).to_string())
    };
    let refused = |args: &[&str]| {
        let ran = home.mcp(args);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        let start = format!("new: fake: python3 {} starts=", fake.display());
        assert!(ran.stderr.starts_with(&start), "{ran:?}");
        assert!(ran.stderr.contains(" (FAKE_TOKEN"), "{ran:?}");
        let said = "error: `--import cursor` has servers that are new or have changed: fake; look at \
                    them, and then accept them by `isolet mcp check --import cursor --accept`\n";
        assert!(ran.stderr.ends_with(said) && !ran.stderr.contains("hunter2"), "{ran:?}");
    };
    write(&entry);
    for args in [&["--import", "cursor"][..], &["check", "--import", "cursor"]] {
        refused(args);
    }
    assert!(!log.exists());
    let ran = home.mcp(&["check", "--import", "cursor", "--accept"]);
    assert!(ran.code == Some(0) && ran.stdout.starts_with("fake: "), "{ran:?}");
    assert!(ran.stderr.starts_with("accepted fake: python3 "), "{ran:?}");
    assert_eq!(home.mcp(&["check", "--import", "cursor"]).code, Some(0));
    entry["env"]["PYTHONSTARTUP"] = "/tmp/x".into();
    write(&entry);
    refused(&["stubs", "--import", "cursor"]);
    let wrong = home.mcp(&["check", "--accept"]);
    assert!(wrong.stderr.contains("--import"), "{wrong:?}");
}

/// The clients with a file in projects, and where that is.
const IN_PROJECTS: [(Program, &str); 6] = [
    (Program::ClaudeCode, ".mcp.json"),
    (Program::Cursor, ".cursor/mcp.json"),
    (Program::VsCode, ".vscode/mcp.json"),
    (Program::Codex, ".codex/config.toml"),
    (Program::GeminiCli, ".gemini/settings.json"),
    (Program::Zed, ".zed/settings.json"),
];

#[test]
fn an_entry_of_a_project_is_in_its_file_and_the_same_on_every_machine() {
    let home = Home::new("mcp-add-project");
    let project = home.path("project");
    for (client, name) in IN_PROJECTS {
        fs::create_dir_all(&project).unwrap();
        let file = fs::canonicalize(&project).unwrap().join(name);
        let add = |more: &[&str]| {
            let args = [&["add", client.name(), "--project"], more].concat();
            home.mcp_in(&project, &args)
        };
        let ran = add(&["--", "--offline"]);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{ran:?}");
        assert!(ran.stdout.contains(&format!("wrote `isolet` into `{}`", file.display())));
        let text = read(&file);
        let entry = entry(client, &text, "isolet");
        assert_eq!(
            (&entry["command"], &entry["args"]),
            (&json!("isolet"), &json!(["mcp", "--offline"]))
        );
        assert!(add(&["--", "--offline"]).stdout.contains("already"));
        assert!(!home.file(client).exists());
        fs::remove_dir_all(&project).unwrap();
    }
    fs::create_dir_all(&project).unwrap();
    let ran = home.mcp_in(&project, &["add", "windsurf", "--project"]);
    let said = "error: `windsurf` has no file in projects; those that have one are claude-code, \
                cursor, vscode, codex, gemini-cli, zed\n";
    assert_eq!((ran.code, &*ran.stderr), (Some(2), said));
    assert_eq!(fs::read_dir(&project).unwrap().count(), 0);
}

#[cfg(unix)]
#[test]
fn a_link_in_a_project_leads_to_no_file_of_the_user() {
    use std::os::unix::fs::symlink;
    let home = Home::new("mcp-add-project-link");
    let (project, text) = (home.path("project"), "{\"mcpServers\": {}}");
    let file = home.write(Program::Cursor, text);
    fs::create_dir_all(project.join(".cursor")).unwrap();
    let link = project.join(".cursor/mcp.json");
    symlink(&file, &link).unwrap();
    let refused = || {
        let ran = home.mcp_in(&project, &["add", "cursor", "--project"]);
        assert!(
            ran.code == Some(2) && ran.stderr.contains("which is not in the project"),
            "{ran:?}"
        );
        assert_eq!((read(&file).as_str(), names(&file)), (text, vec!["mcp.json".to_owned()]));
    };
    refused();
    fs::remove_dir_all(project.join(".cursor")).unwrap();
    symlink(file.parent().unwrap(), project.join(".cursor")).unwrap();
    refused();
    fs::remove_file(&file).unwrap();
    let ran = home.mcp_in(&project, &["add", "cursor", "--project"]);
    assert!(ran.stderr.contains("which is not in the project"), "{ran:?}");
    assert!(!file.exists());
}

#[test]
fn servers_of_a_project_are_accepted_for_this_project_only() {
    let home = Home::new("mcp-import-project");
    let log = home.path("starts");
    let fake = isolet_test_support::root().join("tests/mcp/fake.py");
    let entry = json!({
        "command": "python3",
        "args": [fake, format!("starts={}", log.display())],
        "env": {"AT": "${workspaceFolder}"},
    });
    let text = json!({"mcpServers": {"fake": entry}}).to_string();
    let [one, other] = ["one", "other"].map(|name| {
        fs::create_dir_all(home.path(name).join(".cursor")).unwrap();
        home.0.file(&format!("{name}/.cursor/mcp.json"), &text);
        home.path(name)
    });
    let refused = |project: &Path, args: &[&str]| {
        let ran = home.mcp_in(project, args);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), ""), "{ran:?}");
        let said = "by `isolet mcp check --import-project cursor --accept`\n";
        assert!(ran.stderr.starts_with("new: fake: python3 "), "{ran:?}");
        assert!(ran.stderr.ends_with(said), "{ran:?}");
    };
    let check = ["check", "--import-project", "cursor"];
    refused(&one, &["--import-project", "cursor"]);
    refused(&one, &check);
    // A project's file counts only where it is asked for.
    let ran = home.mcp_in(&one, &["check", "--import", "cursor"]);
    assert!(!ran.stderr.contains("fake"), "{ran:?}");
    assert!(!log.exists());
    let ran = home.mcp_in(&one, &[&check[..], &["--accept"]].concat());
    assert!(ran.code == Some(0) && ran.stdout.starts_with("fake: "), "{ran:?}");
    assert_eq!(home.mcp_in(&one, &check).code, Some(0));
    // The same file elsewhere may start another program.
    let starts = read(&log);
    refused(&other, &check);
    assert_eq!(read(&log), starts);
}
