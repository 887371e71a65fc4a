//! The commands that pages show, with the built command: each prints what its page says.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use isolet_test_support::{ASSETS_VARIABLE, LONGEST, Scratch, assets_dir, ended, program, root};

/// The port that the pages name, which a free one takes the place of.
const PORT: &str = "8080";

const MARK: &str = "-- the command has ended --";

/// A command of a page, and the lines that it prints. `...` stands for anything.
#[derive(Debug, Default)]
struct Shown {
    command: String,
    lines: Vec<String>,
}

/// A shell in which the commands of a page run one after the other.
struct Shell {
    child: Child,
    input: ChildStdin,
    output: Receiver<String>,
}

impl Shell {
    fn start(dir: &Path) -> Self {
        let program = program();
        let beside = Path::new(&program).parent().unwrap();
        #[expect(clippy::disallowed_methods, reason = "the shell finds the other programs by it")]
        let path = std::env::var("PATH").unwrap();
        let mut child = Command::new("bash")
            .current_dir(dir)
            .env("PATH", format!("{}:{path}", beside.display()))
            .env(ASSETS_VARIABLE, assets_dir())
            // What was pinned on this machine is nothing of the page.
            .env("HOME", dir)
            .env_remove("XDG_CONFIG_HOME")
            .env_remove("XDG_DATA_HOME")
            .env_remove("JUPYTER_DATA_DIR")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        // What the shell has started ends with it, also when a test fails.
        writeln!(input, "exec 2>&1; trap 'kill $(jobs -p) 2> /dev/null' EXIT").unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, output) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|l| sender.send(l)));
        Self { child, input, output }
    }

    /// Runs a command. Returns what it prints, of one in the background the first `lines` lines.
    fn run(&mut self, command: &str, lines: usize) -> Vec<String> {
        // A group, so that a here-document may end it. Its input is not the shell's.
        write!(self.input, "{{ {command}\n}} < /dev/null; echo; echo '{MARK}'\n").unwrap();
        let is_background = command.ends_with('&');
        let (mut printed, mut has_ended) = (Vec::new(), false);
        while !has_ended || is_background && printed.len() < lines {
            let line = self.output.recv_timeout(LONGEST).unwrap_or_else(|_| {
                panic!("`{command}` has not printed all that its page shows: {printed:?}")
            });
            has_ended |= line == MARK;
            if line != MARK && !line.is_empty() {
                printed.push(line.trim_end().to_owned());
            }
        }
        printed
    }
}

/// Returns the commands of the blocks that are sessions of a terminal.
fn commands(page: &str) -> Vec<Shown> {
    let mut shown: Vec<Shown> = Vec::new();
    let blocks = page.split("```console\n").skip(1);
    for line in blocks.flat_map(|rest| rest.split_once("```").unwrap().0.lines()) {
        if let Some(command) = line.strip_prefix("$ ") {
            shown.push(Shown { command: command.to_owned(), lines: Vec::new() });
        } else if let Some(more) = line.strip_prefix('>') {
            let last = shown.last_mut().unwrap();
            last.command = format!("{}\n{}", last.command, more.strip_prefix(' ').unwrap_or(more));
        } else if !line.is_empty() {
            shown.last_mut().unwrap().lines.push(line.to_owned());
        }
    }
    shown
}

/// Tells whether `line` is `shown`, in which `...` stands for anything.
fn is_as_shown(line: &str, shown: &str) -> bool {
    let parts: Vec<_> = shown.split("...").collect();
    let [first, .., last] = parts[..] else { return line == shown };
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    for part in &parts[1..parts.len() - 1] {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Runs the commands of a page and compares what they print. Returns how many there are.
fn run_page(name: &str) -> usize {
    let page = std::fs::read_to_string(root().join(name)).unwrap();
    // Bound and given back: nothing else takes it within a moment.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let scratch = Scratch::new(&format!("snippets-{}", name.replace('/', "-")));
    let mut shell = Shell::start(scratch.path());
    let shown = commands(&page.replace(PORT, &free));
    for Shown { command, lines } in &shown {
        let printed = shell.run(command, lines.len());
        let is_right = printed.len() == lines.len()
            && printed.iter().zip(lines).all(|(line, shown)| is_as_shown(line, shown));
        assert!(is_right, "{name} shows for `{command}`\n{lines:#?}\nand it prints\n{printed:#?}");
    }
    let Shell { child, input, .. } = shell;
    drop(input);
    ended(child);
    shown.len()
}

#[test]
fn the_commands_of_the_guide_for_mcp_print_what_it_shows() {
    assert!(run_page("docs/guides/mcp.md") >= 5);
}

#[test]
fn the_commands_of_the_guide_to_jupyter_print_what_it_shows() {
    assert!(run_page("docs/guides/jupyter.md") >= 6);
}

#[test]
fn the_commands_of_the_guide_to_a_node_print_what_it_shows() {
    assert!(run_page("docs/guides/node.md") >= 10);
}

#[test]
fn the_commands_of_the_guide_from_other_tools_print_what_it_shows() {
    assert!(run_page("docs/guides/other-tools.md") >= 2);
}

#[test]
fn the_commands_of_the_guide_to_secrets_print_what_it_shows() {
    assert!(run_page("docs/guides/secrets.md") >= 2);
}

#[test]
fn the_commands_of_the_guide_to_chat_front_ends_print_what_it_shows() {
    assert!(run_page("docs/guides/chat-front-ends.md") >= 4);
}

#[test]
fn the_commands_of_the_guide_to_skills_print_what_it_shows() {
    assert!(run_page("docs/guides/skills.md") >= 5);
}

#[test]
fn the_commands_of_the_pages_on_saved_sessions_and_on_the_protocol_print_what_they_show() {
    assert!(run_page("docs/concepts/saved.md") >= 4);
    assert!(run_page("docs/reference/protocol.md") >= 1);
}

#[test]
fn the_program_of_the_guide_for_rust_is_an_example() {
    let page = std::fs::read_to_string(root().join("docs/guides/rust.md")).unwrap();
    let example = std::fs::read_to_string(root().join("examples/first.rs")).unwrap();
    let (_, block) = page.split_once("```rust,no_run\n").unwrap();
    let (_, program) = example.split_once("\n\n").unwrap();
    assert_eq!(block.split_once("```").unwrap().0, program);
}

#[test]
fn every_guide_is_run() {
    let guides = std::fs::read_dir(root().join("docs/guides")).unwrap();
    let mut names: Vec<_> =
        guides.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    // That of Python is run by the tests of the package, and what the others show of it; that of
    // data by `cargo xtask gallery --check`, that of installing by `cargo xtask install-test`.
    let expected = [
        "chat-front-ends.md",
        "data",
        "data.md",
        "install.md",
        "jupyter.md",
        "mcp.md",
        "node.md",
        "other-tools.md",
        "python.md",
        "rust.md",
        "secrets.md",
        "skills.md",
    ];
    assert_eq!(names, expected);
}
