//! The list of expected failures with their reasons, and the comparison with actual failures.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail, ensure};

use super::results::Module;

/// The path of the list.
pub(super) const FILE: &str = "xtask/src/cpython_tests/expected.txt";

const LIST: &str = include_str!("expected.txt");

/// The expected failures. Every other test is expected to pass.
#[derive(Debug)]
pub(super) struct Expected {
    ids: BTreeMap<&'static str, Often>,
}

/// How often a test fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Often {
    Always,
    Sometimes,
}

/// The differences from the expected failures.
#[derive(Debug, Default)]
pub(super) struct Difference {
    /// Names and reasons.
    newly_wrong: Vec<(String, String)>,
    no_longer_wrong: Vec<String>,
}

impl Expected {
    /// Parses the list, which is compiled into this program.
    pub(super) fn read() -> Result<Self> {
        Self::parse(LIST)
    }

    /// Parses the list. A line is a reason or, indented beneath it, a failure with that reason. A
    /// `?` marks an occasional failure.
    fn parse(list: &'static str) -> Result<Self> {
        let mut ids = BTreeMap::new();
        let mut reason = false;
        for (index, line) in list.lines().enumerate() {
            let place = || format!("{FILE}:{}", index + 1);
            let words = line.trim();
            if words.is_empty() || words.starts_with('#') {
                continue;
            }
            if !line.starts_with(' ') {
                reason = true;
                continue;
            }
            let (words, often) = match words.strip_prefix("? ") {
                Some(words) => (words, Often::Sometimes),
                None => (words, Often::Always),
            };
            ensure!(reason, "{}: `{words}` has no reason above it", place());
            ensure!(words.starts_with("test_"), "{}: `{words}` is not a test", place());
            if ids.insert(words, often).is_some() {
                bail!("{}: `{words}` is there twice", place());
            }
        }
        Ok(Self { ids })
    }

    /// Compares the list with the failures in the modules that ran.
    pub(super) fn compare(&self, ran: &BTreeMap<&str, &Module>) -> Difference {
        let mut difference = Difference::default();
        let mut wrong = BTreeSet::new();
        for one in ran.values().flat_map(|module| &module.wrong) {
            let new = wrong.insert(&*one.id);
            if new && !self.ids.contains_key(&*one.id) {
                difference.newly_wrong.push((one.id.clone(), one.reason.clone()));
            }
        }
        for (id, often) in &self.ids {
            let module = id.split(':').next().unwrap_or_default();
            if *often == Often::Always && ran.contains_key(module) && !wrong.contains(id) {
                difference.no_longer_wrong.push((*id).to_owned());
            }
        }
        difference
    }
}

impl Difference {
    pub(super) fn is_none(&self) -> bool {
        self.newly_wrong.is_empty() && self.no_longer_wrong.is_empty()
    }

    /// Returns one line for each difference.
    pub(super) fn lines(&self) -> impl Iterator<Item = String> {
        let newly = self.newly_wrong.iter().map(|(id, reason)| {
            // The last line of a traceback that is not part of a comparison of long texts.
            let said = reason.lines().rev().find(|line| line.contains("Error: "));
            let said = said.or_else(|| reason.lines().last()).unwrap_or_default();
            format!("wrong, and not expected to be: {id}: {said}")
        });
        let no_longer = self.no_longer_wrong.iter();
        newly.chain(no_longer.map(|id| format!("expected to be wrong, and is not: {id}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "# About.\n\nA reason.\n    test_x: A.test_a\n    ? test_x: A.test_c\n    test_y\n";

    fn module(wrong: &[&str]) -> Module {
        let mut module = Module::default();
        for id in wrong {
            let reason = "Traceback:\nAssertionError: 1 != 2\n- more".to_owned();
            module.add_wrong((*id).to_owned(), reason, true);
        }
        module
    }

    fn lines(ran: &[(&str, &Module)]) -> Vec<String> {
        let ran = ran.iter().copied().collect();
        Expected::parse(SMALL).unwrap().compare(&ran).lines().collect()
    }

    #[test]
    fn the_list_is_well_formed() {
        Expected::read().unwrap();
    }

    #[test]
    fn what_is_as_expected_is_no_difference() {
        let (x, y) = (module(&["test_x: A.test_a"]), module(&["test_y"]));
        assert!(lines(&[("test_x", &x), ("test_y", &y)]).is_empty());
        let sometimes = module(&["test_x: A.test_a", "test_x: A.test_c"]);
        assert!(lines(&[("test_x", &sometimes)]).is_empty());
        assert!(lines(&[("test_z", &module(&[]))]).is_empty(), "what did not run is not missed");
    }

    #[test]
    fn what_is_otherwise_is_said_in_both_directions() {
        let x = module(&["test_x: A.test_b", "test_x: A.test_b"]);
        assert_eq!(
            lines(&[("test_x", &x)]),
            [
                "wrong, and not expected to be: test_x: A.test_b: AssertionError: 1 != 2",
                "expected to be wrong, and is not: test_x: A.test_a",
            ]
        );
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        for (list, reason) in [
            ("    test_x: a", ":1: `test_x: a` has no reason"),
            ("Why.\n    test_x: a\n    test_x: a", ":3: `test_x: a` is there twice"),
            ("Why.\n    json", ":2: `json` is not a test"),
        ] {
            let error = Expected::parse(list).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
}
