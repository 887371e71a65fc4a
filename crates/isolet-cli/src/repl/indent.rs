//! Computes the indentation of the next line of a block.

const STEP: &str = "    ";

/// Statements after which a block usually ends.
const LAST: [&str; 5] = ["return", "pass", "break", "continue", "raise"];

/// Returns the indentation of the line after these.
pub(super) fn after(lines: &[String]) -> String {
    let Some(last) = lines.iter().rev().find(|line| !line.trim().is_empty()) else {
        return String::new();
    };
    let indent = &last[..last.len() - last.trim_start().len()];
    let statement = last.trim();
    let first = statement.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    if statement.split(" #").next().is_some_and(|code| code.trim_end().ends_with(':')) {
        format!("{indent}{STEP}")
    } else if LAST.contains(&first) {
        indent.strip_suffix(STEP).unwrap_or(indent).to_owned()
    } else {
        indent.to_owned()
    }
}

/// Returns the line as its writer meant it. Text pasted without bracketed paste has its own
/// indentation, which was added to the initial one. The flag is set in that case.
pub(super) fn meant(line: &str, initial: &str) -> (String, bool) {
    match line.strip_prefix(initial) {
        Some(own) if !initial.is_empty() && own.starts_with([' ', '\t']) => {
            let is_blank = own.trim().is_empty();
            (if is_blank { String::new() } else { own.to_owned() }, !is_blank)
        }
        _ if line.trim().is_empty() => (String::new(), false),
        _ => (line.to_owned(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn next(code: &str) -> String {
        after(&code.split('\n').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_line_is_indented_as_the_one_before() {
        assert_eq!(next("def f():"), STEP);
        assert_eq!(next("  if x: # why"), "      ");
        assert_eq!(next("    x = 1"), STEP);
        assert_eq!(next("x = {"), "");
        assert_eq!(next("        return x"), STEP);
        assert_eq!(next("    returned = 1\n"), STEP);
        assert_eq!(next(""), "");
    }

    #[test]
    fn what_was_pasted_keeps_its_own_indentation() {
        assert_eq!(meant("        return 1", STEP), ("    return 1".to_owned(), true));
        assert_eq!(meant("    return 1", STEP), ("    return 1".to_owned(), false));
        assert_eq!(meant("else:", STEP), ("else:".to_owned(), false));
        assert_eq!(meant("    ", STEP), (String::new(), false));
        assert_eq!(meant("      ", STEP), (String::new(), false));
    }
}
