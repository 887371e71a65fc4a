//! Checks whether a text is a valid Python name.

/// Python's keywords. Soft keywords, such as `match`, are valid names and not listed.
const KEYWORDS: [&str; 35] = [
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue",
    "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if", "import",
    "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try", "while",
    "with", "yield",
];

/// Returns `true` if guest code can use `name` as a name.
pub fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let starts = |first| first == '_' || unicode_ident::is_xid_start(first);
    characters.next().is_some_and(starts)
        && characters.all(unicode_ident::is_xid_continue)
        && !KEYWORDS.contains(&name)
        && name != "__debug__"
}

#[cfg(test)]
mod tests {
    use super::is_identifier;

    #[test]
    fn names_are_those_that_python_takes() {
        for name in ["x", "_", "snake_case", "CamelCase", "x1", "match", "größe", "名前"] {
            assert!(is_identifier(name), "{name}");
        }
        for name in ["", "1x", "a b", "a-b", "a.b", "class", "None", "x\n", "x)", "é́ "] {
            assert!(!is_identifier(name), "{name}");
        }
    }
}
