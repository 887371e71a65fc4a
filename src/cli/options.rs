//! Rewrites the library's messages for the command: replaces calls by the options that do the same.

/// Calls that the messages mention, and the options for them.
const OPTIONS: [(&str, &str); 11] = [
    ("`Permissions::ca_file`", "`--ca-file`"),
    ("`Limits::max_run_time`", "`--timeout`"),
    ("`Limits::max_host_time`", "`--host-timeout`"),
    ("`Limits::max_memory_bytes`", "`--memory`"),
    ("`Permissions::wheels`", "`--wheels`"),
    ("`Permissions::allow_package`", "`--with`"),
    ("`EngineBuilder::preload`", "`--with`"),
    ("`EngineBuilder::max_import_time`", "`--timeout`"),
    ("`Mount::overlay`", "`--mount HOST:GUEST:overlay`"),
    ("`Permissions::pyodide_packages`", "`--pyodide-packages`"),
    (", or use `Mount::dangerous_*`", ""),
];

/// Limits for which the command has no option.
const WITHOUT_OPTION: [&str; 4] = [
    " (`Limits::max_tool_calls`)",
    " (`Limits::max_refusals`)",
    " (`Limits::max_source_bytes`)",
    " (`Limits::max_value_bytes`)",
];

/// Returns a message of the library, rewritten for a user of the command.
pub(super) fn in_options(message: &str) -> String {
    let mut text = message.to_owned();
    for (call, option) in OPTIONS.into_iter().chain(WITHOUT_OPTION.map(|call| (call, ""))) {
        text = text.replace(call, option);
    }
    text
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use isolet::{LimitKind, Termination};

    use super::*;

    #[test]
    fn messages_for_users_of_the_command_name_no_call() {
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
            assert!(!in_options(&message).contains("::"), "{message}");
        }
        let deadline = Termination::Deadline { limit: time, observed: time }.to_string();
        assert!(in_options(&deadline).ends_with("the limit is 1 s (`--timeout`)"), "{deadline}");
    }
}
