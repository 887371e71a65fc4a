//! The scenarios of the benchmark, which are the rows of the table. `benches/peers/peer.py`
//! describes what a subject does for each.

/// Which process does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// This program starts the subject's command.
    Command,
    /// The subject's running process.
    Served,
    /// A new process of the subject.
    ServedAfresh,
}

/// The unit of the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Milliseconds,
    Mebibytes,
}

/// One row.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// The description in the table.
    pub(super) what: &'static str,
    pub(super) unit: Unit,
    /// The goal for isolet in a worker, in the unit.
    pub(super) goal: Option<f64>,
    pub(super) kind: Kind,
    /// How often it runs in a round.
    pub(super) times: usize,
    /// It runs once in this many rounds.
    every: usize,
}

impl Scenario {
    pub(super) fn is_due(&self, round: usize) -> bool {
        match round.checked_sub(1) {
            Some(measured) => measured.is_multiple_of(self.every),
            // A scenario with a new process needs no warm-up.
            None => self.kind != Kind::ServedAfresh,
        }
    }

    const fn served(name: &'static str, what: &'static str, times: usize) -> Self {
        let unit = Unit::Milliseconds;
        Self { name, what, unit, goal: None, kind: Kind::Served, times, every: 1 }
    }

    const fn goal(mut self, goal: f64) -> Self {
        self.goal = Some(goal);
        self
    }
}

/// All scenarios, in the order in which they run in a round.
pub(super) const SCENARIOS: &[Scenario] = &[
    Scenario {
        kind: Kind::Command,
        ..Scenario::served("command", "a process that prints `40+2`, from start to exit", 1)
    }
    .goal(60.0),
    Scenario::served("session", "a further interpreter, to the result of `40+2`", 2).goal(20.0),
    Scenario::served("burst", "one of eight that are opened one after another", 1),
    Scenario::served("pool", "a further one that is kept ready", 3).goal(0.3),
    Scenario::served("run", "`40+2` in a warm session", 20).goal(0.08),
    Scenario::served("compute", "calls, integers, a dict and strings", 2),
    Scenario::served("tool", "a tool call, in a loop of 200", 3).goal(0.03),
    Scenario::served("value_in", "a `str` of 1 MiB given to a session", 3).goal(1.0),
    Scenario::served("value_out", "a `str` of 1 MiB as a run's result", 3),
    Scenario::served("output", "1 MiB printed in lines of 100 characters", 2),
    Scenario::served("lines", "a mounted file of 500,000 lines, line by line", 2),
    Scenario::served("small_reads", "the same file in reads of 2,700 bytes", 2),
    Scenario {
        unit: Unit::Mebibytes,
        kind: Kind::ServedAfresh,
        every: 5,
        ..Scenario::served("memory", "for each further idle session", 1)
    }
    .goal(1.2),
    Scenario::served("fork", "a copy of a session with a variable", 3).goal(2.0),
    Scenario::served("fork_large", "a copy of one with 200 MB of objects", 2).goal(15.0),
    Scenario::served("fork_run", "the first run in a copy", 3).goal(0.8),
    Scenario {
        unit: Unit::Mebibytes,
        kind: Kind::ServedAfresh,
        every: 5,
        ..Scenario::served("fork_memory", "for each further idle copy", 1)
    }
    .goal(3.0),
    Scenario::served("save", "a session with a few variables, to a file", 3).goal(8.0),
    Scenario {
        unit: Unit::Mebibytes,
        every: 5,
        ..Scenario::served("save_size", "the size of that file", 1)
    }
    .goal(1.0),
    Scenario::served("restore", "a session of that file, to its first result", 3).goal(8.0),
    Scenario::served("command_packages", "a process that uses numpy and pandas (`--with`)", 1),
    Scenario::served("session_packages", "a session of an image with both, to its first result", 2),
    Scenario {
        unit: Unit::Mebibytes,
        kind: Kind::ServedAfresh,
        every: 5,
        ..Scenario::served("memory_packages", "for each further idle one", 1)
    },
    Scenario::served("save_packages", "a session of an image with numpy and pandas", 1).goal(300.0),
    Scenario::served("restore_packages", "a session of that file, to its first result", 1)
        .goal(100.0),
    Scenario::served("save_loaded", "a session that has loaded numpy and pandas itself", 1)
        .goal(300.0),
    Scenario::served("restore_loaded", "a session of that file, to its first result", 1)
        .goal(100.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_scenarios_are_done_now_and_then() {
        let rounds = |name: &str| -> Vec<usize> {
            let scenario = SCENARIOS.iter().find(|scenario| scenario.name == name).unwrap();
            (0..=10).filter(|round| scenario.is_due(*round)).collect()
        };
        assert_eq!(rounds("memory"), [1, 6]);
        assert_eq!(rounds("run").len(), 11);
    }
}
