//! Reads JSON text as a value, in one pass and time linear in its length: ints of any size, where
//! serde's own end at 64 bits.

use isolet::{BigInt, Value};
use rmcp::model::RequestId;

use crate::json_rpc::Outline;

/// The maximum nesting of arrays and objects. A deeper value could not cross anyway.
const MAX_DEPTH: usize = 128;

/// The most digits of an int, as in CPython. Reading them takes time quadratic in their number.
const MAX_DIGITS: usize = 4300;

/// Parses a JSON text. Each item, name and member of an object takes 32 bytes of memory besides its
/// text, or twice as much.
pub fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.skip_space();
    if reader.at < text.len() { Err(reader.expected("the end")) } else { Ok(value) }
}

/// Returns how many values a JSON text has at most.
pub fn count(text: &[u8]) -> usize {
    let (mut count, mut in_string, mut escaped) = (1usize, false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'[' | b'{' | b',' | b':' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// Returns the `id` of a message that cannot be read, or `None`.
pub fn message_id(outline: Outline) -> Value {
    match outline.id {
        Some(RequestId::Number(number)) => Value::Int(number),
        Some(RequestId::String(text)) => Value::from(&*text),
        None => Value::None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    /// Returns the text from a place on to where the reader is.
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    fn expected(&self, what: &str) -> String {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        let found = if self.at < self.text.len() { "" } else { ", and the text ends" };
        format!("expected {what} at line {line} column {column}{found}")
    }

    fn value(&mut self) -> Result<Value, String> {
        self.skip_space();
        match self.peek() {
            Some(b'"') => self.string().map(Value::Str),
            Some(b'[') => self.nested(Self::list),
            Some(b'{') => self.nested(Self::dict),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let words = [("null", Value::None), ("true", true.into()), ("false", false.into())];
                let found = words.into_iter().find(|(word, _)| rest.starts_with(word));
                let (word, value) = found.ok_or_else(|| self.expected("a value"))?;
                self.at += word.len();
                Ok(value)
            }
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth >= MAX_DEPTH {
            return Err(format!("the JSON is nested deeper than {MAX_DEPTH} levels"));
        }
        self.at += 1;
        self.depth += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    /// Returns `true` if the list or dict ends here, and `false` after the comma before an item.
    fn ends(&mut self, close: u8, is_first: bool) -> Result<bool, String> {
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.at += 1;
                Ok(true)
            }
            _ if is_first => Ok(false),
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                Ok(false)
            }
            _ => Err(self.expected(&format!("`,` or `{}`", char::from(close)))),
        }
    }

    fn list(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        while !self.ends(b']', items.is_empty())? {
            items.push(self.value()?);
        }
        Ok(Value::List(fitted(items)))
    }

    fn dict(&mut self) -> Result<Value, String> {
        let mut items = Vec::new();
        while !self.ends(b'}', items.is_empty())? {
            if self.peek() != Some(b'"') {
                return Err(self.expected("a name in `\"`"));
            }
            let name = self.string()?;
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.expected("`:`"));
            }
            self.at += 1;
            items.push((Value::Str(name), self.value()?));
        }
        Ok(Value::Dict(fitted(items)))
    }

    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        let mut has_escapes = false;
        loop {
            self.at += 1;
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    has_escapes = true;
                    self.at += 1;
                }
                Some(0..0x20) => return Err(self.expected("an escaped control character")),
                Some(_) => {}
                None => return Err(self.expected("`\"`")),
            }
        }
        self.at += 1;
        if has_escapes {
            return serde_json::from_str(self.since(start)).map_err(|_| {
                self.at = start;
                self.expected("a string whose escapes are valid")
            });
        }
        let text = self.since(start);
        Ok(text.get(1..text.len() - 1).unwrap_or_default().to_owned())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        while matches!(self.peek(), Some(b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
            self.at += 1;
        }
        let text = self.since(start);
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return serde_json::from_str(text).map(Value::Float).map_err(|_| {
                self.at = start;
                self.expected("a number of JSON")
            });
        }
        if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
            self.at = start;
            return Err(self.expected("a number of JSON"));
        }
        if digits.len() > MAX_DIGITS {
            let count = digits.len();
            return Err(format!("an int has {count} digits: limit {MAX_DIGITS}"));
        }
        if let Ok(number) = text.parse::<i64>() {
            return Ok(number.into());
        }
        text.parse::<BigInt>().map(Value::from).map_err(|error| error.to_string())
    }
}

