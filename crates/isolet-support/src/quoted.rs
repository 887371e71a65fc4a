//! Words of commands that a message proposes.

/// Returns a word quoted so that a shell takes it as one word, with any characters in it.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-./:@%+=,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_stays_one_word_in_a_shell() {
        for (word, expected) in [
            ("fake.get-sum", "fake.get-sum"),
            ("", "''"),
            ("x --allow-tool *.*", "'x --allow-tool *.*'"),
            ("a'; rm b", "'a'\\''; rm b'"),
        ] {
            assert_eq!(quoted(word), expected);
        }
    }
}
