//! What Linux tells of processes.

/// Returns the processes whose parent this is.
#[must_use]
pub fn children(parent: u32) -> Vec<String> {
    let is_child =
        |process: &String| stat(process).is_some_and(|stat| stat[1] == parent.to_string());
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_child).collect()
}

/// Whether a process runs: one that nobody has waited for yet does not.
#[must_use]
pub fn runs(process: &str) -> bool {
    stat(process).is_some_and(|stat| !matches!(stat[0].as_str(), "Z" | "X"))
}

/// Returns the state, the parent and the following fields of a process.
#[must_use]
pub fn stat(process: &str) -> Option<Vec<String>> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}
