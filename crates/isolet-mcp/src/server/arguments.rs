//! The arguments of a call, as models and clients send them: an empty text or `"null"` for an
//! omitted one, numbers as texts, and keys that a client adds to every call.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value as Json;

/// Texts that stand for a value that was left out.
const NOTHING: [&str; 5] = ["", "null", "none", "nil", "undefined"];

/// Texts that stand for no session. A handle is none of them.
const NO_SESSION: [&str; 3] = ["new", "default", "auto"];

/// How many ignored keys are named, and how much of each.
const NAMED: usize = 10;
const NAME_CHARS: usize = 40;

/// The arguments of a call.
pub(super) struct Arguments<'a> {
    tool: &'static str,
    known: &'static [&'static str],
    given: &'a JsonObject,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(
        tool: &'static str,
        given: &'a JsonObject,
        known: &'static [&'static str],
    ) -> Self {
        Self { tool, known, given }
    }

    /// Returns the names of arguments that the tool does not have, made safe for a text.
    pub(super) fn ignored(&self) -> Vec<String> {
        let unknown = self.given.keys().filter(|name| !self.known.contains(&name.as_str()));
        let mut names: Vec<String> = unknown.map(|name| shown(name)).collect();
        let more = names.len().saturating_sub(NAMED);
        names.truncate(NAMED);
        if more > 0 {
            names.push(format!("{more} more"));
        }
        names
    }

    /// Returns the remark of a result about ignored arguments, if there are any.
    pub(super) fn remark(&self) -> Option<String> {
        remark(self.tool, &self.ignored(), self.known)
    }

    /// Returns that an argument is missing, which may have been given by another name.
    pub(super) fn missing(&self, name: &str, what: &str) -> String {
        let remark = self.remark().map(|remark| format!("; {remark}")).unwrap_or_default();
        format!("{} needs `{name}`{what}{remark}", self.tool)
    }

    /// Returns a text; `None` if it was left out.
    pub(super) fn text(&self, name: &str) -> Result<Option<String>, String> {
        match self.given.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(self.mismatch(name, "a string", other)),
        }
    }

    /// Returns the name of something; `None` for a text that stands for nothing.
    pub(super) fn name(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.text(name)?.filter(|text| !is_nothing(text)))
    }

    /// Returns the handle of a session; `None` for a text that stands for a fresh one.
    pub(super) fn session(&self) -> Result<Option<String>, String> {
        let handle = self.name("session")?;
        Ok(handle.filter(|text| !is_one_of(text, &NO_SESSION)))
    }

    /// Returns a time; `None` for none, and for zero.
    pub(super) fn seconds(&self, name: &str) -> Result<Option<Duration>, String> {
        let Some((number, given)) = self.number(name)? else { return Ok(None) };
        let time = Duration::try_from_secs_f64(number).ok();
        time.map(Some).ok_or_else(|| self.mismatch(name, "a number of seconds above 0", given))
    }

    /// Returns a count of at most `most`; `None` for none, and for zero.
    pub(super) fn count(&self, name: &str, most: usize) -> Result<Option<usize>, String> {
        let Some((number, given)) = self.number(name)? else { return Ok(None) };
        if number < 1.0 || number.fract() != 0.0 {
            return Err(self.mismatch(name, &format!("an int of 1 to {most}"), given));
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is small")]
        let count = number.min(1e9) as usize;
        Ok(Some(count.min(most)))
    }

    /// Returns a number that is not zero, and the value that it is from.
    fn number(&self, name: &str) -> Result<Option<(f64, &'a Json)>, String> {
        let Some(value) = self.given.get(name) else { return Ok(None) };
        let number = match value {
            Json::Null => return Ok(None),
            Json::String(text) if is_nothing(text) => return Ok(None),
            Json::String(text) => text.trim().trim_end_matches(['s', ' ']).parse().ok(),
            value => value.as_f64(),
        };
        let number = number.filter(|number: &f64| number.is_finite());
        let number = number.ok_or_else(|| self.mismatch(name, "a number", value))?;
        Ok((number != 0.0).then_some((number, value)))
    }

    fn mismatch(&self, name: &str, wanted: &str, found: &Json) -> String {
        let found: String = found.to_string().chars().take(NAME_CHARS).collect();
        format!("`{name}` of {} is {found}, and has to be {wanted}", self.tool)
    }
}

/// Says which arguments were ignored.
pub(super) fn remark(tool: &str, ignored: &[String], known: &[&str]) -> Option<String> {
    (!ignored.is_empty()).then(|| {
        format!("ignored, because {tool} has only `{}`: {}", known.join("`, `"), ignored.join(", "))
    })
}

fn shown(name: &str) -> String {
    let name: String = name.chars().take(NAME_CHARS).collect();
    format!("`{}`", name.escape_debug())
}

fn is_nothing(text: &str) -> bool {
    is_one_of(text, &NOTHING)
}

fn is_one_of(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with<T>(arguments: Json, read: impl FnOnce(Arguments<'_>) -> T) -> T {
        let Json::Object(arguments) = arguments else { panic!("no object") };
        read(Arguments::new("tool", &arguments, &["session", "timeout", "limit"]))
    }

    #[test]
    fn what_clients_send_for_nothing_is_nothing() {
        for session in ["", " ", "null", "None", "undefined", "new", "Default"] {
            let read = with(json!({"session": session}), |given| given.session());
            assert_eq!(read, Ok(None), "{session}");
        }
        assert_eq!(with(json!({"session": null}), |given| given.session()), Ok(None));
        let handle = with(json!({"session": "a1"}), |given| given.session());
        assert_eq!(handle, Ok(Some("a1".to_owned())));
        for zero in [json!(0), json!(0.0), json!(""), json!("null"), json!("0"), json!(null)] {
            let arguments = json!({"timeout": zero, "limit": zero});
            let read =
                with(arguments, |given| (given.seconds("timeout"), given.count("limit", 50)));
            assert_eq!(read, (Ok(None), Ok(None)), "{zero}");
        }
    }

    #[test]
    fn numbers_may_be_texts_and_others_are_refused_by_name() {
        for ten in [json!(10), json!(10.0), json!("10"), json!(" 10 "), json!("10s")] {
            let arguments = json!({"timeout": ten, "limit": ten});
            let read =
                with(arguments, |given| (given.seconds("timeout"), given.count("limit", 50)));
            assert_eq!(read, (Ok(Some(Duration::from_secs(10))), Ok(Some(10))), "{ten}");
        }
        let many = with(json!({"limit": 900}), |given| given.count("limit", 50));
        assert_eq!(many, Ok(Some(50)));
        for wrong in [json!(-1), json!("ten"), json!("inf"), json!("nan"), json!([1]), json!(true)]
        {
            let arguments = json!({"timeout": wrong, "limit": wrong});
            let read =
                with(arguments, |given| (given.seconds("timeout"), given.count("limit", 50)));
            assert!(read.0.unwrap_err().starts_with("`timeout` of tool is "), "{wrong}");
            assert!(read.1.is_err(), "{wrong}");
        }
    }

    #[test]
    fn ignored_arguments_are_named_on_one_line() {
        let said =
            with(json!({"toolCallId": 1, "a\n`b\u{1b}": 2, "limit": 3}), |given| given.remark());
        assert_eq!(
            said.unwrap(),
            "ignored, because tool has only `session`, `timeout`, `limit`: `toolCallId`, \
             `a\\n`b\\u{1b}`"
        );
        assert_eq!(with(json!({"limit": 3}), |given| given.remark()), None);
    }
}
