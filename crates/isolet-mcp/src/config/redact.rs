//! Removes the secrets of a server's configuration from data that leaves the host, in each form in
//! which a server repeats them: as they are, percent-encoded, escaped for JSON, in base64.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use url::Url;

use isolet::Value;

/// The replacement of a secret.
const MARK: &[u8] = b"[secret]";

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
    /// The patterns to find: the secrets and their forms in base64, the longest first.
    forms: Vec<Vec<u8>>,
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
            self.note(&String::from_utf8_lossy(&percent(password.as_bytes(), false).bytes), 1);
        }
    }

    fn note(&mut self, secret: &str, shortest: usize) {
        if secret.len() < shortest.max(1) || self.secrets.iter().any(|known| known == secret) {
            return;
        }
        self.secrets.push(secret.to_owned());
        self.forms.push(secret.as_bytes().to_vec());
        // In base64, the bytes before a secret shift it by none, one or two bytes.
        for shift in 0..3 {
            let shifted = [&vec![0; shift][..], secret.as_bytes()].concat();
            for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let encoded = alphabet.encode(&shifted).into_bytes();
                // The letters that depend on nothing but the secret.
                let form = &encoded[(shift * 8).div_ceil(6)..shifted.len() * 8 / 6];
                if form.len() >= MIN_BYTES && !self.forms.iter().any(|known| known == form) {
                    self.forms.push(form.to_vec());
                }
            }
        }
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    }

    /// Returns a text without the secrets.
    pub(crate) fn text(&self, text: &str) -> String {
        match self.without(text.as_bytes()) {
            Some(clean) => String::from_utf8_lossy(&clean).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Removes the secrets from a value.
    pub(crate) fn value(&self, value: &mut Value) {
        if self.forms.is_empty() {
            return;
        }
        match value {
            Value::Str(text) => {
                if let Some(clean) = self.without(text.as_bytes()) {
                    *text = String::from_utf8_lossy(&clean).into_owned();
                }
            }
            Value::Bytes(bytes) => {
                if let Some(clean) = self.without(bytes) {
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

    /// Returns bytes without the secrets; `None` if they have none.
    fn without(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let mut places = Vec::new();
        self.find(bytes, |start, end| places.push((start, end)));
        let mut look = |seen: Seen| {
            self.find(&seen.bytes, |start, end| {
                places.push((seen.starts[start], seen.starts[end]));
            });
        };
        if bytes.contains(&b'%') {
            look(percent(bytes, false));
        }
        if bytes.contains(&b'+') {
            look(percent(bytes, true));
        }
        if bytes.contains(&b'\\') {
            look(unescaped(bytes));
        }
        if places.is_empty() {
            return None;
        }
        places.sort_unstable();
        let (mut clean, mut at) = (Vec::with_capacity(bytes.len()), 0);
        for (start, end) in places {
            if start >= at {
                clean.extend_from_slice(&bytes[at..start]);
                clean.extend_from_slice(MARK);
            }
            at = at.max(end);
        }
        clean.extend_from_slice(&bytes[at..]);
        Some(clean)
    }

    /// Tells where a form of a secret is.
    fn find(&self, bytes: &[u8], mut found: impl FnMut(usize, usize)) {
        for form in &self.forms {
            let mut at = 0;
            while let Some(next) = find(&bytes[at..], form) {
                found(at + next, at + next + form.len());
                at += next + form.len();
            }
        }
    }
}

fn tells(name: &str) -> bool {
    TELLING.iter().any(|part| name.contains(part))
}

/// Bytes as a decoder sees them, with the place where each begins, and where the last one ends.
struct Seen {
    bytes: Vec<u8>,
    starts: Vec<usize>,
}

impl Seen {
    fn new(length: usize) -> Self {
        Self { bytes: Vec::with_capacity(length), starts: Vec::with_capacity(length + 1) }
    }

    fn push(&mut self, bytes: &[u8], start: usize) {
        self.bytes.extend_from_slice(bytes);
        self.starts.extend(bytes.iter().map(|_| start));
    }

    fn ended(mut self, end: usize) -> Self {
        self.starts.push(end);
        self
    }
}

/// Decodes percent-encoded bytes; `+` is a space in forms.
fn percent(bytes: &[u8], is_form: bool) -> Seen {
    let mut seen = Seen::new(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let code = if *byte == b'%' { hex(bytes.get(at + 1..at + 3)) } else { None };
        if let Some(code) = code.and_then(|code| u8::try_from(code).ok()) {
            seen.push(&[code], at);
            at += 3;
        } else {
            seen.push(&[if is_form && *byte == b'+' { b' ' } else { *byte }], at);
            at += 1;
        }
    }
    seen.ended(bytes.len())
}

/// Decodes the escapes of strings of JSON.
fn unescaped(bytes: &[u8]) -> Seen {
    let mut seen = Seen::new(bytes.len());
    let unit = |at: usize| hex(bytes.get(at..)?.strip_prefix(b"\\u")?.get(..4));
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        if let Some(first) = unit(at) {
            let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second));
            let (code, length) = match second {
                Some(second) if (0xd800..0xdc00).contains(&first) => {
                    (0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), 12)
                }
                _ => (first, 6),
            };
            let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
            seen.push(letter.encode_utf8(&mut [0; 4]).as_bytes(), at);
            at += length;
            continue;
        }
        let plain = match (byte, bytes.get(at + 1)) {
            (b'\\', Some(next @ (b'"' | b'\\' | b'/'))) => Some(*next),
            (b'\\', Some(b'n')) => Some(b'\n'),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            _ => None,
        };
        seen.push(&[plain.unwrap_or(*byte)], at);
        at += if plain.is_some() { 2 } else { 1 };
    }
    seen.ended(bytes.len())
}

fn hex(digits: Option<&[u8]>) -> Option<u32> {
    let digit = |value: u32, byte: &u8| Some(value << 4 | char::from(*byte).to_digit(16)?);
    digits?.iter().try_fold(0, digit)
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
