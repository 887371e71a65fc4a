//! What the scripts have seen, with the numbers of tokens in the place of texts.

use std::collections::HashMap;

use serde_json::Value;

/// Everything that was measured.
#[derive(Debug)]
pub(super) struct Seen {
    /// For each set of servers. The last one has all servers.
    pub(super) definitions: Vec<Definitions>,
    pub(super) tasks: Vec<Task>,
    /// Nanoseconds of one call, made directly and by a program.
    pub(super) nested: (Vec<u64>, Vec<u64>),
}

/// The tokens of the definitions of tools.
#[derive(Debug)]
pub(super) struct Definitions {
    pub(super) servers: Vec<String>,
    pub(super) tools: u64,
    /// What the description of `run_python` has of each tool.
    pub(super) form: String,
    pub(super) direct: u64,
    pub(super) code: u64,
}

#[derive(Debug)]
pub(super) struct Task {
    pub(super) name: String,
    pub(super) what: String,
    pub(super) servers: Vec<String>,
    /// Whether it is one where code mode is not expected to help.
    pub(super) is_small: bool,
    /// The turns of direct calls, one call each.
    pub(super) turns_one_by_one: u64,
    pub(super) direct: Part,
    pub(super) code: Part,
    /// What a model does before if it does not know the functions, or their results.
    pub(super) search: Part,
    pub(super) look: Option<Part>,
    pub(super) times: Vec<Times>,
}

/// A part of a transcript, in turns and tokens.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Part {
    pub(super) turns: u64,
    pub(super) wrote: u64,
    pub(super) read: u64,
    /// The same as `read`, as structured content. Zero if there is none.
    pub(super) structured: u64,
    pub(super) image: u64,
}

/// Nanoseconds at a latency.
#[derive(Debug)]
pub(super) struct Times {
    pub(super) latency: u64,
    pub(super) one_by_one: Vec<u64>,
    pub(super) side_by_side: Vec<u64>,
    pub(super) code: Vec<u64>,
    /// The same with a client of the revision 2026-07-28.
    pub(super) code_modern: Vec<u64>,
}

type Counts = HashMap<String, u64>;

/// Returns all texts whose tokens count.
pub(super) fn texts(seen: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    collect(seen, &mut texts);
    texts.sort_unstable();
    texts.dedup();
    texts
}

fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(items) => {
            for (name, item) in items {
                let counts =
                    ["wrote", "read", "structured", "direct", "code"].contains(&name.as_str());
                match item {
                    Value::String(text) if counts => texts.push(text.clone()),
                    item => collect(item, texts),
                }
            }
        }
        _ => {}
    }
}

impl Seen {
    /// Reads what the scripts have written. Returns `None` if something is missing.
    pub(super) fn read(seen: &Value, counts: &Counts) -> Option<Self> {
        let list = |name: &str| seen.get(name)?.as_array();
        let definitions = list("definitions")?.iter().map(|one| Definitions::read(one, counts));
        let tasks = list("tasks")?.iter().map(|one| Task::read(one, counts));
        let nested = seen.get("nested")?;
        Some(Self {
            definitions: definitions.collect::<Option<_>>()?,
            tasks: tasks.collect::<Option<_>>()?,
            nested: (numbers(nested, "direct")?, numbers(nested, "code")?),
        })
    }

    /// Returns the definitions of exactly these servers.
    pub(super) fn definitions_of(&self, servers: &[String]) -> Option<&Definitions> {
        self.definitions.iter().find(|one| one.servers == servers)
    }
}

impl Definitions {
    fn read(value: &Value, counts: &Counts) -> Option<Self> {
        Some(Self {
            servers: words(value, "servers")?,
            tools: value.get("tools")?.as_u64()?,
            form: word(value, "form")?,
            direct: count(value, "direct", counts)?,
            code: count(value, "code", counts)?,
        })
    }
}

impl Task {
    fn read(value: &Value, counts: &Counts) -> Option<Self> {
        let part = |name: &str| Part::read(value.get(name)?, counts);
        let times = value.get("times")?.as_array()?.iter().map(Times::read);
        Some(Self {
            name: word(value, "name")?,
            what: word(value, "what")?,
            servers: words(value, "servers")?,
            is_small: value.get("small")?.as_bool()?,
            turns_one_by_one: value.get("turns_one_by_one")?.as_u64()?,
            direct: part("direct")?,
            code: part("code")?,
            search: part("search")?,
            look: if value.get("look")?.is_null() { None } else { Some(part("look")?) },
            times: times.collect::<Option<_>>()?,
        })
    }

