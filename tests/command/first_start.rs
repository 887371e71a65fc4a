//! Tests of the command outside a checkout and with an empty cache directory: it fetches its assets
//! by itself, and `isolet cache` lists and removes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use isolet_pyodide_assets::lock;
use serde_json::Value;
use tempfile::TempDir;

use isolet_test_support::server::{Response, Server};
use isolet_test_support::{Ran, assets_dir, program, wheel};

/// The installed command, for a user who has never started it.
struct Newcomer {
    home: TempDir,
    source: String,
}

impl Newcomer {
    /// Fetches from `source`, a URL that contains `{file}`.
    fn new(source: String) -> Self {
        // Not inside the checkout, where the command would find the checkout's assets.
        let home = tempfile::tempdir().unwrap();
        let newcomer = Self { home, source };
        newcomer.install(program().as_ref(), "isolet");
        newcomer
    }

    /// Copies a program beside the command.
    fn install(&self, program: &Path, name: &str) {
        // Copied by another process. If a thread of this one held the program open for writing
        // while another thread forks, the program could not be run.
        let mut copy = Command::new("cp");
        let copied = copy.arg(program).arg(self.home.path().join(name)).status();
        assert!(copied.unwrap().success());
    }

    fn command(&self, args: &[&str]) -> Command {
        self.start("isolet", args)
    }

    fn start(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(self.home.path().join(program));
        command
            .args(args)
            .env("HOME", self.home.path())
            .env_remove(isolet_test_support::ASSETS_VARIABLE)
            .env("XDG_CACHE_HOME", self.home.path().join("cache"))
            .env("ISOLET_ASSETS_URL", &self.source)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().unwrap().into()
    }

    fn cache(&self) -> PathBuf {
        self.home.path().join("cache/isolet")
    }

    fn listed(&self) -> Value {
        let ran = self.run(&["cache", "list", "--json"]);
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
        assert_eq!(ran.stdout.lines().count(), 1, "{}", ran.stdout);
        serde_json::from_str(&ran.stdout).unwrap()
    }
}

/// Serves the locked files, like a mirror.
fn mirror() -> (Server, String) {
    let dir = assets_dir();
    let server = Server::start(move |request| {
        let name = request.path.trim_start_matches('/');
        let body = fs::read(dir.join(name)).unwrap_or_default();
        Response(200, Vec::new(), body)
    });
    let source = server.url("/{file}");
    (server, source)
}

/// Returns the kinds of the listed entries, with the number of each.
fn kinds(listed: &Value) -> Vec<(&str, usize)> {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for entry in listed["entries"].as_array().unwrap() {
        let kind = entry["kind"].as_str().unwrap();
        match kinds.last_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ => kinds.push((kind, 1)),
        }
    }
    kinds
}

/// Returns the size of all files in a directory, at any depth, in bytes.
fn bytes_in(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    let sizes = entries.map(|entry| match entry.metadata().unwrap() {
        metadata if metadata.is_dir() => bytes_in(&entry.path()),
        metadata => metadata.len(),
    });
    sizes.sum()
}

#[test]
fn a_first_start_fetches_the_assets_and_the_cache_is_listed_and_cleaned() {
    let (server, source) = mirror();
    let newcomer = Newcomer::new(source);
    let none = newcomer.run(&["cache", "list"]);
    assert_eq!((none.stderr.as_str(), none.code), ("", Some(0)));
    assert_eq!(kinds(&newcomer.listed()), []);

    let ran = newcomer.run(&["run", "-c", "print(6 * 7)"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("42\n", Some(0)), "{}", ran.stderr);
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("fetching Pyodide ") && first.contains(" MiB) to `"), "{first}");
    assert_eq!(server.requests().len(), lock().unwrap().files().len());
    assert_eq!(kinds(&newcomer.listed()), [("assets", 1), ("image", 1)]);

    let wheels = newcomer.home.path().join("wheels");
    fs::create_dir(&wheels).unwrap();
    wheel(&wheels, "greeting", "1.0", "WORD = 'hello'\n");
    let wheels = wheels.to_str().unwrap();
    let preload = ["run", "--wheels", wheels, "--offline", "--preload", "greeting", "-c"];
    let again = newcomer.run(&[&preload[..], &["import greeting; print(greeting.WORD)"]].concat());
    assert_eq!((again.stdout.as_str(), again.code), ("hello\n", Some(0)), "{}", again.stderr);
    assert_eq!(server.requests().len(), lock().unwrap().files().len(), "nothing is fetched twice");

    let listed = newcomer.listed();
    assert_eq!(kinds(&listed), [("assets", 1), ("image", 2), ("wheel", 1), ("resolutions", 1)]);
    // The list contains every file that the library keeps.
    assert_eq!(listed["bytes"].as_u64(), Some(bytes_in(&newcomer.cache())));
    // What `isolet mcp` keeps of servers.
    fs::create_dir(newcomer.cache().join("mcp")).unwrap();
    fs::write(newcomer.cache().join("mcp/0.json"), "{}").unwrap();
    assert_eq!(kinds(&newcomer.listed()).last(), Some(&("mcp", 1)));
    let table = newcomer.run(&["cache", "list"]);
    assert!(table.stdout.contains("greeting-1.0-py3-none-any.whl"), "{}", table.stdout);

    for (args, left) in [
        (&["--unused"][..], &["assets", "image", "wheel", "resolutions", "mcp"][..]),
        (&["--older-than", "1d"], &["assets", "image", "wheel", "resolutions", "mcp"]),
        (&["--dry-run"], &["assets", "image", "wheel", "resolutions", "mcp"]),
        (&["mcp"], &["assets", "image", "wheel", "resolutions"]),
        (&["packages"], &["assets", "image"]),
        (&["images"], &["assets"]),
        (&[], &[]),
    ] {
        let ran = newcomer.run(&[&["cache", "clean"][..], args].concat());
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        let listed = newcomer.listed();
        let kinds: Vec<&str> = kinds(&listed).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, left, "{args:?}");
    }
    assert_eq!(bytes_in(&newcomer.cache()), 0);
}

