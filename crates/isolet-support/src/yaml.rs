//! A document of YAML with the place of each value, to edit its text.

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span, StructureStyle};
use serde_json::{Map, Number, Value};

/// The deepest nesting of a document.
const MAX_DEPTH: usize = 128;

/// The longest text, in bytes. Its values take some fifty times that.
const MAX_BYTES: usize = 4 << 20;

/// A value and its place in the text, in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Where it is. A value that is left out is at no place, and a collection without brackets
    /// ends with its last value.
    pub place: Range<usize>,
    /// What it is.
    pub kind: Kind,
}

/// A value of YAML.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A text, a number, a boolean or null.
    Scalar(Value),
    /// A list.
    List(Vec<Node>),
    /// A map.
    Map(Mapping),
}

/// A map of YAML.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    /// Whether it is written with brackets.
    pub is_flow: bool,
    /// Its entries, in the order of the text.
    pub entries: Vec<Entry>,
}

/// An entry of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The key, each once.
    pub key: String,
    /// Where the key is, in bytes.
    pub place: Range<usize>,
    /// The value.
    pub value: Node,
}

/// Why a text cannot be read. It shows nothing of the text, which may have secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    line: usize,
    reason: &'static str,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, look at line {}", self.reason, self.line)
    }
}

impl std::error::Error for Unreadable {}

impl Node {
    /// Reads a text; `None` if there is nothing but comments in it.
    ///
    /// # Errors
    ///
    /// [`Unreadable`] if it is no YAML, or has more than 4 MiB, several documents, an alias, a tag,
    /// a key twice, a key that is no text, or values in more than 128 others.
    pub fn parse(text: &str) -> Result<Option<Self>, Unreadable> {
        let mut reader = Reader { parser: Parser::new_from_str(text), line: 1 };
        if text.len() > MAX_BYTES {
            return Err(reader.wrong("it has more than 4 MiB"));
        }
        let mut root = None;
        while let Some((event, span)) = reader.next()? {
            match event {
                Event::StreamStart
                | Event::StreamEnd
                | Event::DocumentStart(..)
                | Event::DocumentEnd => {}
                _ if root.is_some() => return Err(reader.wrong("it has several documents")),
                event => root = Some(reader.node(event, &span, 0)?),
            }
        }
        // A document that is empty is a null at no place.
        Ok(root.filter(|root| !(root.place.is_empty() && root.kind == Kind::Scalar(Value::Null))))
    }

    /// Returns the value without its places.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::List(items) => items.iter().map(Self::value).collect(),
            Kind::Map(map) => Value::Object(map.value()),
        }
    }
}

impl Mapping {
    /// Returns the entry of a key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn value(&self) -> Map<String, Value> {
        self.entries.iter().map(|entry| (entry.key.clone(), entry.value.value())).collect()
    }
}

struct Reader<'a> {
    parser: Parser<'a, granit_parser::StrInput<'a>>,
    /// Where the last event was.
    line: usize,
}

impl<'a> Reader<'a> {
    fn next(&mut self) -> Result<Option<(Event<'a>, Span)>, Unreadable> {
        loop {
            match self.parser.next() {
                None => return Ok(None),
                Some(Ok((Event::Comment(..), _))) => {}
                Some(Ok((event, span))) => {
                    self.line = span.start.line();
                    return Ok(Some((event, span)));
                }
                Some(Err(error)) => {
                    self.line = error.marker().line();
                    return Err(self.wrong("it is no YAML"));
                }
            }
        }
    }

    fn wrong(&self, reason: &'static str) -> Unreadable {
        Unreadable { line: self.line, reason }
    }

    fn place(&self, span: &Span) -> Result<Range<usize>, Unreadable> {
        span.byte_range().ok_or_else(|| self.wrong("it has a value at no place"))
    }

    fn node(&mut self, event: Event<'a>, span: &Span, depth: usize) -> Result<Node, Unreadable> {
        if depth > MAX_DEPTH {
            return Err(self.wrong("it has more than 128 values in each other"));
        }
        match event {
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, _, Some(_))
            | Event::MappingStart(_, _, Some(_)) => {
                Err(self.wrong("it has a tag, which isolet does not read"))
            }
            Event::Scalar(text, style, _, None) => {
                let place = self.place(span)?;
                let is_plain = style == ScalarStyle::Plain;
                let value = if is_plain { plain(&text) } else { Value::from(text.as_ref()) };
                Ok(Node { place, kind: Kind::Scalar(value) })
            }
            Event::SequenceStart(style, _, None) => {
                let (mut items, mut place) = (Vec::new(), self.place(span)?);
                loop {
                    let (event, span) = self.inner()?;
                    if event == Event::SequenceEnd {
                        let place = self.whole(place, style, &span)?;
                        return Ok(Node { place, kind: Kind::List(items) });
                    }
                    let item = self.node(event, &span, depth + 1)?;
                    place.end = place.end.max(item.place.end);
                    items.push(item);
                }
            }
            Event::MappingStart(style, _, None) => {
                let (mut entries, mut place) = (Vec::<Entry>::new(), self.place(span)?);
                let mut keys = HashSet::new();
                loop {
                    let (event, span) = self.inner()?;
                    if event == Event::MappingEnd {
                        let place = self.whole(place, style, &span)?;
                        let is_flow = style == StructureStyle::Flow;
                        return Ok(Node { place, kind: Kind::Map(Mapping { is_flow, entries }) });
                    }
                    let Event::Scalar(key, _, _, None) = event else {
                        return Err(self.wrong("it has a key that is no text"));
                    };
                    let (key, of_key) = (key.into_owned(), self.place(&span)?);
                    if !keys.insert(key.clone()) {
                        return Err(self.wrong("it has a key twice"));
                    }
                    let (event, span) = self.inner()?;
                    let value = self.node(event, &span, depth + 1)?;
                    // The place of a value that is left out may be that of the next token.
                    let is_left_out = value.place.is_empty();
                    let end = if is_left_out { of_key.end } else { value.place.end };
                    place.end = place.end.max(end);
                    entries.push(Entry { key, place: of_key, value });
                }
            }
            Event::Alias(_) | Event::UnresolvedAlias(_) => {
                Err(self.wrong("it has an alias, which isolet does not read"))
            }
            _ => Err(self.wrong("it is no YAML")),
        }
    }

    fn inner(&mut self) -> Result<(Event<'a>, Span), Unreadable> {
        self.next()?.ok_or_else(|| self.wrong("it ends too soon"))
    }

    /// Returns the place of a collection, of which that to the end of the last value is known.
    fn whole(
        &self,
        known: Range<usize>,
        style: StructureStyle,
        end: &Span,
    ) -> Result<Range<usize>, Unreadable> {
        // Without brackets, the event of the end is where the next token is.
        let end = if style == StructureStyle::Flow { self.place(end)?.end } else { known.end };
        Ok(known.start..end)
    }
}

