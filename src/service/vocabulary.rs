//! Rewrites the library's messages for clients: they set fields of a policy, and know no calls.

/// Calls that the messages mention, and the fields for them.
const FIELDS: [(&str, &str); 19] = [
    ("`Limits::max_run_time`", "`limits.run_time`"),
    ("`Limits::max_host_time`", "`limits.host_time`"),
    ("`Limits::max_memory_bytes`", "`limits.memory`"),
    ("`Limits::max_tool_calls`", "`limits.tool_calls`"),
    ("`Limits::max_refusals`", "`limits.refusals`"),
    ("`Limits::max_source_bytes`", "`limits.source`"),
    ("`Limits::max_value_bytes`", "`limits.value`"),
    ("`Permissions::ca_file`", "`ca_files`"),
    ("`Permissions::wheels`", "`wheels`"),
    ("`Permissions::packages`", "`packages`"),
    ("`Permissions::allow_package`", "`allow_packages`"),
    (" (`Permissions::pyodide_packages`)", ""),
    ("`SandboxBuilder::forkable`", "`forkable`"),
    ("`EngineBuilder::isolation` to `Isolation::Thread`", "`isolation` to `thread`"),
    (", or leave out `EngineBuilder::confine_preloaded`", ""),
    ("`EngineBuilder::confine_preloaded`", "`preload`"),
    ("`EngineBuilder::preload`", "`preload`"),
    ("`Mount::overlay`", "the mode `overlay`"),
    (", or use `Mount::dangerous_*`", ""),
];

/// Returns a message of the library, rewritten for a client.
pub(super) fn in_fields(message: &str) -> String {
    let mut text = message.to_owned();
    for (call, field) in FIELDS {
        text = text.replace(call, field);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isolet::{Error, ErrorKind, LimitKind, Mount, Termination};

    use super::super::Failure;
    use super::*;

    #[test]
    fn messages_for_clients_name_no_call() {
        let time = Duration::from_secs(1);
        let terminations = [
            Termination::Deadline { limit: time, observed: time },
            Termination::HostTime { limit: time, observed: time },
            Termination::Memory { limit: 1, observed: 2 },
            Termination::Limit { kind: LimitKind::Refusals, limit: 1, observed: 2 },
            Termination::Limit { kind: LimitKind::ToolCalls, limit: 1, observed: 2 },
        ];
        for termination in terminations {
            let message = termination.to_string();
            assert!(message.contains("`Limits::"), "{message}");
            assert!(!in_fields(&message).contains("::"), "{message}");
        }
        let deadline = Termination::Deadline { limit: time, observed: time }.to_string();
        assert!(in_fields(&deadline).ends_with("the limit is 1 s (`limits.run_time`)"));
        let error = Mount::read_only("/").map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
        assert!(Error::hint(&error).is_some_and(|hint| hint.contains("`Mount::dangerous_*`")));
        assert!(!Failure::from(error).hint.is_some_and(|hint| hint.contains("::")));
    }
}
