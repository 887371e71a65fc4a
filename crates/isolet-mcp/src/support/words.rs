//! A command line as words.

/// Splits a text at spaces. Quotes and backslashes keep words together, as in a shell; nothing else
/// of a shell is known.
pub(crate) fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            (_, Some(open)) if letter == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => {
                let next = letters.next().ok_or("ends with a backslash")?;
                word.get_or_insert_default().push(next);
            }
            (_, None) if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(open) = quote {
        return Err(format!("has a {open} that is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = split(r#"npx -y 'a b' "c \" d"e f\ g '' "#).unwrap();
        assert_eq!(words, ["npx", "-y", "a b", "c \" de", "f g", ""]);
        assert_eq!(split("a 'b").unwrap_err(), "has a ' that is not closed");
        assert!(split("a\\").is_err());
    }
}
