//! Places in WebAssembly code, found by what is there.
//!
//! A signature is bytes in hexadecimal and numbers, which have any length in WebAssembly: `*` is
//! any number, and a name one that is the same wherever the name stands. Functions that the module
//! imports are known by their names. A part in parentheses is what changes.

use std::collections::HashMap;
use std::ops::Range;
use std::str::FromStr;

use super::wasm::{Module, number, put_number};

/// Numbers with names, of one module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    named: HashMap<String, u32>,
}

/// What is to be in a place.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) place: Range<usize>,
    pub(crate) bytes: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Signature {
    tokens: Vec<Token>,
    /// What it begins with.
    start: Vec<u8>,
    /// The tokens that are replaced.
    span: Option<Range<usize>>,
}

/// What comes for a part of a signature.
#[derive(Debug)]
pub(crate) struct Written(Vec<Token>);

#[derive(Debug)]
enum Token {
    Byte(u8),
    Number(Option<String>),
}

impl Numbers {
    /// Knows the functions that a module imports.
    pub(crate) fn of(module: &Module<'_>) -> Self {
        let mut numbers = Self::default();
        for (function, name) in (0..).zip(module.imports()) {
            numbers.named.entry(name.clone()).or_insert(function);
        }
        numbers
    }

    pub(crate) fn insert(&mut self, name: &str, number: u32) {
        self.named.insert(name.to_owned(), number);
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_name = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        match text {
            "*" => Ok(Self::Number(None)),
            _ if text.len() > 2 && is_name(text) => Ok(Self::Number(Some(text.to_owned()))),
            _ => match u8::from_str_radix(text, 16) {
                Ok(byte) if text.len() == 2 => Ok(Self::Byte(byte)),
                _ => Err(format!("`{text}` is no part of a signature")),
            },
        }
    }
}

impl FromStr for Written {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.split_whitespace().map(Token::from_str).collect::<Result<_, _>>()?))
    }
}

impl Written {
    /// Returns the bytes, if all names have numbers.
    pub(crate) fn bytes(&self, numbers: &Numbers) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        for token in &self.0 {
            match token {
                Token::Byte(byte) => bytes.push(*byte),
                Token::Number(name) => {
                    put_number(*numbers.named.get(name.as_ref()?)?, &mut bytes);
                }
            }
        }
        Some(bytes)
    }
}

impl FromStr for Signature {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut tokens, mut begin, mut end) = (Vec::new(), None, None);
        for word in text.split_whitespace() {
            match word {
                "(" => begin = Some(tokens.len()),
                ")" => end = Some(tokens.len()),
                _ => tokens.push(word.parse()?),
            }
        }
        let span = match (begin, end) {
            (None, None) => None,
            (Some(begin), Some(end)) if begin < end => Some(begin..end),
            _ => return Err(format!("`{text}` has parentheses without a pair")),
        };
        let bytes = tokens.iter().map_while(|token| match token {
            Token::Byte(byte) => Some(*byte),
            Token::Number(_) => None,
        });
        let start: Vec<u8> = bytes.collect();
        if start.is_empty() {
            return Err(format!("`{text}` does not begin with a byte"));
        }
        Ok(Self { tokens, start, span })
    }
}

impl Signature {
    #[cfg(test)]
    pub(crate) fn has_span(&self) -> bool {
        self.span.is_some()
    }

    /// Returns the only place with this signature, and adds the numbers that are there. It is the
    /// part that changes, if there is one.
    pub(crate) fn find(&self, bytes: &[u8], numbers: &mut Numbers) -> Option<Range<usize>> {
        let start = memchr::memmem::Finder::new(&self.start);
        let (mut only, mut from) = (None, 0);
        // Occurrences of the start may overlap.
        while let Some(at) = start.find(bytes.get(from..)?) {
            if let Some(found) = self.at(bytes, from + at, numbers)
                && only.replace(found).is_some()
            {
                return None;
            }
            from += at + 1;
        }
        let (place, named) = only?;
        numbers.named.extend(named);
        Some(place)
    }

    /// Returns the place, and the numbers that had no names yet, if the signature is here.
    fn at(
        &self,
        bytes: &[u8],
        start: usize,
        numbers: &Numbers,
    ) -> Option<(Range<usize>, HashMap<String, u32>)> {
        let span = self.span.clone().unwrap_or(0..self.tokens.len());
        let mut named = HashMap::new();
        let (mut at, mut begin, mut end) = (start, start, start);
        for (index, token) in self.tokens.iter().enumerate() {
            if index == span.start {
                begin = at;
            }
            at = match token {
                Token::Byte(byte) if bytes.get(at) == Some(byte) => at + 1,
                Token::Byte(_) => return None,
                Token::Number(name) => {
                    let (found, after) = number(bytes, at)?;
                    if let Some(name) = name {
                        let known = numbers.named.get(name).or_else(|| named.get(name)).copied();
                        if known.is_some_and(|known| known != found) {
                            return None;
                        }
                        named.insert(name.clone(), found);
                    }
                    after
                }
            };
            if index + 1 == span.end {
                end = at;
            }
        }
        Some((begin..end, named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(signature: &str, bytes: &[u8]) -> Option<(Range<usize>, Numbers)> {
        let mut numbers = Numbers::default();
        numbers.insert("known", 300);
        let place = Signature::from_str(signature).unwrap().find(bytes, &mut numbers)?;
        Some((place, numbers))
    }

    #[test]
    fn numbers_of_any_length_are_found_and_named() {
        // 300 is `ac 02`.
        let bytes = [0x10, 0xac, 0x02, 0x41, 7, 0x10, 5, 0x0b];
        let (place, numbers) = find("10 known ( 41 07 ) 10 other 0b", &bytes).unwrap();
        assert_eq!((place, numbers.named["other"]), (3..5, 5));
        let written = Written::from_str("41 09 10 known 10 other").unwrap();
        assert_eq!(written.bytes(&numbers).unwrap(), [0x41, 9, 0x10, 0xac, 0x02, 0x10, 5]);
        assert!(Written::from_str("10 unknown").unwrap().bytes(&numbers).is_none());
        assert_eq!(find("10 * 41 07", &bytes).unwrap().0, 0..5);
    }

    #[test]
    fn a_place_with_another_number_or_one_of_two_is_none() {
        assert!(find("10 same 10 same", &[0x10, 5, 0x10, 6]).is_none());
        assert!(find("10 same 10 same", &[0x10, 6, 0x10, 6]).is_some());
        assert!(find("10 known", &[0x10, 5]).is_none());
        assert!(find("41 07", &[0x41, 7, 0x41, 7]).is_none());
        assert!(find("41 41 07", &[0x41, 0x41, 0x41, 7]).is_some());
        assert!(find("41 *", &[0x41]).is_none() && find("41 *", &[0x41, 0xff]).is_none());
    }

    #[test]
    fn what_is_no_signature_is_refused() {
        for text in ["4", "4g", "41 ( 07", "41 ) 07 (", "* 41", "a-name"] {
            assert!(Signature::from_str(text).is_err(), "{text}");
        }
    }
}
