//! Replaces secrets in bytes, in each form in which a server repeats them: as they are,
//! percent-encoded, escaped for JSON or HTML, in hexadecimal, in base64.

mod seen;
mod stream;

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::{self, Finder};

use self::seen::Seen;
pub(crate) use self::stream::RedactedStream;

/// A shorter form in hexadecimal or base64 is not looked for: it would be found in texts that have
/// nothing to do with the secret.
const MIN_LETTERS: usize = 8;

/// Secrets to find, and what takes their places.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The longest first.
    forms: Vec<Form>,
}

/// Shows no secret.
impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").finish_non_exhaustive()
    }
}

/// A form of a secret.
#[derive(Clone)]
struct Form {
    finder: Finder<'static>,
    mark: Arc<[u8]>,
}

impl Form {
    fn bytes(&self) -> &[u8] {
        self.finder.needle()
    }
}

/// Where a form is.
#[derive(Clone, Copy)]
struct Place<'a> {
    start: usize,
    end: usize,
    mark: &'a [u8],
}

impl Redactor {
    /// Has `mark` take the place of a secret. An empty secret, or one that is known, changes
    /// nothing.
    pub fn add(&mut self, secret: &str, mark: &str) {
        let mark: Arc<[u8]> = mark.as_bytes().into();
        let bytes = secret.as_bytes();
        self.add_form(bytes, &mark);
        let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let digits = digits.map(|digit| char::from_digit(digit.into(), 16).unwrap_or_default());
        let hexadecimal: String = digits.collect();
        if hexadecimal.len() >= MIN_LETTERS {
            self.add_form(hexadecimal.as_bytes(), &mark);
            self.add_form(hexadecimal.to_ascii_uppercase().as_bytes(), &mark);
        }
        for quote in ["&#39;", "&#x27;"] {
            let html = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let html = html.replace('"', "&quot;").replace('\'', quote);
            self.add_form(html.as_bytes(), &mark);
        }
        // In base64, the bytes before a secret shift it by none, one or two bytes.
        for shift in 0..3 {
            let shifted = [&vec![0; shift][..], bytes].concat();
            for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let encoded = alphabet.encode(&shifted).into_bytes();
                // The letters that depend on nothing but the secret.
                let own = (shift * 8).div_ceil(6)..shifted.len() * 8 / 6;
                let form = encoded.get(own).unwrap_or_default();
                if form.len() >= MIN_LETTERS {
                    self.add_form(form, &mark);
                }
            }
        }
        self.forms.sort_by_key(|form| std::cmp::Reverse(form.bytes().len()));
    }

    fn add_form(&mut self, bytes: &[u8], mark: &Arc<[u8]>) {
        if !bytes.is_empty() && !self.forms.iter().any(|known| known.bytes() == bytes) {
            let finder = Finder::new(bytes).into_owned();
            self.forms.push(Form { finder, mark: Arc::clone(mark) });
        }
    }

    /// Returns `true` if there is no secret.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.forms.is_empty()
    }

    /// Returns bytes with each secret replaced; `None` if they have none.
    #[must_use]
    pub fn redact(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let places = self.places(bytes, &Seen::views(bytes));
        (!places.is_empty()).then(|| replaced(bytes, &places))
    }

    /// Returns a text with each secret replaced; `None` if it has none.
    #[must_use]
    pub fn redact_text(&self, text: &str) -> Option<String> {
        let clean = self.redact(text.as_bytes())?;
        Some(String::from_utf8_lossy(&clean).into_owned())
    }

    /// Returns `true` if a text has a secret when case is ignored.
    pub(crate) fn is_in_any_case(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let is_in = |form: &Form| {
            let form = form.bytes().to_ascii_lowercase();
            memmem::find(text.as_bytes(), &form).is_some()
        };
        self.forms.iter().any(is_in)
    }

    /// Returns where secrets are, in order, none within another.
    fn places(&self, bytes: &[u8], views: &[Seen]) -> Vec<Place<'_>> {
        let mut places = Vec::new();
        for form in &self.forms {
            let (length, mark) = (form.bytes().len(), &*form.mark);
            let found = form.finder.find_iter(bytes);
            places.extend(found.map(|start| Place { start, end: start + length, mark }));
            for view in views {
                let found = form.finder.find_iter(&view.bytes);
                places.extend(found.map(|start| {
                    let (start, end) = (view.start(start), view.start(start + length));
                    Place { start, end, mark }
                }));
            }
        }
        places.sort_unstable_by_key(|place| (place.start, std::cmp::Reverse(place.end)));
        let mut at = 0;
        places.retain(|place| {
            let is_within = place.end <= at;
            at = at.max(place.end);
            !is_within
        });
        places
    }
}

