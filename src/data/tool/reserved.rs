//! Names of modules that belong to the guest's Python. A module of tools never takes their place.

/// The modules of CPython's standard library, sorted, one a line: the guest's
/// `sys.stdlib_module_names`. A test compares the two.
const STDLIB: &str = include_str!("stdlib.txt");

/// Modules of the interpreter itself that the list does not have.
const OTHERS: [&str; 6] = ["__main__", "_pyodide", "_pyodide_core", "js", "pyodide", "pyodide_js"];

/// Returns `true` if `import name` has to give Python's own module.
pub(crate) fn is_reserved(name: &str) -> bool {
    OTHERS.contains(&name) || STDLIB.lines().any(|module| module == name)
}

#[cfg(test)]
mod tests {
    use super::is_reserved;

    #[test]
    fn modules_of_the_standard_library_are_reserved() {
        for name in ["time", "json", "email", "_thread", "__future__", "zoneinfo", "js"] {
            assert!(is_reserved(name), "{name}");
        }
        for name in ["", "github", "tim", "time\njson", "Time", "numpy", "tools"] {
            assert!(!is_reserved(name), "{name}");
        }
    }
}
