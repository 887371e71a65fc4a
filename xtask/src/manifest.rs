//! What the `Cargo.toml` of the repository says about isolet, for the other files that say it too.

/// Returns the text of a key of a section, such as `version` of `workspace.package`.
pub(crate) fn text<'a>(manifest: &'a str, section: &str, key: &str) -> Option<&'a str> {
    let header = format!("[{section}]");
    let lines = manifest.lines().skip_while(|line| *line != header).skip(1);
    let mut lines = lines.take_while(|line| !line.starts_with('['));
    lines.find_map(|line| {
        let value = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim();
        value.strip_prefix('"')?.strip_suffix('"')
    })
}

/// Returns the version of all packages.
pub(crate) fn version(manifest: &str) -> Option<&str> {
    text(manifest, "workspace.package", "version")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_of_its_section() {
        let manifest = "[a.b]\nversion = \"1\"\nversions = [\"x\"]\n[a]\nname = \"n\"\n";
        assert_eq!(text(manifest, "a.b", "version"), Some("1"));
        assert_eq!(text(manifest, "a.b", "versions"), None);
        assert_eq!(text(manifest, "a.b", "name"), None);
        assert_eq!(text(manifest, "a", "name"), Some("n"));
        assert_eq!(text(manifest, "c", "name"), None);
    }
}
