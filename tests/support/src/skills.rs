//! The skills in `tests/skills`, and the cases in which their scripts do what people's do.
//! `cases.json` says what runs; `check.py` judges the files that a script has written.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::{Scratch, isolet, root};

/// A script with arguments, and who judges it.
#[derive(Debug)]
pub struct SkillCase {
    skill: String,
    script: String,
    args: Vec<String>,
    check: String,
    /// The packages that the script needs.
    pub packages: Vec<String>,
}

/// Returns all cases.
///
/// # Panics
///
/// Panics if `cases.json` is wrong.
#[must_use]
pub fn cases() -> Vec<SkillCase> {
    let text = fs::read_to_string(root().join("tests/skills/cases.json")).unwrap();
    let cases: Vec<Value> = serde_json::from_str(&text).unwrap();
    let text = |case: &Value, field: &str| case[field].as_str().unwrap().to_owned();
    let list = |case: &Value, field: &str| {
        let list = case[field].as_array().unwrap();
        list.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
    };
    let case = |case: &Value| SkillCase {
        skill: text(case, "skill"),
        script: text(case, "script"),
        args: list(case, "args"),
        check: text(case, "check"),
        packages: list(case, "packages"),
    };
    cases.iter().map(case).collect()
}

impl SkillCase {
    /// Runs the script by `isolet skill run` with these options, and has its files judged.
    ///
    /// # Errors
    ///
    /// Returns what is wrong.
    ///
    /// # Panics
    ///
    /// Panics if Python or the directories are missing.
    pub fn run(&self, options: &[String]) -> Result<(), String> {
        let Self { skill, script, args, check, .. } = self;
        let scratch = Scratch::new(&format!("skill-{check}"));
        let out = scratch.path().join("out");
        fs::create_dir(&out).unwrap();
        let skills = root().join("tests/skills");
        let mut words = vec!["skill".to_owned(), "run".to_owned()];
        words.extend(options.iter().cloned());
        for mount in [
            format!("{}:/inputs", skills.join("inputs").display()),
            format!("{}:/out:rw", out.display()),
        ] {
            words.extend(["--mount".to_owned(), mount]);
        }
        words.extend([skills.join(skill).display().to_string(), script.clone()]);
        let placed = |arg: &String| arg.replace("{inputs}", "/inputs").replace("{out}", "/out");
        words.extend(args.iter().map(placed));
        let ran = isolet(&words);
        let name = format!("{skill}/{script} ({check})");
        if ran.code != Some(0) {
            return Err(format!("{name} ended with {:?}: {}{}", ran.code, ran.stdout, ran.stderr));
        }
        let printed = scratch.file("stdout", &ran.stdout);
        let mut judge = Command::new("python3");
        let judged = judge.arg(skills.join("check.py")).arg(check).arg(&out).arg(printed);
        let judged = judged.output().unwrap();
        if judged.status.success() {
            return Ok(());
        }
        Err(format!("{name}: {}", String::from_utf8_lossy(&judged.stderr)))
    }
}