    /// Returns code mode by a model that first looks at what it does not know.
    pub(super) fn careful(&self, knows_functions: bool) -> Part {
        let search = if knows_functions { Part::default() } else { self.search };
        search.and(self.look.unwrap_or_default()).and(self.code)
    }
}

impl Part {
    fn read(value: &Value, counts: &Counts) -> Option<Self> {
        Some(Self {
            turns: value.get("turns")?.as_u64()?,
            wrote: count(value, "wrote", counts)?,
            read: count(value, "read", counts)?,
            structured: count(value, "structured", counts)?,
            image: value.get("image_tokens")?.as_u64()?,
        })
    }

    pub(super) fn tokens(self) -> u64 {
        self.wrote + self.read + self.image
    }

    /// Returns the tokens for a client that shows the model structured content where there is some.
    pub(super) fn tokens_structured(self) -> u64 {
        let read = if self.structured > 0 { self.structured } else { self.read };
        self.wrote + read + self.image
    }

    fn and(self, other: Self) -> Self {
        Self {
            turns: self.turns + other.turns,
            wrote: self.wrote + other.wrote,
            read: self.read + other.read,
            structured: self.structured + other.structured,
            image: self.image + other.image,
        }
    }
}

impl Times {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            latency: value.get("latency")?.as_u64()?,
            one_by_one: numbers(value, "one_by_one")?,
            side_by_side: numbers(value, "side_by_side")?,
            code: numbers(value, "code")?,
            code_modern: numbers(value, "code_modern")?,
        })
    }
}

fn word(value: &Value, name: &str) -> Option<String> {
    value.get(name)?.as_str().map(str::to_owned)
}

fn words(value: &Value, name: &str) -> Option<Vec<String>> {
    let words = value.get(name)?.as_array()?.iter();
    words.map(|word| word.as_str().map(str::to_owned)).collect()
}

fn numbers(value: &Value, name: &str) -> Option<Vec<u64>> {
    value.get(name)?.as_array()?.iter().map(Value::as_u64).collect()
}

fn count(value: &Value, name: &str, counts: &Counts) -> Option<u64> {
    counts.get(value.get(name)?.as_str()?).copied()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns one task of one server. The tokens of a text are its characters.
    pub(in super::super) fn example() -> Seen {
        let part = |wrote: usize, read: usize, structured: usize| {
            let text = |length: usize| "x".repeat(length);
            json!({"turns": 1, "calls": 1, "image_tokens": 0, "wrote": text(wrote),
                "read": text(read), "structured": text(structured)})
        };
        let set = |servers: &[&str], form: &str, direct: usize| {
            json!({"servers": servers, "tools": 3, "form": form,
                "direct": "x".repeat(direct), "code": "x".repeat(50)})
        };
        let seen = json!({
            "definitions": [set(&["a"], "signatures", 100), set(&["a", "b"], "names", 900)],
            "tasks": [{
                "name": "t", "what": "a task", "servers": ["a"], "small": false,
                "turns_one_by_one": 4, "direct": part(10, 200, 0), "code": part(20, 5, 30),
                "search": part(2, 40, 0), "look": part(3, 6, 0),
                "times": [{"latency": 50, "one_by_one": [2_000_000], "side_by_side": [1_000_000],
                    "code": [500_000], "code_modern": [600_000]}],
            }],
            "nested": {"direct": [10_000], "code": [20_000]},
        });
        let counts = texts(&seen).into_iter().map(|text| (text.clone(), text.len() as u64));
        Seen::read(&seen, &counts.collect()).unwrap()
    }

    #[test]
    fn texts_become_numbers_of_tokens() {
        let seen = example();
        let task = &seen.tasks[0];
        assert_eq!((task.direct.tokens(), task.code.tokens()), (210, 25));
        assert_eq!((task.direct.tokens_structured(), task.code.tokens_structured()), (210, 50));
        assert_eq!(seen.definitions_of(&task.servers).unwrap().direct, 100);
        assert!(seen.definitions_of(&["b".to_owned()]).is_none());
    }

    #[test]
    fn careful_model_searches_only_for_what_it_was_not_told() {
        let task = &example().tasks[0];
        let (told, not_told) = (task.careful(true), task.careful(false));
        assert_eq!((told.turns, told.tokens()), (2, 34));
        assert_eq!((not_told.turns, not_told.tokens()), (3, 76));
    }

    #[test]
    fn what_is_missing_is_noticed() {
        assert!(Seen::read(&json!({"definitions": [], "tasks": []}), &Counts::new()).is_none());
    }
}