/// Returns bytes with the places replaced. Of two that overlap, the second is left out.
fn replaced(bytes: &[u8], places: &[Place<'_>]) -> Vec<u8> {
    let (mut clean, mut at) = (Vec::with_capacity(bytes.len()), 0);
    for place in places {
        if place.start >= at {
            clean.extend_from_slice(bytes.get(at..place.start).unwrap_or_default());
            clean.extend_from_slice(place.mark);
        }
        at = at.max(place.end);
    }
    clean.extend_from_slice(bytes.get(at..).unwrap_or_default());
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor(secret: &str) -> Redactor {
        let mut redactor = Redactor::default();
        redactor.add(secret, "[secret]");
        redactor
    }

    /// Asserts that a text loses its secret, whole and in pieces of every size.
    fn assert_clean(redactor: &Redactor, text: &str, expected: &str) {
        assert_eq!(redactor.redact_text(text).as_deref(), Some(expected), "{text}");
        for size in 1..=text.len() {
            let mut stream = RedactedStream::new(Arc::new(redactor.clone()));
            let mut clean = Vec::new();
            for piece in text.as_bytes().chunks(size) {
                clean.extend(stream.push(piece));
            }
            clean.extend(stream.finish());
            assert_eq!(String::from_utf8(clean).unwrap(), expected, "{text} by {size}");
        }
    }

    #[test]
    fn secrets_are_found_in_every_form_in_which_servers_repeat_them() {
        let secret = "tok/en+\"SECRET\"==9 ü";
        let redactor = redactor(secret);
        for (before, form, after) in [
            ("a", secret, "b"),
            ("/mcp?k=", "tok/en+%22SECRET%22==9%20%C3%BC", "&x=1"),
            ("/mcp?k=", "tok%2Fen%2B%22SECRET%22%3d%3d9+%c3%bc", "&x=1"),
            ("{\"k\": \"", r#"tok/en+\"SECRET\"==9 ü"#, "\"}"),
            ("{\"k\": \"", r#"tok\/en+\"SECRET\"\u003d=9 \u00fc"#, "\"}\n\n"),
            ("<p>", "tok/en+&quot;SECRET&quot;==9 ü", "</p>"),
            ("", "746f6b2f656e2b22534543524554223d3d3920c3bc", "-"),
            ("", "746F6B2F656E2B22534543524554223D3D3920C3BC", "-"),
        ] {
            let text = format!("{before}{form}{after}");
            assert_clean(&redactor, &text, &format!("{before}[secret]{after}"));
        }
        for before in ["", "a", "ab", "user:"] {
            for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
                let text = alphabet.encode(format!("{before}{secret}"));
                let clean = redactor.redact_text(&format!("Basic {text}==")).unwrap();
                assert!(clean.contains("[secret]") && clean.len() < 30, "{before}: {clean}");
            }
        }
    }

    #[test]
    fn several_secrets_are_replaced_by_their_own_marks_the_longest_first() {
        let mut redactor = Redactor::default();
        redactor.add("abcdefgh", "[a]");
        redactor.add("abcdefghij", "[b]");
        assert_clean(&redactor, "abcdefghij abcdefgh, abcdefghabcdefghij", "[b] [a], [a][b]");
    }

    #[test]
    fn what_is_no_secret_is_not_changed() {
        let redactor = redactor("sk-abcdefgh");
        for text in ["", "sk-abcdefg", "100% of a+b \\u12 \\", "%7", "c2steJj"] {
            assert_eq!(redactor.redact_text(text), None);
            let mut stream = RedactedStream::new(Arc::new(redactor.clone()));
            let mut same = stream.push(text.as_bytes()).to_vec();
            same.extend(stream.finish());
            assert_eq!(same, text.as_bytes());
        }
    }

    #[test]
    fn only_what_may_begin_a_secret_is_held_back() {
        let mut stream = RedactedStream::new(Arc::new(redactor("sk-abcdefgh")));
        let mut push =
            |text: &str| String::from_utf8(stream.push(text.as_bytes()).to_vec()).unwrap();
        assert_eq!(push("data: {\"a\": \"\\\"\"}\n\n"), "data: {\"a\": \"\\\"\"}\n\n");
        assert_eq!(push("x sk-a"), "x ");
        assert_eq!(push("xx %73"), "sk-axx ");
        assert_eq!(push("k-abcdef\\u00"), "%73k-abcdef");
        assert_eq!(push("67h"), "\\u0067h");
        assert_eq!(push("sk-abcdefgh"), "[secret]");
    }
}
