//! The floors: which crates there are, and which folders of a crate may name which others.

use super::SourceFile;
use super::rules::{checked, names};

/// A crate, whose files are beneath `src`.
pub(super) struct Crate {
    pub(super) name: &'static str,
    pub(super) src: &'static str,
    /// Our crates that it names. All of them precede it in [`CRATES`].
    pub(super) below: &'static [&'static str],
    /// Its folders, or files at its top, from the lowest up.
    pub(super) rooms: &'static [Room],
}

/// A folder, or a file at the top of a crate, and those that its files may name by `crate::`. All
/// of these precede it in the list, so that none depend on each other in a circle.
pub(super) type Room = (&'static str, &'static [&'static str]);

/// The library.
pub(super) const LIBRARY: &str = "isolet";

/// The crate that knows the command's options.
const COMMAND: &str = "isolet-cli";

/// The rooms that every subcommand may name.
const OF_SUBCOMMANDS: &[&str] = &["show", "kit", "args", "notebook", "program"];

/// The crates, from the lowest up.
pub(super) const CRATES: &[Crate] = &[
    Crate {
        name: LIBRARY,
        src: "src/",
        below: &["isolet-pyodide-assets"],
        rooms: &[
            ("data", &[]),
            ("support", &["data"]),
            ("fs", &["data"]),
            ("net", &["data"]),
            ("protocol", &["data", "support", "fs"]),
            ("packages", &["data", "support", "fs"]),
            ("host", &["data", "support", "fs", "net", "protocol", "packages"]),
            ("image", &["data", "support", "packages"]),
            ("isolate", &["data", "support", "fs", "protocol", "packages", "image"]),
            ("worker/wire", &["data", "support", "fs", "protocol"]),
            ("worker/child", &["data", "support", "fs", "protocol", "isolate", "worker/wire"]),
            ("worker/parent", &["data", "support", "fs", "protocol", "worker/wire"]),
            (
                "worker",
                &[
                    "data",
                    "support",
                    "fs",
                    "protocol",
                    "worker/wire",
                    "worker/child",
                    "worker/parent",
                ],
            ),
            (
                "api",
                &[
                    "data", "support", "fs", "net", "protocol", "packages", "host", "image",
                    "isolate", "worker",
                ],
            ),
            ("profile", &["data", "host", "api"]),
            ("internals", &["data", "support", "host", "api"]),
            (
                "fuzzing",
                &[
                    "data",
                    "support",
                    "fs",
                    "net",
                    "packages",
                    "protocol",
                    "image",
                    "host",
                    "worker/wire",
                ],
            ),
        ],
    },
    Crate {
        name: "isolet-support",
        src: "crates/isolet-support/src/",
        below: &[LIBRARY],
        rooms: &[
            ("frames", &[]),
            ("yaml", &[]),
            ("http_server", &[]),
            ("json_rpc", &[]),
            ("json_text", &["json_rpc"]),
            ("mime_bundle", &["json_text"]),
            ("inert", &["mime_bundle"]),
            ("quoted", &[]),
            ("secret", &[]),
            ("template", &[]),
            ("size", &[]),
            ("skills", &[]),
            ("socket", &[]),
            ("text", &[]),
            ("json", &["text"]),
            ("audit_line", &[]),
            ("journal", &["audit_line", "json"]),
        ],
    },
    Crate {
        name: "isolet-service",
        src: "crates/isolet-service/src/",
        below: &[LIBRARY],
        rooms: &[("core", &[]), ("node", &["core"])],
    },
    Crate {
        name: "isolet-mcp",
        src: "crates/isolet-mcp/src/",
        below: &["isolet-pyodide-assets", LIBRARY, "isolet-support", "isolet-service"],
        rooms: &[
            ("support", &[]),
            ("config", &["support"]),
            ("tool", &["support"]),
            ("upstream", &["support", "config", "tool"]),
            ("hub", &["config", "tool", "upstream"]),
            ("llm", &["support"]),
            ("server", &["hub", "llm"]),
            ("auto_traits", &["config", "hub", "llm"]),
            ("tests", &["config", "hub"]),
            ("fuzzing", &["config", "tool", "upstream", "server"]),
        ],
    },
    Crate {
        name: "isolet-jupyter",
        src: "crates/isolet-jupyter/src/",
        below: &[LIBRARY, "isolet-support", "isolet-service"],
        rooms: &[
            ("message", &[]),
            ("kernel", &["message"]),
            ("zmq", &["message", "kernel"]),
            ("fuzzing", &["zmq"]),
        ],
    },
    Crate {
        name: "isolet-serve",
        src: "crates/isolet-serve/src/",
        below: &[
            "isolet-pyodide-assets",
            LIBRARY,
            "isolet-support",
            "isolet-service",
            "isolet-jupyter",
        ],
        rooms: &[
            ("ending", &[]),
            ("wire", &[]),
            ("parent", &["ending"]),
            ("parent_portable", &["ending"]),
            ("stdio", &["ending", "wire", "parent"]),
            ("http", &["wire", "parent"]),
            ("fuzzing", &["stdio", "http"]),
        ],
    },
    Crate {
        name: COMMAND,
        src: "crates/isolet-cli/src/",
        below: &[
            "isolet-pyodide-assets",
            LIBRARY,
            "isolet-support",
            "isolet-service",
            "isolet-mcp",
            "isolet-serve",
            "isolet-jupyter",
        ],
        rooms: &[
            ("show", &[]),
            ("kit", &["show"]),
            ("args", &["show", "kit"]),
            ("notebook", &["show", "kit", "args"]),
            ("program", &["show", "kit", "args", "notebook"]),
            ("assets", OF_SUBCOMMANDS),
            ("cache", OF_SUBCOMMANDS),
            ("doctor", OF_SUBCOMMANDS),
            ("dspy", OF_SUBCOMMANDS),
            ("deno_shim", &["show", "dspy"]),
            ("generate", OF_SUBCOMMANDS),
            ("jupyter", OF_SUBCOMMANDS),
            ("mcp", OF_SUBCOMMANDS),
            ("monty", OF_SUBCOMMANDS),
            ("packages", OF_SUBCOMMANDS),
            ("repl", OF_SUBCOMMANDS),
            ("replay", &["show", "kit", "args", "repl"]),
            ("resume", OF_SUBCOMMANDS),
            ("run", OF_SUBCOMMANDS),
            ("serve", OF_SUBCOMMANDS),
            ("skill", &["show", "kit", "args", "run"]),
            ("version", &[]),
            ("words_tests", &["args"]),
        ],
    },
];

/// Requires that a folder imports only lower folders, and a crate only lower crates, so that nobody
/// has to read the higher ones to understand it.
pub(super) fn folders_name_what_is_below_them(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in checked(files) {
        let Some((house, path)) = house(&file.path) else {
            if file.path.starts_with("crates/") {
                complaints.push(format!("{}: is in no crate (`CRATES` in xtask)", file.path));
            }
            continue;
        };
        let room = house.room(path);
        if room.is_none() && !is_root(path) {
            complaints.push(format!("{}: is on no floor (`CRATES` in xtask)", file.path));
            continue;
        }
        for (place, line) in file.code() {
            for named in house.named_crates(line) {
                if !house.below.contains(&named) {
                    complaints.push(format!(
                        "{place}: `{}` names `{named}`, which is not below it",
                        house.name
                    ));
                }
            }
            let Some((name, below)) = room else { continue };
            for named in house.named_rooms(line) {
                if named != *name && !below.contains(&&*named) {
                    complaints
                        .push(format!("{place}: `{name}` names `{named}`, which is not below it"));
                }
            }
        }
    }
    complaints
}

/// Requires that only the command knows its options, so that programs can embed what is below it.
pub(super) fn only_the_command_names_its_options(files: &[SourceFile]) -> Vec<String> {
    let is_below = |path: &str| house(path).is_some_and(|(house, _)| house.name != COMMAND);
    let files = checked(files).filter(|file| is_below(&file.path));
    let lines = files.flat_map(SourceFile::code).filter(|(_, line)| names(line, "clap"));
    lines.map(|(place, _)| format!("{place}: names `clap` outside of `{COMMAND}`")).collect()
}

/// Returns the crate of a file, and the file's path in it.
pub(super) fn house(path: &str) -> Option<(&'static Crate, &str)> {
    CRATES.iter().find_map(|house| Some((house, path.strip_prefix(house.src)?)))
}

/// Returns `true` for the file in which a crate begins, which names everything.
pub(super) fn is_root(path: &str) -> bool {
    ["lib.rs", "main.rs"].contains(&path)
}

impl Crate {
    /// Returns the room of a file of this crate: the longest that its path begins with.
    pub(super) fn room(&self, path: &str) -> Option<&'static Room> {
        let path = path.strip_suffix(".rs").unwrap_or(path);
        let is_in = |(room, _): &&Room| {
            path.strip_prefix(*room).is_some_and(|rest| !rest.starts_with(is_of_a_name))
        };
        self.rooms.iter().filter(is_in).max_by_key(|(room, _)| room.len())
    }

    /// Returns the rooms, or other items of the crate, that a line names by `crate::`.
    pub(super) fn named_rooms(&self, line: &str) -> Vec<String> {
        let mut named = Vec::new();
        for (start, prefix) in line.match_indices("crate::") {
            if line[..start].ends_with(is_of_a_name) {
                continue;
            }
            let path = line[start + prefix.len()..].replace("::", "/");
            let end = path.find(|c: char| !is_of_a_name(c) && c != '/').unwrap_or(path.len());
            let room = self.room(&path[..end]);
            named.push(room.map_or_else(|| path[..end].to_owned(), |(room, _)| (*room).to_owned()));
        }
        named
    }

    /// Returns our other crates that a line names.
    pub(super) fn named_crates(&self, line: &str) -> impl Iterator<Item = &'static str> {
        let others = CRATES.iter().map(|house| house.name).filter(|name| *name != self.name);
        others.filter(move |name| names(line, &format!("{}::", name.replace('-', "_"))))
    }
}

fn is_of_a_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}