/// Returns the value of a text without quotes, as YAML's core schema has it.
fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        let text = text.strip_prefix('+').unwrap_or(text);
        if let Ok(whole) = text.parse::<i64>() {
            return whole.into();
        }
        if let Ok(whole) = text.parse::<u64>() {
            return whole.into();
        }
    }
    let radix = |prefix: &str, radix: u32| {
        text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok())
    };
    if let Some(whole) = radix("0x", 16).or_else(|| radix("0o", 8)) {
        return whole.into();
    }
    let is_number = unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.')
        && unsigned.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
    let number = text.parse::<f64>().ok().filter(|_| is_number).and_then(Number::from_f64);
    number.map_or_else(|| Value::from(text), Value::Number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn value(text: &str) -> Result<Value, String> {
        let root = Node::parse(text).map_err(|wrong| wrong.to_string())?;
        Ok(root.map_or(Value::Null, |root| root.value()))
    }

    #[test]
    fn values_are_those_of_the_core_schema() {
        let text = "a: 1\nb: -2.5\nc: yes\nd: 'true'\ne: true\nf:\ng: ~\nh: [0x10, +3, 1e3, .5]\n\
                    i: {x: \"y\\n\", 'z': 1.2.3}\nj: |\n  t # no\n\n  u\nk: - 1\n";
        assert!(value(text).is_err());
        let text = text.replace("k: - 1\n", "k: 18446744073709551615\nl: .inf\nm: 1-2\n");
        assert_eq!(
            value(&text),
            Ok(json!({
                "a": 1, "b": -2.5, "c": "yes", "d": "true", "e": true, "f": null, "g": null,
                "h": [16, 3, 1000.0, 0.5], "i": {"x": "y\n", "z": "1.2.3"}, "j": "t # no\n\nu\n",
                "k": 18_446_744_073_709_551_615_u64, "l": ".inf", "m": "1-2"
            }))
        );
        for empty in ["", "\n", "# only\n", "---\n", "--- # c\n...\n"] {
            assert_eq!(Node::parse(empty), Ok(None), "{empty:?}");
        }
    }

    #[test]
    fn places_are_those_of_the_text() {
        let text = "# é\na:\n  b: ünï # c\n  d: {e: [1, 2]}\nf: \"g\"\n";
        let root = Node::parse(text).unwrap().unwrap();
        let Kind::Map(map) = &root.kind else { panic!("{root:?}") };
        assert!(!map.is_flow);
        let a = map.get("a").unwrap();
        assert_eq!(&text[a.place.clone()], "a");
        assert!(text[..a.value.place.end].ends_with("[1, 2]}"));
        let Kind::Map(inner) = &a.value.kind else { panic!("{a:?}") };
        assert_eq!(&text[inner.get("b").unwrap().value.place.clone()], "ünï");
        let d = inner.get("d").unwrap();
        assert_eq!(&text[d.value.place.clone()], "{e: [1, 2]}");
        assert_eq!(&text[map.get("f").unwrap().value.place.clone()], "\"g\"");
    }

    #[test]
    fn what_is_not_read_is_named_with_its_line_and_no_secret() {
        for (text, said) in [
            ("a: 1\nb: [secret\n", "it is no YAML, look at line"),
            (
                "a: &x secret\nb: *x\n",
                "it has an alias, which isolet does not read, look at line 2",
            ),
            ("a: !!str 1\n", "it has a tag, which isolet does not read, look at line 1"),
            ("a: 1\nb: 2\na: 3\n", "it has a key twice, look at line 3"),
            ("? [a]\n: 1\n", "it has a key that is no text, look at line 1"),
            ("a: 1\n---\nb: 2\n", "it has several documents, look at line 3"),
        ] {
            let error = value(text).unwrap_err();
            assert!(error.starts_with(said) && !error.contains("secret"), "{text}: {error}");
        }
        assert!(value(&"[".repeat(100_000)).is_err());
        assert!(value(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_ok());
        assert!(value(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_err());
    }

    #[test]
    fn what_never_ends_is_no_panic() {
        let text = "a: \"ü\" # c\nb:\n  - {c: [1, 'd']}\n  - |\n    e\n? f\n: g\n";
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            for part in [&text[..end], &text[end..]] {
                let _ = value(part);
            }
        }
    }
}
