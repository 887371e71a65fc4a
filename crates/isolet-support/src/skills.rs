//! Agent Skills: directories with a `SKILL.md`, whose front matter says what they are for, and with
//! scripts and texts. They are data of a third party: everything in them has a bound.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// The file that describes a skill.
pub const FILE: &str = "SKILL.md";

/// The directory of the guest that has the skills, each under its name.
pub const GUEST_DIRECTORY: &str = "/skills";

/// The maximum lengths that the specification gives, in characters.
pub const MAX_NAME: usize = 64;
pub const MAX_DESCRIPTION: usize = 1024;
pub const MAX_COMPATIBILITY: usize = 500;

/// The maximum length of a text of a skill, in bytes.
pub const MAX_TEXT_BYTES: u64 = 1 << 20;

/// The maximum number of files of a skill, and of skills in a directory.
pub const MAX_FILES: usize = 1000;
pub const MAX_SKILLS: usize = 200;

/// Words of `compatibility` and tools of `allowed-tools` that ask for the network.
const NETWORK_WORDS: [&str; 3] = ["network", "internet", "online"];
const NETWORK_TOOLS: [&str; 4] = ["webfetch", "websearch", "bash(curl", "bash(wget"];

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    pub license: Option<String>,
    /// What it needs of its environment, in words.
    pub compatibility: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub allowed_tools: Vec<String>,
    /// The instructions.
    pub body: String,
    pub directory: PathBuf,
    /// The files beside [`FILE`], relative to the directory, sorted.
    pub files: Vec<String>,
}

/// Why a directory is no skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillError(String);

impl fmt::Display for SkillError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SkillError {}

/// The language of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    Python,
    Shell,
}

impl Language {
    /// Returns the language of a file by its name; `None` if it is no script.
    pub fn of(path: &str) -> Option<Self> {
        match Path::new(path).extension()?.to_str()? {
            "py" => Some(Self::Python),
            "sh" | "bash" => Some(Self::Shell),
            _ => None,
        }
    }

    /// The program that runs it.
    pub fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Shell => "bash",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct FrontMatter {
    name: String,
    description: String,
    #[serde(default)]
    license: Option<String>,
    #[serde(default)]
    compatibility: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    allowed_tools: Option<AllowedTools>,
}

/// Separated by spaces in the specification; many skills have a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum AllowedTools {
    Text(String),
    List(Vec<String>),
}

impl Skill {
    /// Reads the skill in a directory.
    ///
    /// # Errors
    ///
    /// Fails if it is none by the specification, with the reason.
    pub fn read(directory: &Path) -> Result<Self, SkillError> {
        let wrong = |reason: String| SkillError(format!("`{}`: {reason}", directory.display()));
        let whole = fs::canonicalize(directory)
            .map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        let text = read_text(&whole.join(FILE)).map_err(wrong)?;
        let files = files(&whole).map_err(wrong)?;
        Self::parse(&text, whole, files).map_err(|SkillError(reason)| wrong(reason))
    }

