//! Evaluates environment markers for the guest.

use std::str::FromStr;

use pep440_rs::{Version, VersionSpecifier};

use super::interpreter::MARKERS;
use super::requirement::normalised;

/// The maximum nesting depth of parentheses.
const MAX_DEPTH: usize = 32;

/// Returns `true` if the marker holds for the guest with this extra. An empty `extra` means none.
///
/// # Errors
///
/// Fails with a reason if the marker cannot be parsed.
pub(crate) fn holds(marker: &str, extra: &str) -> Result<bool, String> {
    let tokens = tokens(marker)?;
    let mut parser = Parser { tokens: &tokens, extra, depth: 0 };
    let value = parser.any()?;
    match parser.tokens {
        [] => Ok(value),
        [next, ..] => Err(format!("unexpected {next:?} in its marker")),
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Word(String),
    Text(String),
    Symbol(String),
}

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => {
                let body = rest.get(1..).unwrap_or_default();
                let (body, _) =
                    body.split_once(first).ok_or("a string in its marker is not closed")?;
                tokens.push(Token::Text(body.to_owned()));
                body.len() + 2
            }
            '(' | ')' => {
                tokens.push(Token::Symbol(first.to_string()));
                1
            }
            _ => {
                let is_symbol = |c: char| matches!(c, '<' | '>' | '=' | '!' | '~');
                let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
                let symbol = is_symbol(first);
                let same = |c: char| if symbol { is_symbol(c) } else { is_word(c) };
                let end = rest.find(|c| !same(c)).unwrap_or(rest.len());
                if end == 0 {
                    return Err(format!("unexpected {first:?} in its marker"));
                }
                let word = rest.get(..end).unwrap_or_default().to_owned();
                tokens.push(if symbol { Token::Symbol(word) } else { Token::Word(word) });
                end
            }
        };
        rest = rest.get(length..).unwrap_or_default().trim_start();
    }
    Ok(tokens)
}

struct Parser<'a> {
    tokens: &'a [Token],
    extra: &'a str,
    depth: usize,
}

/// One side of a comparison.
struct Operand {
    /// The name of the variable; `None` for a string.
    variable: Option<String>,
    value: String,
}

impl Parser<'_> {
    fn any(&mut self) -> Result<bool, String> {
        let mut value = self.all()?;
        while self.take_word("or") {
            value |= self.all()?;
        }
        Ok(value)
    }

    fn all(&mut self) -> Result<bool, String> {
        let mut value = self.one()?;
        while self.take_word("and") {
            value &= self.one()?;
        }
        Ok(value)
    }

    fn one(&mut self) -> Result<bool, String> {
        if !self.take_symbol("(") {
            return self.comparison();
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("its marker is nested deeper than {MAX_DEPTH}"));
        }
        let value = self.any()?;
        self.depth -= 1;
        if self.take_symbol(")") {
            Ok(value)
        } else {
            Err("`(` in its marker is not closed".into())
        }
    }

    fn comparison(&mut self) -> Result<bool, String> {
        let left = self.operand()?;
        let operator = match self.next() {
            Some(Token::Symbol(symbol)) => symbol,
            Some(Token::Word(word)) if word == "in" => word,
            Some(Token::Word(word)) if word == "not" && self.take_word("in") => "not in".to_owned(),
            _ => return Err("an operator is missing in its marker".to_owned()),
        };
        let right = self.operand()?;
        compare(&left, &operator, &right)
    }

    fn operand(&mut self) -> Result<Operand, String> {
        match self.next() {
            Some(Token::Text(value)) => Ok(Operand { variable: None, value }),
            Some(Token::Word(name)) if name == "extra" => {
                Ok(Operand { variable: Some(name), value: self.extra.to_owned() })
            }
            Some(Token::Word(name)) => {
                // Names from before PEP 508 contain dots.
                let spelt = name.replace('.', "_");
                match MARKERS.iter().find(|(known, _)| *known == spelt) {
                    Some((_, value)) => {
                        Ok(Operand { variable: Some(spelt), value: (*value).to_owned() })
                    }
                    None => Err(format!("`{name}` is not an environment marker")),
                }
            }
            _ => Err("a value is missing in its marker".to_owned()),
        }
    }

    fn next(&mut self) -> Option<Token> {
        let (first, rest) = self.tokens.split_first()?;
        self.tokens = rest;
        Some(first.clone())
    }

    fn take_word(&mut self, wanted: &str) -> bool {
        self.take(|token| matches!(token, Token::Word(word) if word == wanted))
    }

    fn take_symbol(&mut self, wanted: &str) -> bool {
        self.take(|token| matches!(token, Token::Symbol(symbol) if symbol == wanted))
    }

    fn take(&mut self, is_wanted: impl Fn(&Token) -> bool) -> bool {
        match self.tokens.split_first() {
            Some((first, rest)) if is_wanted(first) => {
                self.tokens = rest;
                true
            }
            _ => false,
        }
    }
}

fn compare(left: &Operand, operator: &str, right: &Operand) -> Result<bool, String> {
    let variable = left.variable.as_deref().or(right.variable.as_deref()).unwrap_or_default();
    let is_version = variable.ends_with("_version") && variable != "platform_version";
    if let Some(value) = compare_versions(left, operator, right).filter(|_| is_version) {
        return Ok(value);
    }
    let (left, right) = if variable == "extra" {
        (normalised(&left.value), normalised(&right.value))
    } else {
        (left.value.clone(), right.value.clone())
    };
    match operator {
        "==" | "===" => Ok(left == right),
        "!=" => Ok(left != right),
        "in" => Ok(right.contains(&left)),
        "not in" => Ok(!right.contains(&left)),
        "<" => Ok(left < right),
        "<=" => Ok(left <= right),
        ">" => Ok(left > right),
        ">=" => Ok(left >= right),
        _ => Err(format!("`{operator}` in its marker does not compare these values")),
    }
}

/// Compares versions. Returns `None` if the operands are not versions or the operator does not
/// apply to versions.
fn compare_versions(left: &Operand, operator: &str, right: &Operand) -> Option<bool> {
    let (version, operator, bound) = if left.variable.is_some() {
        (&left.value, operator, &right.value)
    } else {
        let mirrored = match operator {
            "<" => ">",
            "<=" => ">=",
            ">" => "<",
            ">=" => "<=",
            same => same,
        };
        (&right.value, mirrored, &left.value)
    };
    let version = Version::from_str(version).ok()?;
    let specifier = VersionSpecifier::from_str(&format!("{operator}{bound}")).ok()?;
    Some(specifier.contains(&version))
}
