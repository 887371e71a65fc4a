//! What became of one program in one column.

use std::fmt;

use serde_json::Value;

/// How a program was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    /// In a session on a thread of the host.
    Thread,
    /// In a session in a worker.
    Process,
    /// As native code in a worker.
    Native,
    /// As native code in a worker without the lockdown.
    Unconfined,
}

impl Column {
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Process => "process",
            Self::Native => "native",
            Self::Unconfined => "unconfined",
        }
    }

    fn of(title: &str) -> Option<Self> {
        let all = [Self::Thread, Self::Process, Self::Native, Self::Unconfined];
        all.into_iter().find(|column| column.title() == title)
    }
}

/// A program in a column.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: String,
    pub(super) name: String,
    pub(super) what: String,
    pub(super) source: String,
    pub(super) column: Column,
    /// What the program has reached, each in words.
    pub(super) reached: Vec<String>,
    pub(super) ended: String,
}

impl Row {
    /// Reads a line of the program that runs the others, if it is about a run.
    pub(super) fn read(line: &str) -> Option<Self> {
        let line: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| Some(line.get(name)?.as_str()?.to_owned());
        let reached = line.get("reached")?.as_array()?;
        Some(Self {
            kind: text("kind")?,
            name: text("name")?,
            what: text("what")?,
            source: text("source")?,
            column: Column::of(&text("column")?)?,
            reached: reached.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            ended: text("ended")?,
        })
    }

    /// Returns `true` for a program that may read flags.
    pub(super) fn is_control(&self) -> bool {
        self.kind == "Control"
    }

    /// Returns `true` if it has reached what it must not.
    pub(super) fn is_escape(&self) -> bool {
        !self.is_control() && self.column != Column::Unconfined && !self.reached.is_empty()
    }

    /// Returns `true` if it has read the flag at this place.
    pub(super) fn has_read(&self, place: &str) -> bool {
        self.reached.iter().any(|reached| *reached == format!("the flag in the {place}"))
    }

    /// Returns `true` if the embedding process did not live on.
    pub(super) fn has_ended_its_host(&self) -> bool {
        self.ended.starts_with("the host ")
    }

    /// Returns `true` if the kernel has killed the worker for a system call.
    pub(super) fn is_killed(&self) -> bool {
        self.ended.contains("SIGSYS")
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reached =
            if self.reached.is_empty() { "nothing".to_owned() } else { self.reached.join(", ") };
        let ended: String = self.ended.chars().take(100).collect();
        write!(f, "{}: {}: reached {reached}; {ended}", self.column.title(), self.name)
    }
}
