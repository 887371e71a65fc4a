//! Rewrites the library's messages, which name Rust methods, for users of the command and for
//! clients: with the names of options, and of policy fields.

macro_rules! limits {
    ($($(#[$doc:meta])* $name:ident: $type:ty as $plain:ty, $setter:ident, $default:ident,
       $option:expr;)*) => {
        /// The setters of limits, and their replacements.
        const LIMITS: &[(&str, Result<&str, &str>, &str)] =
            &[$((stringify!($setter), $option, stringify!($name)),)*];
    };
}

isolet::for_each_limit!(limits);

/// Other methods in messages, and their replacements: the command's option, and the policy's field.
/// Without a replacement, the parenthesis is removed. Longer names come first.
const WORDS: [(&str, &str, &str); 21] = [
    ("`Permissions::allow_public_net`", "`--allow-public-net`", "`allow_public_net`"),
    ("`Permissions::ca_file`", "`--ca-file`", "`ca_files`"),
    ("`Permissions::wheels`", "`--wheels`", "`wheels`"),
    ("`Permissions::offline_packages`", "`--offline`", "`offline`"),
    ("`Permissions::packages`", "`--with`", "`packages`"),
    ("`Permissions::allow_package`", "`--with`", "`allow_packages`"),
    ("`Permissions::pyodide_packages`", "`--pyodide-packages`", ""),
    ("`SandboxBuilder::forkable`", "`forkable`", "`forkable`"),
    ("`SandboxBuilder::checkpoint`", "`checkpoint`", "`checkpoint`"),
    (
        "`EngineBuilder::isolation` to `Isolation::Thread`",
        "`--isolation` to `thread`",
        "`isolation` to `thread`",
    ),
    (", or leave out `EngineBuilder::confine_preloaded`", "", ""),
    ("`EngineBuilder::confine_preloaded`", "`--with`", "`preload`"),
    ("`EngineBuilder::preload`", "`--with`", "`preload`"),
    ("`Isolation::Process`", "`--isolation process`", "the isolation `process`"),
    ("`Isolation::Thread`", "`--isolation thread`", "the isolation `thread`"),
    ("call `Session::go_on` first", "`isolet resume` goes on with it", "call `go_on` first"),
    ("`EngineBuilder::max_import_time`", "`--timeout`", "`limits.run_time`"),
    ("`Journal::max_bytes`", "", "`max_bytes`"),
    ("`Session::go_on`", "`isolet resume`", "`go_on`"),
    ("`Mount::overlay`", "`--mount HOST:GUEST:overlay`", "the mode `overlay`"),
    (", or use `Mount::dangerous_*`", "", ""),
];

/// Rewrites a message of the library for a client.
pub(crate) fn in_fields(message: &str) -> String {
    let mut text = message.to_owned();
    for (setter, _, name) in LIMITS {
        replace(&mut text, &format!("`Limits::{setter}`"), &format!("`limits.{name}`"));
    }
    for (call, _, field) in WORDS {
        replace(&mut text, call, field);
    }
    text
}

/// Rewrites a message of the library for a model that calls a tool: the time of a run is a
/// parameter of it.
pub fn in_parameters(message: &str) -> String {
    in_options(&message.replace("`Limits::max_run_time`", "`timeout`"))
}

/// Rewrites a message of the library for a user of the command.
pub fn in_options(message: &str) -> String {
    let mut text = message.to_owned();
    for (setter, option, _) in LIMITS {
        let option = option.map_or_else(|_| String::new(), |option| format!("`{option}`"));
        replace(&mut text, &format!("`Limits::{setter}`"), &option);
    }
    for (call, option, _) in WORDS {
        replace(&mut text, call, option);
    }
    text
}

fn replace(text: &mut String, call: &str, replacement: &str) {
    if !text.contains(call) {
        return;
    }
    if replacement.is_empty() {
        *text = text.replace(&format!(" ({call})"), "");
    }
    *text = text.replace(call, replacement);
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::time::Duration;

    use isolet::{Error, ErrorKind, LimitKind, MemoryKind, Mount, Termination};

    use super::super::Failure;
    use super::*;

    #[test]
    fn messages_for_clients_and_for_users_of_the_command_name_no_call() {
        let time = Duration::from_secs(1);
        let terminations = [
            Termination::Deadline { limit: time, observed: time },
            Termination::HostTime { limit: time, observed: time },
            Termination::Memory { kind: MemoryKind::Worker, limit: 1, observed: 2 },
            Termination::Limit { kind: LimitKind::Refusals, limit: 1, observed: 2 },
            Termination::Limit { kind: LimitKind::ToolCalls, limit: 1, observed: 2 },
        ];
        for termination in terminations {
            let message = termination.to_string();
            assert!(message.contains("`Limits::"), "{message}");
            for rewritten in [in_fields(&message), in_options(&message)] {
                assert!(!rewritten.contains("::") && !rewritten.contains("()"), "{rewritten}");
            }
        }
        let deadline = Termination::Deadline { limit: time, observed: time }.to_string();
        assert!(in_fields(&deadline).ends_with("the limit is 1 s (`limits.run_time`)"));
        assert!(in_options(&deadline).ends_with("the limit is 1 s (`--timeout`)"), "{deadline}");
        let error = Mount::read_only("/").map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(Error::hint(&error).is_some_and(|hint| hint.contains("`Mount::dangerous_*`")));
        assert!(!Failure::from(error).hint.is_some_and(|hint| hint.contains("::")));
    }

    /// What only a program in Rust can get wrong, and the names of limits, which stand in a message
    /// that says which one it is.
    const OF_RUST_ONLY: [&str; 6] = [
        "`isolet::init()`",
        "`tokio::runtime::Builder::enable_all`",
        "`#[tokio::main]`",
        "`Tool::timeout`",
        "`Limits::{call}`",
        // Lines of docs/reference/limits.md.
        "src/api/documented_limits.rs",
    ];

    /// Returns the texts in a source file that name something as Rust does. Outside of texts and
    /// comments, Rust has no backtick.
    fn texts_with_paths(source: &str) -> Vec<String> {
        let source = source.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        let lines = source.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        let source = lines.collect::<Vec<_>>().join("\n").replace("\\\n", "");
        let mut texts = Vec::new();
        for (at, _) in source.match_indices('`') {
            let named = source[at + 1..].split('`').next().unwrap_or_default();
            // Addresses are in brackets.
            let is_name = named.starts_with(|c: char| c.is_alphabetic() || c == '#');
            if !is_name || !named.contains("::") || named.contains(['\n', '"', ' ']) {
                continue;
            }
            let start = source[..at].rfind('"').map_or(0, |quote| quote + 1);
            let end = source[at..].find('"').map_or(source.len(), |quote| at + quote);
            texts.push(source[start..end].to_owned());
        }
        texts
    }

    fn sources(directory: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                && !path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with("tests"))
            {
                found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
            }
        }
    }

    #[test]
    fn no_text_in_the_librarys_sources_keeps_a_name_of_rust_or_an_option() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = Vec::new();
        sources(&root.join("src"), &mut found);
        sources(&root.join("pyodide-assets/src"), &mut found);
        let mut count = 0;
        for (path, source) in found {
            for text in texts_with_paths(&source) {
                if OF_RUST_ONLY.iter().any(|one| text.contains(one) || path.ends_with(one)) {
                    continue;
                }
                count += 1;
                for rewritten in [in_fields(&text), in_options(&text), in_parameters(&text)] {
                    assert!(!rewritten.contains("::"), "{path}: {rewritten}");
                    assert!(!rewritten.contains("``") && !rewritten.contains("()"), "{rewritten}");
                }
                assert!(!in_fields(&text).contains("--"), "{path}: {text}");
                // A reader of Rust gets it as it is.
                assert!(!text.contains("`--"), "{path}: {text}");
            }
        }
        assert!(count >= 25, "{count} texts");
    }
}
