//! `IPython`'s display of a cell that ends by `SystemExit`.

use isolet_service::core::Execution;

/// The arguments of the exception that `exit()` and `quit()` raise, as JSON. That of `sys.exit()`
/// has none.
const OF_EXIT: &str = "[null]";

/// An exception as a notebook shows it.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) message: String,
}

impl Shown {
    /// Returns the exception of a cell that exited. A plain `exit()` is not a failure in `IPython`.
    pub(super) fn of(execution: &Execution) -> Option<Self> {
        let status = execution.exit_code?;
        let Some(exit) = &execution.system_exit else {
            return Some(Self { name: "SystemExit".to_owned(), message: status.to_string() });
        };
        if exit.args_json.as_deref() == Some(OF_EXIT) {
            return None;
        }
        Some(Self { name: exit.bare_name().to_owned(), message: exit.message.clone() })
    }

    /// Returns the last line of a traceback.
    pub(super) fn line(&self) -> String {
        let Self { name, message } = self;
        if message.is_empty() { name.clone() } else { format!("{name}: {message}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isolet_service::core::Exception;

    fn line(type_name: &str, message: &str, args: &str) -> Option<String> {
        let exit = Exception {
            type_name: type_name.to_owned(),
            message: message.to_owned(),
            args_json: Some(args.to_owned()),
            ..Exception::default()
        };
        shown(Some(1), Some(exit))
    }

    fn shown(exit_code: Option<i32>, system_exit: Option<Exception>) -> Option<String> {
        let execution = Execution { exit_code, system_exit, ..Execution::default() };
        Shown::of(&execution).map(|shown| shown.line())
    }

    #[test]
    fn an_exit_is_shown_as_ipython_shows_it() {
        assert_eq!(line("SystemExit", "3", "[3]").as_deref(), Some("SystemExit: 3"));
        assert_eq!(line("SystemExit", "", "[]").as_deref(), Some("SystemExit"));
        assert_eq!(line("f.<locals>.Quit", "a", r#"["a"]"#).as_deref(), Some("Quit: a"));
        assert_eq!(line("SystemExit", "None", "[null]"), None);
        assert_eq!(shown(Some(7), None).as_deref(), Some("SystemExit: 7"));
        assert_eq!(shown(None, None), None);
    }
}
