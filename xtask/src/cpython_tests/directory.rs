//! A directory of CPython's tests: their version and their modules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The file in which the tests state the bytecode's magic number. No other file of the tests
/// contains a version.
const MAGIC: (&str, &str) = ("test_importlib/test_util.py", "EXPECTED_MAGIC_NUMBER = ");

#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    /// The minor version of CPython 3 that the tests belong to.
    minor: u32,
    modules: Vec<String>,
}

impl Directory {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let shown = path.display();
        let path = fs::canonicalize(path).with_context(|| format!("cannot open `{shown}`"))?;
        for part in ["__init__.py", "support/__init__.py", MAGIC.0] {
            ensure!(
                path.join(part).is_file(),
                "`{shown}` has no `{part}`, so it is not CPython's `Lib/test`"
            );
        }
        let text = fs::read_to_string(path.join(MAGIC.0))
            .with_context(|| format!("cannot read `{}` in `{shown}`", MAGIC.0))?;
        let minor = minor_version(&text)
            .with_context(|| format!("`{}` in `{shown}` has no known magic number", MAGIC.0))?;
        let modules = modules(&path).with_context(|| format!("cannot list `{shown}`"))?;
        Ok(Self { path, minor, modules })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Fails if the tests belong to another version than the interpreter, such as `3.14.2`.
    pub(super) fn check_version(&self, interpreter: &str) -> Result<()> {
        let minor = interpreter.split('.').nth(1).and_then(|minor| minor.parse().ok());
        ensure!(
            interpreter.starts_with("3.") && minor == Some(self.minor),
            "`{}` has the tests of CPython 3.{}, but isolet's interpreter is CPython {interpreter}",
            self.path.display(),
            self.minor
        );
        Ok(())
    }

    /// Returns the modules with these names, or all modules.
    pub(super) fn chosen(&self, names: &[String]) -> Result<Vec<String>> {
        let unknown = names.iter().find(|name| !self.modules.contains(name));
        if let Some(unknown) = unknown {
            anyhow::bail!("`{}` has no module `{unknown}`", self.path.display());
        }
        let all = names.is_empty();
        let chosen = self.modules.iter().filter(|module| all || names.contains(module));
        Ok(chosen.cloned().collect())
    }
}

/// Returns `test_x.py` and the packages `test_x`, sorted by name.
fn modules(path: &Path) -> std::io::Result<Vec<String>> {
    let mut modules = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let name = match name.strip_suffix(".py") {
            Some(module) => module.to_owned(),
            None if entry.path().join("__init__.py").is_file() => name,
            None => continue,
        };
        if name.starts_with("test_") {
            modules.push(name);
        }
    }
    modules.sort();
    Ok(modules)
}

/// Returns the minor version for a magic number. Each version of CPython has fifty of them: 3.11
/// began at 3450, 3.12 at 3500.
fn minor_version(text: &str) -> Option<u32> {
    let (_, after) = text.split_once(MAGIC.1)?;
    let digits: String = after.chars().take_while(char::is_ascii_digit).collect();
    let number: u32 = digits.parse().ok()?;
    Some(11 + number.checked_sub(3450)? / 50)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn directory(minor: u32) -> Directory {
        let modules = ["test_json".to_owned(), "test_re".to_owned()].to_vec();
        Directory { path: PathBuf::from("Lib/test"), minor, modules }
    }

    #[test]
    fn version_is_read_from_the_magic_number() {
        let minor = |number| minor_version(&format!("x\n    EXPECTED_MAGIC_NUMBER = {number}\n"));
        assert_eq!(minor(3495), Some(11));
        assert_eq!(minor(3571), Some(13));
        assert_eq!(minor(3627), Some(14));
        assert_eq!(minor(3394), None);
        assert_eq!(minor_version("EXPECTED_MAGIC_NUMBER = None"), None);
        assert_eq!(minor_version(""), None);
    }

    #[test]
    fn another_version_is_refused_with_both() {
        directory(14).check_version("3.14.2").unwrap();
        let error = directory(13).check_version("3.14.2").unwrap_err().to_string();
        assert_eq!(
            error,
            "`Lib/test` has the tests of CPython 3.13, but isolet's interpreter is CPython 3.14.2"
        );
    }

    #[test]
    fn modules_are_chosen_by_their_names() {
        assert_eq!(directory(14).chosen(&[]).unwrap().len(), 2);
        assert_eq!(directory(14).chosen(&["test_re".to_owned()]).unwrap(), ["test_re"]);
        let error = directory(14).chosen(&["test_x".to_owned()]).unwrap_err().to_string();
        assert_eq!(error, "`Lib/test` has no module `test_x`");
    }

    #[test]
    fn another_directory_is_refused() {
        let error = Directory::open(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err();
        assert!(error.to_string().ends_with("so it is not CPython's `Lib/test`"), "{error}");
        let error = Directory::open(Path::new("nonexistent")).unwrap_err().to_string();
        assert_eq!(error, "cannot open `nonexistent`");
    }
}
