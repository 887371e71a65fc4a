//! Finds the marks in output that designate the final answer.

/// A mark in the output that designates the final answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mark {
    /// `FINAL(...)`: the answer itself.
    Answer(String),
    /// `FINAL_VAR(...)`: the name of the variable that holds it.
    Variable(String),
}

impl Mark {
    /// Finds the mark in the texts that make up the output.
    #[must_use]
    pub fn find(texts: &[&str]) -> Option<Self> {
        let answer = texts.iter().find_map(|text| final_call(text));
        let answer = answer.map(|answer| Self::Answer(answer.to_owned()));
        answer.or_else(|| {
            let name = texts.iter().find_map(|text| final_variable(text))?;
            Some(Self::Variable(name.to_owned()))
        })
    }
}

/// Returns the text between the parentheses of the first `FINAL(...)`.
fn final_call(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("FINAL(")?;
    let mut depth = 1_usize;
    for (at, character) in rest.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(rest[..at].trim());
        }
    }
    None
}

/// Returns the name in the first `FINAL_VAR(...)` that contains one.
fn final_variable(text: &str) -> Option<&str> {
    text.split("FINAL_VAR(").skip(1).find_map(|rest| {
        let (name, _) = rest.split_once(')')?;
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        (!name.is_empty() && name.chars().all(is_word)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_call_counts_up_to_its_own_parenthesis() {
        let cases = [
            ("FINAL(42)", Some("42")),
            ("FINAL(f(x))", Some("f(x)")),
            ("FINAL((1, 2, 3))", Some("(1, 2, 3)")),
            ("FINAL(2^(2^(2^(2))) = 65536)", Some("2^(2^(2^(2))) = 65536")),
            ("FINAL({'a': (1, 2)})", Some("{'a': (1, 2)}")),
            ("FINAL(42)\nresult: (ok)", Some("42")),
            ("so it is FINAL( \n über\n ), FINAL(2)", Some("über")),
            ("FINAL()", Some("")),
            ("\"FINAL(quoted)\"", Some("quoted")),
            ("FINAL(1\nFINAL(2)", None),
            ("use FINAL( to answer", None),
            ("FINAL", None),
            ("FINAL_VAR(x)", None),
            ("final(1)", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(final_call(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_variable_is_a_word_in_parentheses() {
        let cases = [
            ("FINAL_VAR(answer_1)", Some("answer_1")),
            ("see FINAL_VAR(größe) and FINAL_VAR(b)", Some("größe")),
            ("FINAL_VAR(a.b) FINAL_VAR() FINAL_VAR( c ) FINAL_VAR(d)", Some("d")),
            ("FINAL_VAR(x", None),
            ("FINAL(x)", None),
        ];
        for (text, expected) in cases {
            assert_eq!(final_variable(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_answer_in_either_text_comes_before_a_variable() {
        let find = |texts: &[&str]| Mark::find(texts);
        let answer = |text: &str| Some(Mark::Answer(text.to_owned()));
        assert_eq!(find(&["FINAL_VAR(x)", "FINAL(1)"]), answer("1"));
        assert_eq!(find(&["FINAL(1)", "FINAL(2)"]), answer("1"));
        let variable = Some(Mark::Variable("x".to_owned()));
        assert_eq!(find(&["FINAL(", "FINAL_VAR(x)"]), variable);
        assert_eq!(find(&[]), None);
    }
}