    /// Reads the text of a [`FILE`] in this directory, beside these files.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn parse(text: &str, directory: PathBuf, files: Vec<String>) -> Result<Self, SkillError> {
        let wrong = |reason: &str| SkillError(format!("{FILE}: {reason}"));
        let (matter, body) = split(text).map_err(wrong)?;
        let matter: FrontMatter = serde_saphyr::from_str(matter).map_err(|error| {
            let error = error.to_string();
            let line: String = error.lines().next().unwrap_or_default().chars().take(300).collect();
            wrong(&line.escape_debug().to_string())
        })?;
        let skill = Self {
            name: matter.name,
            description: matter.description.trim().to_owned(),
            license: matter.license,
            compatibility: matter.compatibility.map(|text| text.trim().to_owned()),
            metadata: matter.metadata,
            allowed_tools: match matter.allowed_tools {
                None => Vec::new(),
                Some(AllowedTools::Text(text)) => tools(&text),
                Some(AllowedTools::List(list)) => list,
            },
            body: body.trim().to_owned(),
            files,
            directory,
        };
        skill.check().map_err(|reason| wrong(&reason))?;
        Ok(skill)
    }

    fn check(&self) -> Result<(), String> {
        let Self { name, description, .. } = self;
        let is_valid = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
        let length = name.chars().count();
        if !(1..=MAX_NAME).contains(&length) {
            return Err(format!("the name has {length} characters; 1 to {MAX_NAME} are allowed"));
        }
        if !name.chars().all(is_valid)
            || name.starts_with('-')
            || name.ends_with('-')
            || name.contains("--")
        {
            return Err(format!(
                "the name `{}` is not of small letters, digits and single hyphens between them",
                name.escape_debug()
            ));
        }
        let directory = self.directory.file_name().map(|name| name.to_string_lossy());
        if directory.as_deref() != Some(name) {
            let directory = directory.unwrap_or_default();
            return Err(format!("the name `{name}` is not that of its directory, `{directory}`"));
        }
        let length = description.chars().count();
        if !(1..=MAX_DESCRIPTION).contains(&length) {
            return Err(format!(
                "the description has {length} characters; 1 to {MAX_DESCRIPTION} are allowed"
            ));
        }
        let length = self.compatibility.as_deref().map_or(1, |text| text.chars().count());
        if !(1..=MAX_COMPATIBILITY).contains(&length) {
            return Err(format!(
                "compatibility has {length} characters; 1 to {MAX_COMPATIBILITY} are allowed"
            ));
        }
        Ok(())
    }

    /// Returns the scripts: files with the name of one, in `scripts/` or at the top.
    pub fn scripts(&self) -> impl Iterator<Item = (&str, Language)> {
        let is_there = |path: &&str| path.starts_with("scripts/") || !path.contains('/');
        let found = self.files.iter().map(String::as_str).filter(is_there);
        found.filter_map(|path| Some((path, Language::of(path)?)))
    }

    /// Returns a script by its path, or by its name in `scripts/`.
    ///
    /// # Errors
    ///
    /// Fails if there is none, with those that there are.
    pub fn script(&self, wanted: &str) -> Result<(&str, Language), SkillError> {
        let wanted = wanted.trim_start_matches("./");
        let is_wanted =
            |path: &str| path == wanted || path.strip_prefix("scripts/") == Some(wanted);
        self.scripts().find(|(path, _)| is_wanted(path)).ok_or_else(|| {
            let there: Vec<&str> = self.scripts().map(|(path, _)| path).collect();
            let there = if there.is_empty() { "no scripts".to_owned() } else { there.join(", ") };
            let (name, wanted) = (&self.name, wanted.escape_debug());
            SkillError(format!("the skill `{name}` has no script `{wanted}`; it has {there}"))
        })
    }

    /// Returns whether the skill says that it needs the network.
    pub fn asks_for_network(&self) -> bool {
        let compatibility = self.compatibility.as_deref().unwrap_or_default().to_lowercase();
        let denies = ["no network", "no internet", "without network", "offline"];
        let is_said = NETWORK_WORDS.iter().any(|word| compatibility.contains(word))
            && !denies.iter().any(|word| compatibility.contains(word));
        is_said
            || self.allowed_tools.iter().any(|tool| {
                let tool = tool.to_lowercase();
                NETWORK_TOOLS.iter().any(|name| tool.starts_with(name))
            })
    }

    /// Returns the directory of the guest that has the skill.
    pub fn guest_directory(&self) -> String {
        format!("{GUEST_DIRECTORY}/{}", self.name)
    }

    /// Reads a text of the skill.
    ///
    /// # Errors
    ///
    /// Fails if it is none of [`files`](Self::files), too long, or not UTF-8.
    pub fn text(&self, path: &str) -> Result<String, SkillError> {
        let path = path.trim_start_matches("./");
        let wrong = |reason: String| SkillError(format!("the skill `{}`: {reason}", self.name));
        if path != FILE && !self.files.iter().any(|file| file == path) {
            let there = self.files.join(", ");
            let path = path.escape_debug();
            return Err(wrong(format!("there is no file `{path}`; there are {there}")));
        }
        read_text(&self.directory.join(path)).map_err(wrong)
    }
}

/// Reads the skills in a directory of them, sorted by name. A directory without [`FILE`] is left
/// out.
///
/// # Errors
///
/// Fails if one is wrong, or if there are too many.
pub fn read_all(directory: &Path) -> Result<Vec<Skill>, SkillError> {
    let wrong = |reason: String| SkillError(format!("`{}`: {reason}", directory.display()));
    let entries =
        fs::read_dir(directory).map_err(|error| wrong(format!("it cannot be read: {error}")))?;
    let mut skills = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| wrong(format!("it cannot be read: {error}")))?;
        if entry.path().join(FILE).is_file() {
            skills.push(Skill::read(&entry.path())?);
        }
        if skills.len() > MAX_SKILLS {
            return Err(wrong(format!("it has more than {MAX_SKILLS} skills")));
        }
    }
    if skills.is_empty() {
        return Err(wrong(format!("it has no directory with a {FILE}")));
    }
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(skills)
}

/// Splits a text into its front matter and the rest.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let text = text.trim_start_matches('\u{feff}');
    let rest = text.strip_prefix("---").filter(|rest| rest.starts_with(['\n', '\r']));
    let rest = rest.ok_or("it does not begin with `---` and front matter")?;
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Ok((&rest[..at], &rest[at + line.len()..]));
        }
        at += line.len();
    }
    Err("its front matter has no end: a line `---`")
}

