//! Which modules a program imports, by its text alone.

use std::collections::BTreeSet;

/// How many modules of a program are looked at.
const MOST: usize = 200;

/// Returns the modules that lines of this code import, anywhere in it, and in text that looks
/// alike: nobody relies on it.
pub(crate) fn imported_modules(code: &str) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for statement in code.split(['\n', ';']) {
        let mut words = statement.split_whitespace();
        match words.next() {
            Some("import") => {
                let rest = statement.trim_start().strip_prefix("import").unwrap_or_default();
                let named = rest.split(',').filter_map(|one| one.split_whitespace().next());
                modules.extend(named.filter(|name| is_dotted(name)).map(str::to_owned));
            }
            Some("from") => {
                modules.extend(words.next().filter(|name| is_dotted(name)).map(str::to_owned));
            }
            _ => {}
        }
        if modules.len() > MOST {
            break;
        }
    }
    modules
}

fn is_dotted(name: &str) -> bool {
    name.split('.').all(|part| {
        part.starts_with(|c: char| c == '_' || c.is_alphabetic())
            && part.chars().all(|c| c == '_' || c.is_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_code_imports_is_found_wherever_it_stands() {
        let code = "import os, numpy as np\nif True:\n    from pandas.io import sql; import a.b.c\n\
                    x = 1; import json\nimport\nfrom . import d\nimportant = 1\nimport 1a\n";
        let found: Vec<String> = imported_modules(code).into_iter().collect();
        assert_eq!(found, ["a.b.c", "json", "numpy", "os", "pandas.io"]);
    }
}
