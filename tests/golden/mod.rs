//! Golden lists: compares what a census finds with a committed file, byte for byte.
//!
//! `cargo xtask golden` rewrites the files. A person must review the differences: an additional
//! line is something new that a guest can reach.

/// If set, the lists are written instead of compared.
const WRITE: &str = "ISOLET_GOLDEN";

/// Compares `found`, one entry per line, with the list `name`.
#[track_caller]
pub(crate) fn check(name: &str, found: &str) {
    let path = isolet_test_support::root().join("tests/golden").join(name);
    #[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, found).unwrap();
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let missing = difference(&expected, found);
    let added = difference(found, &expected);
    assert!(
        found == expected,
        "tests/golden/{name} differs; `cargo xtask golden` writes it\nmissing: {missing:#?}\nadded: {added:#?}"
    );
}

/// Returns the lines of `a` that are not in `b`.
fn difference<'a>(a: &'a str, b: &str) -> Vec<&'a str> {
    let known: std::collections::HashSet<&str> = b.lines().collect();
    a.lines().filter(|line| !known.contains(line)).collect()
}
