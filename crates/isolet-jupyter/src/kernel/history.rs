//! The cells that a kernel has run, in memory, for front ends that look for them.

use std::collections::{HashSet, VecDeque};

use super::contents::{Access, HistoryEntry, HistoryRequest};

/// The most cells that are kept, and the most bytes of their texts. The oldest go first.
const MAX_CELLS: usize = 10_000;
const MAX_BYTES: usize = 16 << 20;

/// The number that the kernel's session has.
const SESSION: i64 = 1;

/// The cells so far.
#[derive(Default)]
pub(super) struct History {
    cells: VecDeque<Cell>,
    bytes: usize,
}

struct Cell {
    number: u64,
    code: String,
    value: Option<String>,
}

impl Cell {
    fn bytes(&self) -> usize {
        self.code.len() + self.value.as_ref().map_or(0, String::len)
    }

    fn entry(&self, has_output: bool) -> HistoryEntry<'_> {
        if has_output {
            HistoryEntry::WithOutput(SESSION, self.number, (&self.code, self.value.as_deref()))
        } else {
            HistoryEntry::Input(SESSION, self.number, &self.code)
        }
    }
}

impl History {
    /// Adds a cell, with the text of its value.
    pub(super) fn add(&mut self, number: u64, code: String, value: Option<String>) {
        let cell = Cell { number, code, value };
        self.bytes += cell.bytes();
        self.cells.push_back(cell);
        while self.cells.len() > MAX_CELLS || self.bytes > MAX_BYTES {
            let Some(oldest) = self.cells.pop_front() else { break };
            self.bytes -= oldest.bytes();
        }
    }

    /// Returns the entries that a front end asks for, from the oldest on.
    pub(super) fn find(&self, request: &HistoryRequest) -> Vec<HistoryEntry<'_>> {
        let mut found: Vec<&Cell> = match &request.access {
            Access::Tail { n } => self.cells.iter().rev().take(*n).collect(),
            Access::Range { session, start, stop } => {
                let is_ours = matches!(*session, 0 | SESSION);
                let is_in = |cell: &&Cell| {
                    let number = i64::try_from(cell.number).unwrap_or(i64::MAX);
                    is_ours && number >= *start && stop.is_none_or(|stop| number < stop)
                };
                self.cells.iter().rev().filter(is_in).collect()
            }
            Access::Search { pattern, n, unique } => {
                let pattern: Vec<char> = pattern.chars().collect();
                let mut seen: HashSet<&str> = HashSet::new();
                let most = n.unwrap_or(usize::MAX);
                let mut found = Vec::new();
                for cell in self.cells.iter().rev().filter(|cell| matches(&pattern, &cell.code)) {
                    if found.len() < most && (!unique || seen.insert(&cell.code)) {
                        found.push(cell);
                    }
                }
                found
            }
        };
        found.reverse();
        found.into_iter().map(|cell| cell.entry(request.output)).collect()
    }
}

/// Returns `true` if a whole text fits a pattern with `*` for any text and `?` for any character.
/// Takes time in proportion to both lengths.
fn matches(pattern: &[char], text: &str) -> bool {
    // Whether the pattern up to each place fits the text so far.
    let mut fits = vec![false; pattern.len() + 1];
    fits[0] = true;
    let pass_stars = |fits: &mut [bool]| {
        for (place, sign) in pattern.iter().enumerate() {
            if *sign == '*' && fits[place] {
                fits[place + 1] = true;
            }
        }
    };
    pass_stars(&mut fits);
    for letter in text.chars() {
        let mut next = vec![false; pattern.len() + 1];
        for (place, sign) in pattern.iter().enumerate() {
            match sign {
                '*' => next[place] |= fits[place],
                '?' => next[place + 1] |= fits[place],
                sign => next[place + 1] |= fits[place] && *sign == letter,
            }
        }
        pass_stars(&mut next);
        fits = next;
    }
    fits.last() == Some(&true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(history: &History, request: &str) -> String {
        let request: HistoryRequest = serde_json::from_str(request).unwrap();
        serde_json::to_string(&history.find(&request)).unwrap()
    }

    #[test]
    fn cells_are_found_by_their_place_and_by_patterns() {
        let mut history = History::default();
        for (number, code) in [(1, "a = 1"), (2, "a"), (3, "b*2"), (4, "a")] {
            history.add(number, code.to_owned(), (code == "a").then(|| "1".to_owned()));
        }
        let search = |pattern: &str, rest: &str| {
            let text = format!(r#"{{"hist_access_type":"search","pattern":"{pattern}"{rest}}}"#);
            found(&history, &text)
        };
        assert_eq!(
            found(&history, r#"{"hist_access_type":"tail","n":2,"output":true}"#),
            r#"[[1,3,["b*2",null]],[1,4,["a","1"]]]"#
        );
        assert_eq!(
            found(&history, r#"{"hist_access_type":"range","start":2,"stop":4,"session":0}"#),
            r#"[[1,2,"a"],[1,3,"b*2"]]"#
        );
        let other = r#"{"hist_access_type":"range","start":0,"stop":9,"session":7}"#;
        assert_eq!(found(&history, other), "[]");
        assert_eq!(search("a*", ""), r#"[[1,1,"a = 1"],[1,2,"a"],[1,4,"a"]]"#);
        assert_eq!(search("a", r#","unique":true"#), r#"[[1,4,"a"]]"#);
        assert_eq!(search("?*2", r#","n":1"#), r#"[[1,3,"b*2"]]"#);
        assert_eq!(search("", ""), "[]");
    }

    #[test]
    fn a_pattern_of_stars_takes_no_long_time() {
        let pattern: Vec<char> = "*a".repeat(200).chars().collect();
        assert!(!matches(&pattern, &"a".repeat(199)));
        assert!(matches(&pattern, &"ba".repeat(200)));
    }

    #[test]
    fn the_oldest_cells_make_room() {
        let mut history = History::default();
        for number in 0..MAX_CELLS as u64 + 10 {
            history.add(number, "x".to_owned(), None);
        }
        assert_eq!((history.cells.len(), history.cells[0].number), (MAX_CELLS, 10));
        history.add(0, "x".repeat(MAX_BYTES), None);
        assert_eq!((history.cells.len(), history.bytes), (1, MAX_BYTES));
        history.add(0, "x".repeat(MAX_BYTES + 1), None);
        assert_eq!((history.cells.len(), history.bytes), (0, 0));
    }
}
