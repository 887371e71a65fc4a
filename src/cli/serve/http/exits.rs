//! What `IPython` shows of a cell that ends by `SystemExit`.

use isolet::Value;

/// The arguments of what `exit()` and `quit()` raise, as JSON. `sys.exit()` gives none.
const OF_EXIT: &str = "[null]";

/// An exception as a notebook shows it.
pub(super) struct Shown {
    pub(super) name: String,
    pub(super) message: String,
}

impl Shown {
    /// Returns what ended a cell that exited. A mere `exit()` is no failure in `IPython`.
    pub(super) fn of(execution: &Value) -> Option<Self> {
        let status = execution.get("exit_code").and_then(Value::as_i64)?;
        let text = |of: &Value, name: &str| of.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(exit) = execution.get("system_exit") else {
            return Some(Self { name: "SystemExit".to_owned(), message: status.to_string() });
        };
        if text(exit, "args").as_deref() == Some(OF_EXIT) {
            return None;
        }
        let name = text(exit, "type").unwrap_or_default();
        // Without the names of what the class is in.
        let name = name.rsplit('.').next().unwrap_or_default().to_owned();
        Some(Self { name, message: text(exit, "message").unwrap_or_default() })
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

    fn shown(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Option<String> {
        Shown::of(&Value::dict(fields)).map(|shown| shown.line())
    }

    fn raised(name: &str, message: &str, args: &str) -> [(&'static str, Value); 2] {
        let exit = [("type", name), ("message", message), ("args", args)];
        let exit = exit.map(|(key, text)| (key, Value::from(text)));
        [("exit_code", 1.into()), ("system_exit", Value::dict(exit))]
    }

    #[test]
    fn an_exit_is_shown_as_ipython_shows_it() {
        let line = |name, message, args| shown(raised(name, message, args));
        assert_eq!(line("SystemExit", "3", "[3]").as_deref(), Some("SystemExit: 3"));
        assert_eq!(line("SystemExit", "", "[]").as_deref(), Some("SystemExit"));
        assert_eq!(line("f.<locals>.Quit", "a", r#"["a"]"#).as_deref(), Some("Quit: a"));
        assert_eq!(line("SystemExit", "None", "[null]"), None);
        assert_eq!(shown([("exit_code", 7.into())]).as_deref(), Some("SystemExit: 7"));
        assert_eq!(shown([("status", "completed".into())]), None);
    }
}
