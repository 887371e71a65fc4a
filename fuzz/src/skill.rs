//! Front matter of skills.

use std::path::PathBuf;

use isolet::fuzzing::measured;
use isolet_support::skills::{MAX_COMPATIBILITY, MAX_DESCRIPTION, MAX_NAME, Skill};

/// How many times its length a text may take, and what it may take besides.
const FACTOR: usize = 400;
const FIXED: usize = 1 << 20;

/// A skill is within the bounds of the specification, and a reason is one short line. Memory is
/// bounded by the length.
pub fn skill(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let files = ["scripts/a.py", "scripts/b.sh", "references/c.md"].map(str::to_owned);
    let name = text.split_once("name: ").map_or("a", |(_, rest)| rest.lines().next().unwrap_or(""));
    let directory = PathBuf::from("/skills").join(name.trim().trim_start_matches('/'));
    let (read, used) = measured(|| Skill::parse(text, directory, files.to_vec()));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    match read {
        Ok(skill) => {
            assert!((1..=MAX_NAME).contains(&skill.name.len()), "{skill:?}");
            assert!(skill.name.bytes().all(|c| c == b'-' || c.is_ascii_alphanumeric()));
            assert!((1..=MAX_DESCRIPTION).contains(&skill.description.chars().count()));
            let needs = skill.compatibility.as_deref().unwrap_or("x").chars().count();
            assert!((1..=MAX_COMPATIBILITY).contains(&needs));
            assert!(skill.guest_directory().split('/').count() == 3);
            assert!(skill.script("b.sh").is_ok() && skill.script("../b.sh").is_err());
            let _ = skill.asks_for_network();
        }
        Err(error) => {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() < 2000, "{text:?}");
        }
    }
}