/// Splits `Bash(git:*) Read` at spaces and commas outside of parentheses.
fn tools(text: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let parts = text.split(|c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c.is_whitespace() || c == ',')
    });
    parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn read_text(path: &Path) -> Result<String, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unreadable = |error: std::io::Error| format!("`{name}` cannot be read: {error}");
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(unreadable)?;
    file.take(MAX_TEXT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_TEXT_BYTES {
        return Err(format!("`{name}` is longer than {MAX_TEXT_BYTES} bytes"));
    }
    String::from_utf8(bytes).map_err(|_| format!("`{name}` is not UTF-8"))
}

/// Lists the files beneath a directory, without hidden ones and links, which could lead out of it.
fn files(directory: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut left = vec![String::new()];
    while let Some(place) = left.pop() {
        let unreadable = |error: std::io::Error| format!("`{place}` cannot be read: {error}");
        for entry in fs::read_dir(directory.join(&place)).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let kind = entry.file_type().map_err(unreadable)?;
            let path = if place.is_empty() { name.to_owned() } else { format!("{place}/{name}") };
            if name.starts_with('.') || name == "__pycache__" || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                left.push(path);
            } else if kind.is_file() && path != FILE {
                found.push(path);
            }
            if found.len() + left.len() > MAX_FILES {
                return Err(format!("it has more than {MAX_FILES} files"));
            }
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill(name: &str, text: &str) -> Result<Skill, SkillError> {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join(name);
        fs::create_dir_all(directory.join("scripts")).unwrap();
        fs::create_dir_all(directory.join("references")).unwrap();
        fs::write(directory.join(FILE), text).unwrap();
        for file in ["scripts/b.sh", "scripts/a.py", "references/x.md", "setup.py", ".hidden"] {
            fs::write(directory.join(file), "text").unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", directory.join("scripts/link.py")).unwrap();
        let skill = Skill::read(&directory)?;
        assert_eq!(skill.text("references/x.md").unwrap(), "text");
        for outside in ["../../etc/passwd", "/etc/passwd", "scripts/link.py", ".hidden"] {
            assert!(skill.text(outside).is_err(), "{outside}");
        }
        Ok(skill)
    }

    #[test]
    fn a_skill_has_what_its_front_matter_and_its_directory_say() {
        let text = "---\nname: make-pdf\ndescription: >-\n  Makes a PDF.\n  Use it for PDFs.\n\
                    license: MIT\ncompatibility: Python 3, internet access\n\
                    metadata:\n  version: \"1.0\"\n\
                    allowed-tools: Bash(git diff:*) Read\n---\n\n# How\n\n---\nmore\n";
        let skill = skill("make-pdf", text).unwrap();
        assert_eq!(skill.description, "Makes a PDF. Use it for PDFs.");
        assert_eq!(skill.allowed_tools, ["Bash(git diff:*)", "Read"]);
        assert_eq!(skill.body, "# How\n\n---\nmore");
        assert_eq!(skill.metadata["version"], "1.0");
        assert_eq!(skill.files, ["references/x.md", "scripts/a.py", "scripts/b.sh", "setup.py"]);
        let scripts: Vec<_> = skill.scripts().collect();
        assert_eq!(scripts.len(), 3);
        assert_eq!(skill.script("a.py").unwrap(), ("scripts/a.py", Language::Python));
        assert_eq!(skill.script("./scripts/b.sh").unwrap().1, Language::Shell);
        assert!(skill.script("c.py").unwrap_err().to_string().contains("scripts/a.py, scripts/b"));
        assert!(skill.asks_for_network());
    }

    #[test]
    fn the_network_is_asked_for_in_words_or_by_a_tool() {
        let asks = |fields: &str| {
            let text = format!("---\nname: a\ndescription: x\n{fields}\n---\n");
            skill("a", &text).unwrap().asks_for_network()
        };
        assert!(asks("allowed-tools: [WebFetch, Read]"));
        assert!(asks("allowed-tools: Read Bash(curl:*)"));
        assert!(!asks("allowed-tools: Bash Read"));
        assert!(!asks("compatibility: Python 3, no network needed"));
        assert!(!asks("license: MIT"));
    }

    #[test]
    fn what_is_no_skill_is_refused_with_the_reason() {
        let long = "x".repeat(MAX_DESCRIPTION + 1);
        for (name, text, reason) in [
            ("a", "# A", "does not begin with `---`"),
            ("a", "---\nname: a\n", "no end"),
            ("a", "---\nname: a\n---\n", "description"),
            ("a", "---\nname: [\n---\n", ""),
            ("a", "---\nname: b\ndescription: x\n---\n", "not that of its directory, `a`"),
            ("A", "---\nname: A\ndescription: x\n---\n", "small letters"),
            ("a--b", "---\nname: a--b\ndescription: x\n---\n", "single hyphens"),
            ("a", &format!("---\nname: a\ndescription: {long}\n---\n"), "1025 characters"),
            ("a", "---\nname: a\ndescription: ''\n---\n", "0 characters"),
        ] {
            let error = skill(name, text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
