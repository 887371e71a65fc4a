//! Rewrites the commands of `IPython` in a cell that need nothing done, or that only run code.

use std::borrow::Cow;

use crate::cli::tokens;

/// Commands that make or load what a cell gets without them.
const WITHOUT_EFFECT: [(&str, &str); 5] = [
    ("%matplotlib", ""),
    ("%autoreload", ""),
    ("%load_ext", "autoreload"),
    ("%reload_ext", "autoreload"),
    ("%config", "InlineBackend."),
];

/// Returns the Python of a cell, line by line: a `pass` for each command that has no effect here,
/// and the code of `%time`. Other commands stay, and are a syntax error.
///
/// `has_package` says which packages are loaded, or are when they are imported: installing those
/// has no effect.
pub(super) fn without_magic(source: &str, has_package: impl Fn(&str) -> bool) -> Cow<'_, str> {
    if !source.contains(['%', '!']) {
        return source.into();
    }
    let mut python = String::with_capacity(source.len());
    let mut rest = source;
    let mut depth = 0u32;
    // No statement of Python begins with such a character, so only where one may begin is looked.
    let mut is_statement = true;
    while let Some(first) = rest.chars().next() {
        if is_statement {
            let line = rest.split('\n').next().unwrap_or_default();
            let is_first = python.trim().is_empty();
            if let Some((indent, code)) = replacement(line, is_first, &has_package) {
                python += indent;
                python += if code.is_empty() { "pass" } else { "" };
                rest = &rest[line.len() - code.len()..];
                is_statement = false;
                continue;
            }
        }
        let length = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '\'' | '"' => tokens::string(rest, first),
            // The end of this line ends no statement.
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => first.len_utf8(),
        };
        depth = match first {
            '(' | '[' | '{' => depth + 1,
            ')' | ']' | '}' => depth.saturating_sub(1),
            _ => depth,
        };
        is_statement = first == '\n' && depth == 0;
        python += &rest[..length];
        rest = &rest[length..];
    }
    python.into()
}

/// Returns the indentation of a line that is a command, and the code that it runs, a part of the
/// line: none if it has no effect.
fn replacement<'a>(
    line: &'a str,
    is_first: bool,
    has_package: &impl Fn(&str) -> bool,
) -> Option<(&'a str, &'a str)> {
    let command = line.trim_start();
    let indent = &line[..line.len() - command.len()];
    let (name, argument) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let argument = argument.trim_start();
    let has_no_effect = match name {
        "%time" if !argument.trim_end().is_empty() => return Some((indent, argument)),
        "%%time" => is_first && argument.is_empty(),
        "%pip" | "!pip" | "!pip3" => installs_only(argument, has_package),
        _ => {
            let is_known =
                |(known, start): &(&str, &str)| name == *known && argument.starts_with(start);
            WITHOUT_EFFECT.iter().any(is_known)
        }
    };
    has_no_effect.then_some((indent, ""))
}

/// Returns `true` for `install` and packages that there are.
fn installs_only(arguments: &str, has_package: &impl Fn(&str) -> bool) -> bool {
    let mut words = arguments.split(" #").next().unwrap_or_default().split_whitespace();
    let is_install = words.next() == Some("install");
    let mut packages = words.filter(|word| !word.starts_with('-')).peekable();
    is_install
        && packages.peek().is_some()
        && packages.all(|package| has_package(package.trim_matches(['\'', '"'])))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(source: &str) -> String {
        let python = without_magic(source, |package| ["numpy", "rich>=14"].contains(&package));
        assert_eq!(python.lines().count(), source.lines().count());
        python.into_owned()
    }

    #[test]
    fn commands_without_effect_are_passed_over_and_keep_their_lines() {
        for (source, python) in [
            ("%matplotlib inline\nx", "pass\nx"),
            ("if x:\n    %matplotlib notebook\ny", "if x:\n    pass\ny"),
            ("%load_ext autoreload\n%autoreload 2\n", "pass\npass\n"),
            ("%config InlineBackend.figure_format = 'retina'", "pass"),
            ("%%time\nx = '%'\nx", "pass\nx = '%'\nx"),
            ("!pip install -q numpy \"rich>=14\"  # once", "pass"),
            ("%pip install --quiet numpy 'rich>=14'\nf()", "pass\nf()"),
            ("!pip3 install numpy", "pass"),
        ] {
            assert_eq!(rewritten(source), python);
        }
    }

    #[test]
    fn code_after_time_is_run() {
        assert_eq!(rewritten("%time x = '''a\n%matplotlib'''\nx"), "x = '''a\n%matplotlib'''\nx");
        assert_eq!(rewritten("for _ in y:\n    %time   f()"), "for _ in y:\n    f()");
    }

    #[test]
    fn nothing_else_is_changed() {
        for source in [
            "x = '''\n%matplotlib inline\n''' % y",
            "x = f(7\n%matplotlib)",
            "x = 7 \\\n%matplotlib",
            "x = \"\\\"\"; y = '''\"\n%matplotlib\n'''",
            "# '''\n!ls",
            "%matplotlib_x\n%config Other.x = 1\n%load_ext sql",
            "x\n%%time",
            "%time",
            "%pip install",
            "%pip install numpy pandas",
            "%pip uninstall numpy",
            "%pip install -r numpy.txt",
            "%timeit x",
            "a = b % c != d",
        ] {
            assert_eq!(rewritten(source), source);
        }
    }
}
