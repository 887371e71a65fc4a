//! What clients get of skills: their instructions, and the commands that run their scripts.

use std::fmt::Write;

use isolet_support::skills::{FILE, Skill};

/// Returns the skill of a name.
pub(super) fn named<'a>(skills: &'a [Skill], name: &str) -> Result<&'a Skill, String> {
    skills.iter().find(|skill| skill.name == name).ok_or_else(|| {
        let names: Vec<_> = skills.iter().map(|skill| skill.name.as_str()).collect();
        let name: String = name.chars().take(64).collect();
        format!("there is no skill `{}`; there are {}", name.escape_debug(), names.join(", "))
    })
}

/// Returns what a model has to know of a skill: its instructions, and its files.
pub(super) fn instructions(skill: &Skill) -> String {
    let mut text = skill.body.clone();
    let scripts: Vec<_> = skill.scripts().map(|(path, _)| path).collect();
    let others = skill.files.iter().map(String::as_str).filter(|path| !scripts.contains(path));
    let others: Vec<_> = others.collect();
    // Writing to a `String` cannot fail.
    let _ = write!(text, "\n\n---\nThe skill is in {}, read only.", skill.guest_directory());
    if let Some(needs) = &skill.compatibility {
        let _ = write!(text, " It needs: {needs}");
    }
    if !scripts.is_empty() {
        let _ = write!(text, "\nScripts (`script`): {}", scripts.join(", "));
    }
    if !others.is_empty() {
        let _ = write!(text, "\nOther files (`file`): {}", others.join(", "));
    }
    let _ = write!(text, "\nA path in the text is relative to the directory with {FILE}.");
    text
}

/// Returns the command of the shell that runs a script with the arguments of a line.
pub(super) fn command(skill: &Skill, script: &str, line: &str) -> Result<String, String> {
    let (path, language) = skill.script(script).map_err(|error| error.to_string())?;
    let path = format!("{}/{path}", skill.guest_directory()).replace('\'', "'\\''");
    Ok(format!("{} '{path}' {line}", language.program()))
}
