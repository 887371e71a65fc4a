//! The list of packages: a script for each, `GROUP/NAME.py` in `tests/packages`.
//!
//! A script begins with a docstring of one sentence that says what it does with the package. A
//! second line `# With: REQUIREMENT, REQUIREMENT` adds what else `--with` needs.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::process;

/// The directory of the scripts.
pub(super) const DIRECTORY: &str = "tests/packages";

/// The groups in the order of the page, by directory and title.
const GROUPS: [(&str, &str); 13] = [
    ("numbers", "Numbers and data"),
    ("plots", "Plots and pictures"),
    ("geo", "Places and maps"),
    ("documents", "Documents and formats"),
    ("text", "Text"),
    ("models", "Language models and agents"),
    ("web", "Web"),
    ("checking", "Validation and JSON"),
    ("storage", "Databases"),
    ("security", "Security"),
    ("time", "Dates and times"),
    ("testing", "Tests and code"),
    ("utilities", "Utilities"),
];

#[derive(Debug)]
pub(super) struct Package {
    /// The title of its group.
    pub(super) group: &'static str,
    /// The name on the package index.
    pub(super) name: String,
    /// What the script does, as a sentence without its period.
    pub(super) does: String,
    /// Further requirements of the script.
    pub(super) with: Vec<String>,
    pub(super) script: String,
}

/// Reads the list, by groups and sorted by name.
pub(super) fn read() -> Result<Vec<Package>> {
    let root = process::root().join(DIRECTORY);
    let mut packages: Vec<Package> = Vec::new();
    for directory in names_in(&root)? {
        let group = GROUPS.iter().find(|(known, _)| *known == directory);
        let (_, group) = group.with_context(|| {
            format!("`{DIRECTORY}/{directory}` is not a group of `GROUPS` in xtask")
        })?;
        for file in names_in(&root.join(&directory))? {
            let path = format!("{DIRECTORY}/{directory}/{file}");
            let script = fs::read_to_string(process::root().join(&path))
                .with_context(|| format!("cannot read `{path}`"))?;
            let package = Package::parse(group, &file, script)
                .with_context(|| format!("`{path}` cannot be used"))?;
            let same = packages.iter().find(|other| other.name == package.name);
            ensure!(same.is_none(), "`{path}` is a second script for {}", package.name);
            packages.push(package);
        }
    }
    packages.sort_by_key(|package| {
        let place = GROUPS.iter().position(|(_, title)| *title == package.group);
        (place, package.name.clone())
    });
    Ok(packages)
}

/// Returns the packages with these names, or all packages.
pub(super) fn chosen<'a>(packages: &'a [Package], names: &[OsString]) -> Result<Vec<&'a Package>> {
    let is = |package: &Package, name: &OsString| *package.name == **name;
    let is_unknown = |name: &&OsString| !packages.iter().any(|package| is(package, name));
    if let Some(unknown) = names.iter().find(is_unknown) {
        bail!("there is no script for `{}` in `{DIRECTORY}`", unknown.to_string_lossy());
    }
    let wanted = |package: &&Package| names.is_empty() || names.iter().any(|n| is(package, n));
    Ok(packages.iter().filter(wanted).collect())
}

impl Package {
    fn parse(group: &'static str, file: &str, script: String) -> Result<Self> {
        let name = file.strip_suffix(".py").context("its name does not end in `.py`")?;
        let is_usual = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        ensure!(
            name.starts_with(is_usual) && name.chars().all(|c| is_usual(c) || "-.".contains(c)),
            "`{name}` is not a normalised name of a package"
        );
        let mut lines = script.lines();
        let first = lines.next().unwrap_or_default();
        let does = first.strip_prefix("\"\"\"").and_then(|text| text.strip_suffix(".\"\"\""));
        let Some(does) = does.filter(|does| !does.is_empty() && !does.contains('|')) else {
            bail!("its first line is not `\"\"\"One sentence.\"\"\"`, without `|`");
        };
        let with = lines.next().and_then(|line| line.strip_prefix("# With: "));
        let with = with.unwrap_or_default().split(", ").filter(|name| !name.is_empty());
        ensure!(script.contains("assert "), "it checks no result by `assert`");
        Ok(Self {
            group,
            name: name.to_owned(),
            does: does.to_owned(),
            with: with.map(str::to_owned).collect(),
            script,
        })
    }

    /// Whether the script makes requests of the server whose address is in the variable `SERVER`.
    pub(super) fn uses_server(&self) -> bool {
        self.script.contains("os.environ[\"SERVER\"]")
    }
}

fn names_in(directory: &Path) -> Result<Vec<String>> {
    let unreadable = || format!("cannot list `{}`", directory.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).with_context(unreadable)? {
        let entry = entry.with_context(unreadable)?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(file: &str, script: &str) -> Result<Package> {
        Package::parse("Text", file, script.to_owned())
    }

    #[test]
    fn list_is_valid_and_as_long_as_the_documents_say() {
        let packages = read().unwrap();
        assert!(packages.len() >= 60, "{}", packages.len());
        for (_, title) in GROUPS {
            assert!(packages.iter().any(|package| package.group == title), "{title} is empty");
        }
        let names: Vec<_> = packages.iter().map(|package| OsString::from(&package.name)).collect();
        assert_eq!(chosen(&packages, &names[3..5]).unwrap().len(), 2);
        let error = chosen(&packages, &["no-such".into()]).unwrap_err().to_string();
        assert_eq!(error, "there is no script for `no-such` in `tests/packages`");
    }

    #[test]
    fn script_says_what_it_does_and_needs() {
        let package = parse("a-b.py", "\"\"\"Does it.\"\"\"\n# With: c, d\nassert 1\n").unwrap();
        assert_eq!((&*package.name, &*package.does), ("a-b", "Does it"));
        assert_eq!(package.with, ["c", "d"]);
        assert!(!package.uses_server());
        let script = "\"\"\"Does it.\"\"\"\nassert get(os.environ[\"SERVER\"])\n";
        let package = parse("a.py", script).unwrap();
        assert!(package.uses_server() && package.with.is_empty());
    }

    #[test]
    fn script_that_says_nothing_is_refused() {
        for (file, script, reason) in [
            ("a.txt", "\"\"\"Does it.\"\"\"\nassert 1\n", "does not end in `.py`"),
            ("A_b.py", "\"\"\"Does it.\"\"\"\nassert 1\n", "is not a normalised name"),
            ("a.py", "import a\nassert 1\n", "its first line is not"),
            ("a.py", "\"\"\"Does a|b.\"\"\"\nassert 1\n", "its first line is not"),
            ("a.py", "\"\"\"Does it.\"\"\"\nimport a\n", "it checks no result"),
        ] {
            let error = parse(file, script).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
