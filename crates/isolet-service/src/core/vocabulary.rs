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
const WORDS: [(&str, &str, &str); 17] = [
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
}
