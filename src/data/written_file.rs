//! A file that a run has written, as the guest tells of it.

/// The maximum length of a path, in bytes.
const PATH_BYTES: usize = 4096;
/// The maximum length of a name in a path, in bytes.
const NAME_BYTES: usize = 255;
/// Directories at the root that belong to the system.
const SYSTEM: [&str; 3] = ["dev", "lib", "proc"];
/// Where Python keeps what it has compiled.
const COMPILED: &str = "__pycache__";

/// A file that a run has made or changed: a claim of the guest.
///
/// [`Files::get`](crate::Files::get) reads it. The path is absolute and has no `.`, `..` or empty
/// names; it may have any other characters, line breaks included.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct WrittenFile {
    /// Its guest path.
    pub path: String,
    /// Its size in bytes when the run ended.
    pub size: u64,
}

/// Returns `true` for an absolute path that a program may have written for its user: not of the
/// system, and without hidden names.
pub(crate) fn is_of_program(path: &str) -> bool {
    let is_name = |name: &str| {
        (1..=NAME_BYTES).contains(&name.len())
            && !name.starts_with('.')
            && !name.contains('\0')
            && name != COMPILED
    };
    path.len() <= PATH_BYTES
        && path.strip_prefix('/').is_some_and(|path| {
            let mut names = path.split('/');
            names.clone().all(is_name) && names.next().is_some_and(|top| !SYSTEM.contains(&top))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_absolute_paths_outside_the_system_are_of_a_program() {
        let longest = format!("/{}", "a".repeat(NAME_BYTES));
        for path in ["/home/user/out.xlsx", "/tmp/é\n", "/a", "/home/lib/x", &longest] {
            assert!(is_of_program(path), "{path}");
        }
        let (name, deep) = (format!("{longest}a"), "/a".repeat(PATH_BYTES));
        for path in [
            "",
            "/",
            "a",
            "../a",
            "/a/../b",
            "/a//b",
            "/a/",
            "/./a",
            "/a\0",
            "/dev/null",
            "/lib/x",
            "/proc/1",
            "/home/user/.cache/x",
            "/home/__pycache__/x.pyc",
            &name,
            &deep,
        ] {
            assert!(!is_of_program(path), "{path}");
        }
    }
}
