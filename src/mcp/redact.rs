//! Removes the secrets of a server's configuration from what leaves the host.

use crate::data::value::Value;

/// What stands in the place of a secret.
const MARK: &str = "[secret]";

/// A shorter value is no secret: it would be found in texts that have nothing to do with it.
const MIN_BYTES: usize = 8;

/// As `MIN_BYTES`, for a variable whose name says that it is secret.
const MIN_NAMED_BYTES: usize = 4;

/// Parts of names whose values are secret.
const TELLING: [&str; 8] =
    ["token", "key", "secret", "pass", "auth", "credential", "cookie", "session"];

/// Headers that are in every request, and secret in none.
const HARMLESS: [&str; 5] = ["accept", "accept-language", "content-type", "user-agent", "origin"];

/// The secrets of one server, the longest first.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    secrets: Vec<String>,
}

impl Redactor {
    /// Adds the value of the variable or header `name`, unless it is plainly none: short, or the
    /// path of a file, which programs need to see.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let name = name.to_ascii_lowercase();
        let tells = TELLING.iter().any(|part| name.contains(part));
        let is_path = value.starts_with('/') || value.starts_with('~');
        if HARMLESS.contains(&name.as_str()) || (is_path && !tells) {
            return;
        }
        let shortest = if tells { MIN_NAMED_BYTES } else { MIN_BYTES };
        // A header is a scheme and its credentials, which a server may repeat alone.
        let credentials = value.split_once(' ').map(|(_, credentials)| credentials.trim());
        for secret in std::iter::once(value.trim()).chain(credentials) {
            if secret.len() >= shortest && !self.secrets.iter().any(|known| known == secret) {
                self.secrets.push(secret.to_owned());
            }
        }
        self.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Returns a text without the secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), MARK);
            }
        }
        clean
    }

    /// Removes the secrets from a value.
    pub(crate) fn value(&self, value: &mut Value) {
        if self.secrets.is_empty() {
            return;
        }
        match value {
            Value::Str(text) if self.is_in(text.as_bytes()) => *text = self.text(text),
            Value::Bytes(bytes) if self.is_in(bytes) => {
                for secret in &self.secrets {
                    replace(bytes, secret.as_bytes());
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

    fn is_in(&self, bytes: &[u8]) -> bool {
        self.secrets.iter().any(|secret| find(bytes, secret.as_bytes()).is_some())
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut at = 0;
    while let Some(next) = bytes.get(at..)?.iter().position(|byte| byte == first) {
        if bytes[at + next..].starts_with(wanted) {
            return Some(at + next);
        }
        at += next + 1;
    }
    None
}

fn replace(bytes: &mut Vec<u8>, secret: &[u8]) {
    let mut clean = Vec::with_capacity(bytes.len());
    let mut rest = bytes.as_slice();
    while let Some(at) = find(rest, secret) {
        clean.extend_from_slice(&rest[..at]);
        clean.extend_from_slice(MARK.as_bytes());
        rest = &rest[at + secret.len()..];
    }
    clean.extend_from_slice(rest);
    *bytes = clean;
}

#[cfg(test)]
mod tests {
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
    fn what_is_plainly_no_secret_stays() {
        let mut redactor = Redactor::default();
        redactor.add("DEBUG", "1");
        redactor.add("LEVEL", "warning");
        redactor.add("DATA_DIR", "/home/ada/data");
        redactor.add("Accept", "application/json");
        let text = "1 warning in /home/ada/data, application/json";
        assert_eq!(redactor.text(text), text);
    }
}
