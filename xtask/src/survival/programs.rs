//! The programs, from `benches/survival`: a file for each kind, and in it a line `# %% NAME` before
//! each program.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::process;

/// The packages that programs import and that are not in the standard library.
const PACKAGES: [&str; 2] = ["numpy", "pandas"];

/// The kinds in the order of the page: the name of each file, and what the page calls it.
const KINDS: [(&str, &str); 10] = [
    ("depth", "depth"),
    ("c_recursion", "recursion through C"),
    ("memory", "memory"),
    ("integers", "big numbers"),
    ("regular_expressions", "regular expressions"),
    ("output", "output"),
    ("exits", "exits and aborts"),
    ("threads", "threads and waits"),
    ("decoders", "parsers and decoders"),
    ("native", "native packages"),
];

/// Programs of one kind.
pub(super) struct Kind {
    /// The name on the command line.
    pub(super) name: String,
    pub(super) title: &'static str,
    pub(super) programs: Vec<Program>,
}

/// A program that hurts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    pub(super) name: String,
    pub(super) code: String,
    pub(super) packages: Vec<&'static str>,
}

/// The kind of programs that do not hurt, but show what of Python there is.
const FEATURES: &str = "features";

/// What such a program raises at its end. Its last line does not contain it, which some subjects
/// show when it fails.
pub(super) const AT_ITS_END: &str = "it runs";
const LAST_LINE: &str = "raise Exception('it' + ' runs')\n";

/// Reads all kinds.
pub(super) fn all() -> Result<Vec<Kind>> {
    let kind = |(name, title): (&str, _)| {
        let programs = read(name)?;
        Ok(Kind { name: name.to_owned(), title, programs })
    };
    KINDS.into_iter().map(kind).collect()
}

/// Reads the programs that show what of Python a subject has.
pub(super) fn features() -> Result<Vec<Program>> {
    let mut programs = read(FEATURES)?;
    for program in &mut programs {
        program.code.push_str(LAST_LINE);
    }
    Ok(programs)
}

fn read(name: &str) -> Result<Vec<Program>> {
    let path = format!("benches/survival/{name}.py");
    let text = fs::read_to_string(process::root().join(&path))
        .with_context(|| format!("cannot read `{path}`"))?;
    let programs = programs(&text);
    ensure!(!programs.is_empty(), "`{path}` has no line `# %% NAME`");
    Ok(programs)
}

fn programs(text: &str) -> Vec<Program> {
    let parts = text.split("\n# %% ").skip(1);
    let programs = parts.filter_map(|part| part.split_once('\n')).map(|(name, code)| {
        let imports = |package: &&str| {
            code.lines().any(|line| line.starts_with("import") && line.contains(package))
        };
        let packages = PACKAGES.into_iter().filter(imports).collect();
        Program { name: name.trim().to_owned(), code: code.trim().to_owned() + "\n", packages }
    });
    programs.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_file_has_its_programs_with_their_packages() {
        let text = "# What it is.\n\n# %% one\nimport io, numpy\nx\n\n# %% two\nnumpy\n";
        let program = |name: &str, code: &str, packages: &[&'static str]| Program {
            name: name.to_owned(),
            code: code.to_owned(),
            packages: packages.to_vec(),
        };
        let expected =
            [program("one", "import io, numpy\nx\n", &["numpy"]), program("two", "numpy\n", &[])];
        assert_eq!(programs(text), expected);
    }

    #[test]
    fn there_are_a_hundred_programs_with_names_of_their_own() {
        let kinds = all().unwrap();
        let names: Vec<_> =
            kinds.iter().flat_map(|kind| &kind.programs).map(|it| &it.name).collect();
        assert!(names.len() >= 100, "{}", names.len());
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }
}