/// The program of the guide to Rust, which cargo builds with the tests.
fn example() -> PathBuf {
    Path::new(&program()).with_file_name("examples").join("first")
}

#[test]
fn a_program_with_the_library_fetches_the_assets_at_its_first_start_as_the_command_does() {
    let (server, source) = mirror();
    let newcomer = Newcomer::new(source);
    newcomer.install(&example(), "first");
    for _ in 0..2 {
        let ran = Ran::from(newcomer.start("first", &[]).output().unwrap());
        assert_eq!((ran.stderr.as_str(), ran.code), ("", Some(0)));
        assert_eq!(server.requests().len(), lock().unwrap().files().len(), "nothing twice");
    }
    // The command finds what the program has fetched and made.
    assert_eq!(kinds(&newcomer.listed()), [("assets", 1), ("image", 1)]);
}

#[test]
fn a_program_whose_assets_cannot_be_had_says_why_and_what_helps_in_sentences() {
    let newcomer = Newcomer::new("http://127.0.0.1:1/{file}".to_owned());
    newcomer.install(&example(), "first");
    let ran = Ran::from(newcomer.start("first", &[]).output().unwrap());
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(1)), "{ran:?}");
    let cache = newcomer.cache().join(concat!("assets-", env!("CARGO_PKG_VERSION")));
    let said = format!("Error: the assets are not in `{}` and cannot be", cache.display());
    assert!(ran.stderr.starts_with(&said), "{}", ran.stderr);
    assert!(ran.stderr.contains("http://127.0.0.1:1/"), "{}", ran.stderr);

    let named = newcomer.home.path().join("named");
    let mut program = newcomer.start("first", &[]);
    let ran = program.env(isolet_test_support::ASSETS_VARIABLE, &named).output().unwrap();
    let ran = Ran::from(ran);
    let remedy = format!("`isolet --assets {} assets fetch` fetches it\n", named.display());
    assert!(ran.stderr.ends_with(&remedy), "{}", ran.stderr);
    assert!(!named.exists());
}