/// Gives back the spare capacity of a short list: of many short lists, it would be most of the
/// memory.
fn fitted<T>(mut items: Vec<T>) -> Vec<T> {
    if items.len() < items.capacity() / 2 {
        items.shrink_to_fit();
    }
    items
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_keep_their_size_and_their_kind() {
        let text =
            r#" [1, -9223372036854775809, 1e3, 0.5, -0, {"a": [null, true, "\u00e9"]}, []] "#;
        let expected =
            "[1, -9223372036854775809, 1000.0, 0.5, 0, {'a': [None, True, '\u{e9}']}, []]";
        assert_eq!(parse(text).unwrap().to_string(), expected);
        assert!(parse(&"9".repeat(MAX_DIGITS)).is_ok());
        let error = parse(&format!("-{}", "9".repeat(MAX_DIGITS + 1))).unwrap_err();
        assert_eq!(error, "an int has 4301 digits: limit 4300");
    }

    #[test]
    fn depth_is_bounded_and_brackets_in_strings_do_not_count() {
        assert!(parse(&"[".repeat(100_000)).unwrap_err().contains("128 levels"));
        let text = format!("\"{}\\\"\"", "[".repeat(200));
        assert_eq!(parse(&text).unwrap(), Value::from(format!("{}\"", "[".repeat(200))));
    }

    #[test]
    fn no_text_has_more_values_than_are_counted_and_a_long_string_is_one() {
        for (text, values) in [
            ("[0, 0]", 3),
            (r#"{"a": [], "b": {}}"#, 5),
            (r#"{"": {"": {"": 0}}}"#, 7),
            (r#""[,,,,:{{{\",[""#, 1),
        ] {
            let counted = count(text.as_bytes());
            assert!((values..=2 * values).contains(&counted), "{text}: {counted}");
        }
    }

    #[test]
    fn a_float_is_the_nearest_one_to_its_text() {
        for (text, float) in [
            ("140E+242", 1.4e244),
            ("0.1", 0.1),
            ("-4.016089761478281e246", -4.016_089_761_478_281e246),
        ] {
            assert_eq!(parse(text), Ok(Value::Float(float)), "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for text in [
            "",
            "[1",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{a: 1}",
            "{\"a\": 1,}",
            "01",
            "-",
            "1.",
            ".5",
            "+1",
            "1e",
            "0x1",
            "nul",
            "tru",
            "\"",
            "\"\\",
            "\"\\x\"",
            "\"\n\"",
            "[] []",
            "NaN",
            "'a'",
            "1-2",
            "\"\\ud800\"",
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("at line 1 column ") || text.contains('\n'), "{text}: {error}");
        }
        let error = parse("{\n  \"a\" 1}").unwrap_err();
        assert_eq!(error, "expected `:` at line 2 column 7");
    }

    proptest! {
        #[test]
        fn any_text_is_read_as_serde_reads_it(
            text in r#"[\[\]{}:,"\\ 0-9eE.+a-f\n-]{0,24}"#,
        ) {
            let serdes = serde_json::from_str::<Value>(&text);
            let ours = parse(&text);
            prop_assert_eq!(ours.is_ok(), serdes.is_ok(), "{:?}", text);
            if let (Ok(ours), Ok(serdes)) = (ours, serdes)
                && !text.contains('9')
            {
                prop_assert_eq!(ours.to_string(), serdes.to_string());
            }
        }
    }
}
