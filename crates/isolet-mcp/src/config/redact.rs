//! Removes the secrets of a server's configuration from data that leaves the host, in each form in
//! which a server repeats them.

use url::{Url, form_urlencoded};

use isolet::{Value, internals};

/// The replacement of a secret.
const MARK: &str = "[secret]";

/// A shorter value is no secret: it would be found in texts that have nothing to do with it.
const MIN_BYTES: usize = 8;

/// As `MIN_BYTES`, for a variable whose name says that it is secret.
const MIN_NAMED_BYTES: usize = 4;

/// As `MIN_BYTES`, for a parameter of a URL whose name says nothing.
const MIN_PARAMETER_BYTES: usize = 20;

/// Parts of names whose values are secret.
const TELLING: [&str; 8] =
    ["token", "key", "secret", "pass", "auth", "credential", "cookie", "session"];

/// Headers that are in every request, and secret in none.
const HARMLESS: [&str; 5] = ["accept", "accept-language", "content-type", "user-agent", "origin"];

/// The secrets of one server.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
    forms: internals::Redactor,
}

impl Redactor {
    /// Adds the value of the variable or header `name`, unless it is plainly none: short, or the
    /// path of a file, which programs need to see.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        let tells = tells(&name);
        let is_path = value.starts_with('/') || value.starts_with('~');
        if HARMLESS.contains(&name.as_str()) || (is_path && !tells) {
            return;
        }
        let shortest = if tells { MIN_NAMED_BYTES } else { MIN_BYTES };
        // A header is a scheme and its credentials, which a server may repeat alone.
        let credentials = value.split_once(' ').map(|(_, credentials)| credentials.trim());
        for secret in std::iter::once(value.trim()).chain(credentials) {
            self.note(secret, shortest);
        }
    }

    /// Adds the secrets of a URL: a password, and parameters that look like secrets.
    pub(crate) fn add_url(&mut self, url: &str) {
        let Ok(url) = Url::parse(url) else { return };
        for (name, value) in url.query_pairs() {
            let tells = tells(&name.to_ascii_lowercase());
            self.note(&value, if tells { MIN_NAMED_BYTES } else { MIN_PARAMETER_BYTES });
        }
        if let Some(password) = url.password() {
            // A plus sign stands for itself here.
            let password = password.replace('+', "%2B");
            let decoded = form_urlencoded::parse(password.as_bytes()).next();
            self.note(&decoded.unwrap_or_default().0, 1);
        }
    }

    fn note(&mut self, secret: &str, shortest: usize) {
        if secret.len() < shortest.max(1) || self.secrets.iter().any(|known| known == secret) {
            return;
        }
        self.secrets.push(secret.to_owned());
        self.forms.add(secret, MARK);
    }

    /// Returns a text without the secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        self.forms.redact_text(text).unwrap_or_else(|| text.to_owned())
    }

    /// Removes the secrets from a value.
    pub(crate) fn value(&self, value: &mut Value) {
        if self.forms.is_empty() {
            return;
        }
        match value {
            Value::Str(text) => {
                if let Some(clean) = self.forms.redact_text(text) {
                    *text = clean;
                }
            }
            Value::Bytes(bytes) => {
                if let Some(clean) = self.forms.redact(bytes) {
                    *bytes = clean;
                }
            }
            Value::List(items) => items.iter_mut().for_each(|item| self.value(item)),
            Value::Dict(items) => items.iter_mut().for_each(|(key, item)| {
                self.value(key);
                self.value(item);
            }),
            _ => {}
        }
    }
}

fn tells(name: &str) -> bool {
    TELLING.iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

    use super::*;

    #[test]
    fn secrets_leave_every_kind_of_value() {
        let mut redactor = Redactor::default();
        redactor.add("Authorization", "Bearer abcdefgh");
        redactor.add("DB_PASSWORD", "pw12");
        let mut value = Value::dict([
            ("abcdefgh", Value::from("x Bearer abcdefgh y abcdefgh")),
            ("list", Value::List(vec![Value::bytes("-pw12-pw12"), Value::Int(1)])),
        ]);
        redactor.value(&mut value);
        let expected = Value::dict([
            ("[secret]", Value::from("x [secret] y [secret]")),
            ("list", Value::List(vec![Value::bytes("-[secret]-[secret]"), Value::Int(1)])),
        ]);
        assert_eq!(value, expected);
    }

    #[test]
    fn secrets_are_found_in_every_form_in_which_servers_repeat_them() {
        let mut redactor = Redactor::default();
        let secret = "tok/en+\"SECRET\"==9 ü";
        redactor.add("API_KEY", secret);
        for text in [
            "/mcp?k=tok/en+%22SECRET%22==9%20%C3%BC&x=1",
            "/mcp?k=tok%2Fen%2B%22SECRET%22%3d%3d9+%c3%bc&x=1",
            r#"{"k": "tok/en+\"SECRET\"==9 ü"}"#,
            r#"{"k": "tok\/en+\"SECRET\"\u003d=9 \u00fc"}"#,
        ] {
            let clean = redactor.text(text);
            assert!(clean.contains("[secret]") && !clean.contains("SECRET"), "{clean}");
            assert!(clean.starts_with(&text[..4]) && clean.ends_with(&text[text.len() - 1..]));
        }
        for before in ["", "a", "ab", "user:"] {
            for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = alphabet.encode(format!("{before}{secret}"));
                let clean = redactor.text(&format!("Basic {text}=="));
                assert!(clean.contains("[secret]") && clean.len() < 30, "{before}: {clean}");
            }
        }
    }

    #[test]
    fn a_url_has_secrets_in_its_parameters_and_its_password() {
        let mut redactor = Redactor::default();
        redactor.add_url("https://me:p%40ss@x.example/mcp?api_key=k1%2F2&mode=development&page=1");
        for text in ["k1/2", "api_key=k1%2F2", "me:p%40ss", "p@ss"] {
            assert!(redactor.text(text).contains("[secret]"), "{text}");
        }
        assert_eq!(redactor.text("development 1"), "development 1");
    }

    #[test]
    fn what_is_plainly_no_secret_stays() {
        let mut redactor = Redactor::default();
        redactor.add("DEBUG", "1");
        redactor.add("LEVEL", "warning");
        redactor.add("DATA_DIR", "/home/ada/data");
        redactor.add("Accept", "application/json");
        let text = "1 warning in /home/ada/data, application/json 100% \\ a+b";
        assert_eq!(redactor.text(text), text);
    }
}