#[test]
fn what_another_version_keeps_is_unused_and_what_is_not_isolets_stays() {
    let newcomer = Newcomer::new("http://127.0.0.1:9/{file}".to_owned());
    let (old, this) = (
        newcomer.cache().join("assets-0.0.1"),
        newcomer.cache().join(concat!("assets-", env!("CARGO_PKG_VERSION"))),
    );
    for directory in [&old, &this] {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join("pyodide.asm.wasm"), "wasm").unwrap();
        fs::write(directory.join("image-0.bin"), "image").unwrap();
    }
    let canary = newcomer.home.path().join("canary");
    fs::write(&canary, "mine").unwrap();
    fs::write(newcomer.cache().join("notes.txt"), "mine").unwrap();
    std::os::unix::fs::symlink(&canary, old.join("image-1.bin")).unwrap();
    std::os::unix::fs::symlink(newcomer.home.path(), newcomer.cache().join("assets-9")).unwrap();

    let ran = newcomer.run(&["cache", "clean", "--unused"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.starts_with("removed 3 files with "), "{}", ran.stderr);
    assert!(!old.join("pyodide.asm.wasm").exists() && this.join("image-0.bin").exists());
    let ran = newcomer.run(&["cache", "clean"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!this.join("image-0.bin").exists());
    assert_eq!(fs::read_to_string(&canary).unwrap(), "mine");
    assert_eq!(fs::read_to_string(newcomer.cache().join("notes.txt")).unwrap(), "mine");
    assert!(newcomer.home.path().join("isolet").exists());
}

#[test]
fn first_starts_at_the_same_time_fetch_once_and_make_one_image() {
    let (server, source) = mirror();
    let newcomer = Newcomer::new(source);
    let start = |_| newcomer.command(&["run", "-c", "print('up')"]).spawn().unwrap();
    let children: Vec<Child> = (0..3).map(start).collect();
    for child in children {
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!((ran.stdout.as_str(), ran.code), ("up\n", Some(0)), "{}", ran.stderr);
    }
    assert_eq!(server.requests().len(), lock().unwrap().files().len());
    let listed = newcomer.listed();
    assert_eq!(kinds(&listed), [("assets", 1), ("image", 1)]);
    assert_eq!(listed["bytes"].as_u64(), Some(bytes_in(&newcomer.cache())));
}

#[test]
fn without_a_network_a_first_start_is_one_clear_error() {
    // A port that was free a moment ago, so that nothing listens on it.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let newcomer = Newcomer::new(format!("http://127.0.0.1:{port}/{{file}}"));
    let ran = newcomer.run(&["run", "-c", "print('started')"]);
    assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{ran:?}");
    let errors: Vec<&str> = ran.stderr.lines().filter(|line| line.starts_with("error: ")).collect();
    let [error] = errors[..] else { panic!("{}", ran.stderr) };
    for said in ["cannot be fetched", "isolet assets fetch", "cannot fetch Pyodide"] {
        assert!(error.contains(said), "{said}: {error}");
    }
    assert_eq!(ran.stderr.lines().count(), 2, "{}", ran.stderr);
}

#[test]
fn a_directory_that_the_user_named_is_not_filled() {
    let (server, source) = mirror();
    let newcomer = Newcomer::new(source);
    let named = newcomer.home.path().join("named");
    let mut command = newcomer.command(&["run", "-c", "print('started')"]);
    let by_variable =
        Ran::from(command.env(isolet_test_support::ASSETS_VARIABLE, &named).output().unwrap());
    let by_option =
        newcomer.run(&["--assets", named.to_str().unwrap(), "run", "-c", "print('started')"]);
    for ran in [by_variable, by_option] {
        assert_eq!((ran.stdout.as_str(), ran.code), ("", Some(2)), "{ran:?}");
        let remedy = format!("`isolet --assets {} assets fetch` fetches it", named.display());
        assert!(ran.stderr.contains(&remedy), "{}", ran.stderr);
    }
    assert!(!named.exists());
    assert_eq!(server.connections(), 0);
}

/// As in a Python environment: `bin/isolet`, with the assets in `share/isolet/assets`.
#[test]
fn assets_that_are_installed_with_the_command_stay_as_they_are() {
    let newcomer = Newcomer::new("http://127.0.0.1:1/{file}".to_owned());
    let home = newcomer.home.path();
    let (bin, share) = (home.join("prefix/bin"), home.join("prefix/share/isolet/assets"));
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&share).unwrap();
    fs::rename(home.join("isolet"), bin.join("isolet")).unwrap();
    for file in lock().unwrap().files() {
        fs::copy(assets_dir().join(file.name()), share.join(file.name())).unwrap();
    }
    let installed = bytes_in(&share);
    let run = |args: &[&str]| {
        let settings = newcomer.command(args);
        let mut installed = Command::new(bin.join("isolet"));
        installed.args(args).stdin(Stdio::null()).env_remove(isolet_test_support::ASSETS_VARIABLE);
        for (name, value) in settings.get_envs().filter_map(|(name, value)| Some((name, value?))) {
            installed.env(name, value);
        }
        Ran::from(installed.output().unwrap())
    };
    for _ in 0..2 {
        let ran = run(&["run", "-c", "print(40 + 2)"]);
        assert_eq!((ran.stdout.as_str(), ran.code), ("42\n", Some(0)), "{}", ran.stderr);
    }
    assert_eq!(bytes_in(&share), installed);
    let cache = newcomer.cache().join(concat!("assets-", env!("CARGO_PKG_VERSION")));
    let images = fs::read_dir(&cache).unwrap().flatten().map(|entry| entry.file_name());
    let images: Vec<_> = images.filter(|name| name.to_string_lossy().ends_with(".bin")).collect();
    assert_eq!(images.len(), 1, "{images:?}");
}
