//! Lines like `!pip install pandas` at the start of a cell. They name packages for the session's
//! policy; no shell runs them.

/// A cell without its `pip install` lines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// The code, with empty lines in their place, so that line numbers in tracebacks are right.
    pub(super) code: String,
    pub(super) requirements: Vec<String>,
}

/// The words before `install`.
const PROGRAMS: [&[&str]; 6] = [
    &["pip"],
    &["pip3"],
    &["python", "-m", "pip"],
    &["python3", "-m", "pip"],
    &["uv", "pip"],
    &["conda"],
];

/// Options that do not change what is installed here.
const IGNORED: [&str; 12] = [
    "-q",
    "-qq",
    "-qqq",
    "--quiet",
    "-U",
    "--upgrade",
    "-y",
    "--user",
    "--system",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
];

/// Removes the lines that install packages from the start of a cell.
///
/// # Errors
///
/// Fails if such a line has an unsupported option or requirement, with the message for the client.
pub(super) fn split(code: &str) -> Result<Cell, String> {
    let (mut requirements, mut rest, mut blanks) = (Vec::new(), code, 0);
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let trimmed = line.trim();
        if let Some(words) = trimmed.strip_prefix(['!', '%']).and_then(installed) {
            requirements.extend(packages(trimmed, words)?);
        } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
            break;
        }
        rest = after;
        blanks += 1;
    }
    if requirements.is_empty() {
        return Ok(Cell { code: code.to_owned(), requirements });
    }
    Ok(Cell { code: "\n".repeat(blanks) + rest, requirements })
}

/// Returns the arguments of `pip install`, if the line is that.
fn installed(line: &str) -> Option<Vec<String>> {
    let words = words(line);
    PROGRAMS.iter().find_map(|program| {
        let is_it = words.len() > program.len()
            && words.iter().zip(*program).all(|(word, its)| word == its)
            && words[program.len()] == "install";
        is_it.then(|| words[program.len() + 1..].to_vec())
    })
}

fn packages(line: &str, words: Vec<String>) -> Result<Vec<String>, String> {
    let mut packages = Vec::new();
    for word in words {
        if IGNORED.contains(&word.as_str()) || word.starts_with("--root-user-action") {
            continue;
        }
        let starts_package = word.starts_with(|first: char| first.is_ascii_alphanumeric());
        if !starts_package || word.contains([';', '|', '&', '$', '`', '/', '\\']) {
            return Err(format!(
                "`{word}` is not supported in `{line}`: there is no shell and no pip here, name \
                 packages only"
            ));
        }
        packages.push(word);
    }
    if packages.is_empty() {
        return Err(format!("`{line}` names no package"));
    }
    Ok(packages)
}

/// Splits a line into words. Quotes keep words together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if open == c => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requirements(code: &str) -> Vec<String> {
        split(code).unwrap().requirements
    }

    #[test]
    fn lines_at_the_start_name_packages_and_the_code_keeps_its_line_numbers() {
        let cell =
            split("\n# needed\n!pip install -q a 'b>=2' \n%pip install \"c[x]\"\nd\n!e").unwrap();
        assert_eq!(cell.requirements, ["a", "b>=2", "c[x]"]);
        assert_eq!(cell.code, "\n\n\n\nd\n!e");
        for line in [
            "!pip3 install a",
            "! python -m pip install a -U",
            "%python3 -m pip install a",
            "!uv pip install --system a",
        ] {
            assert_eq!(requirements(line), ["a"], "{line}");
        }
    }

    #[test]
    fn code_without_such_lines_is_as_it_was() {
        for code in ["", "x = 1", "x = 1\n!pip install a", "!ls", "!pip list", "# !pip install a"] {
            let cell = split(code).unwrap();
            assert_eq!((cell.code.as_str(), cell.requirements.len()), (code, 0));
        }
    }

    #[test]
    fn what_a_shell_or_pip_would_do_besides_is_refused() {
        for line in [
            "!pip install",
            "!pip install -q",
            "!pip install a && rm -rf /",
            "!pip install a; ls",
            "!pip install a|b",
            "!pip install $(cat x)",
            "!pip install -r requirements.txt",
            "!pip install --index-url https://a.b c",
            "!pip install git+https://a.b/c",
            "!pip install ./a",
            "!pip install a > /dev/null",
        ] {
            assert!(split(line).unwrap_err().contains(line), "{line}");
        }
    }
}
