//! The results of each module: read from the driver's output, and kept in a file between calls.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The test results of one module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Module {
    pub(super) ok: usize,
    pub(super) skipped: usize,
    /// Why the whole module was skipped.
    pub(super) skip: Option<String>,
    pub(super) wrong: Vec<Wrong>,
    pub(super) seconds: u64,
}

/// A failing test, or a failing module: it cannot be imported, or its session ended outside of any
/// test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// `test_json: test_fail.TestCFail.test_truncated_input`, or `test_json`.
    pub(super) id: String,
    pub(super) reason: String,
    /// `false` for the set-up of a class or for the module itself.
    pub(super) is_test: bool,
}

/// How far a session got.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reached {
    /// To its end.
    Done,
    /// To a test with this number and name, which has not ended.
    Within(Option<usize>, String),
    /// To a point outside of any test.
    Between,
}

impl Module {
    /// Adds the output of one session.
    pub(super) fn read(&mut self, module: &str, lines: &str) -> Reached {
        let mut reached = Reached::Between;
        // An incomplete line was being written when the session died.
        for line in lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let text = |field: &str| line.get(field).and_then(Value::as_str);
            let reason = || text("reason").unwrap_or_default().to_owned();
            let id = text("id").map(|id| name(module, id));
            match (text("module"), id, text("outcome")) {
                (Some("skipped"), ..) => {
                    self.skip = Some(reason());
                    reached = Reached::Done;
                }
                (Some("error"), ..) => {
                    self.add_wrong(module.to_owned(), reason(), false);
                    reached = Reached::Done;
                }
                (Some(_), ..) => reached = Reached::Done,
                (None, Some(id), None) => {
                    let number = line.get("start").and_then(Value::as_u64);
                    reached = Reached::Within(number.and_then(|n| n.try_into().ok()), id);
                }
                (None, Some(id), Some(outcome)) => {
                    match outcome {
                        "ok" => self.ok += 1,
                        "skipped" => self.skipped += 1,
                        _ => {
                            let is_test = matches!(reached, Reached::Within(..));
                            self.add_wrong(id, reason(), is_test);
                        }
                    }
                    reached = Reached::Between;
                }
                (None, None, _) => {}
            }
        }
        reached
    }

    pub(super) fn add_wrong(&mut self, id: String, reason: String, is_test: bool) {
        self.wrong.push(Wrong { id, reason, is_test });
    }

    /// Returns a one-line summary.
    pub(super) fn summary(&self) -> String {
        if let Some(reason) = &self.skip {
            return format!("skipped: {}", reason.lines().next().unwrap_or_default());
        }
        let Self { ok, skipped, seconds, .. } = self;
        format!("{ok} ok, {skipped} skipped, {} wrong, {seconds} s", self.wrong.len())
    }

    fn to_json(&self) -> Value {
        let wrong: Vec<_> =
            self.wrong.iter().map(|wrong| json!([wrong.id, wrong.reason, wrong.is_test])).collect();
        let Self { ok, skipped, skip, seconds, .. } = self;
        json!({"ok": ok, "skipped": skipped, "skip": skip, "wrong": wrong, "seconds": seconds})
    }

    fn from_json(value: &Value) -> Option<Self> {
        let number = |field: &str| value.get(field)?.as_u64();
        let wrong = |wrong: &Value| {
            Some(Wrong {
                id: wrong.get(0)?.as_str()?.to_owned(),
                reason: wrong.get(1)?.as_str()?.to_owned(),
                is_test: wrong.get(2)?.as_bool()?,
            })
        };
        Some(Self {
            ok: number("ok")?.try_into().ok()?,
            skipped: number("skipped")?.try_into().ok()?,
            skip: value.get("skip")?.as_str().map(str::to_owned),
            wrong: value.get("wrong")?.as_array()?.iter().map(wrong).collect::<Option<_>>()?,
            seconds: number("seconds")?,
        })
    }
}

/// Returns a test's name, prefixed with its module. Tests of a module may be defined elsewhere,
/// such as doctests.
fn name(module: &str, id: &str) -> String {
    let inner = id.strip_prefix("test.").unwrap_or(id);
    let inner = inner.strip_prefix(module).and_then(|rest| rest.strip_prefix('.')).unwrap_or(id);
    format!("{module}: {inner}")
}

/// The results of all modules that ran, stored in a file.
#[derive(Debug)]
pub(super) struct Results {
    file: PathBuf,
    key: String,
    modules: BTreeMap<String, Module>,
}

impl Results {
    /// Reads the stored results, unless they have another key, that is, belong to another program
    /// or other tests.
    pub(super) fn open(file: PathBuf, key: &str) -> Result<Self> {
        let kept = match fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Value::Null,
            Err(error) => {
                return Err(error).with_context(|| format!("cannot read `{}`", file.display()));
            }
        };
        let same = kept.get("key").and_then(Value::as_str) == Some(key);
        let modules = kept.get("modules").and_then(Value::as_object).filter(|_| same);
        let modules = modules.into_iter().flatten();
        let modules =
            modules.filter_map(|(name, value)| Some((name.clone(), Module::from_json(value)?)));
        let modules = modules.collect();
        Ok(Self { file, key: key.to_owned(), modules })
    }

    pub(super) fn module(&self, name: &str) -> Option<&Module> {
        self.modules.get(name)
    }

    pub(super) fn keep(&mut self, name: &str, module: Module) -> Result<()> {
        self.modules.insert(name.to_owned(), module);
        let modules: serde_json::Map<String, Value> =
            self.modules.iter().map(|(name, module)| (name.clone(), module.to_json())).collect();
        let text = json!({"key": self.key, "modules": modules}).to_string();
        let shown = || format!("cannot write `{}`", self.file.display());
        // Replaced in one step, so that an interrupted call leaves the old results.
        let new = self.file.with_extension("new");
        fs::write(&new, text).and_then(|()| fs::rename(&new, &self.file)).with_context(shown)
    }
}

/// Sums over modules.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    modules: usize,
    modules_skipped: usize,
    tests: usize,
    ok: usize,
    skipped: usize,
    wrong: usize,
}

impl Counts {
    pub(super) fn of<'a>(modules: impl Iterator<Item = &'a Module>) -> Self {
        let mut counts = Self::default();
        for module in modules {
            let wrong_tests = module.wrong.iter().filter(|wrong| wrong.is_test).count();
            counts.tests += module.ok + module.skipped + wrong_tests;
            counts.ok += module.ok;
            counts.skipped += module.skipped;
            counts.wrong += module.wrong.len();
            match module.skip {
                Some(_) => counts.modules_skipped += 1,
                None => counts.modules += 1,
            }
        }
        counts
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { modules, modules_skipped, tests, ok, skipped, wrong } = self;
        write!(
            f,
            "{modules} modules ran, with {tests} tests: {ok} are ok, {skipped} are skipped, \
             {wrong} are wrong. {modules_skipped} modules are skipped as a whole."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &str = r#"{"start": 0, "id": "test.test_x.A.test_a"}
{"id": "test.test_x.A.test_a", "outcome": "ok", "reason": null}
{"start": 1, "id": "test.test_x.A.test_b"}
{"id": "test.test_x.A.test_b", "outcome": "failed", "reason": "1 != 2"}
{"id": "setUpClass (test.test_x.B)", "outcome": "error", "reason": "no"}
{"start": 5, "id": "json.loads"}
{"id": "json.loads", "outcome": "skipped", "reason": "why not"}
"#;

    fn read(lines: &str) -> (Module, Reached) {
        let mut module = Module::default();
        let reached = module.read("test_x", lines);
        (module, reached)
    }

    #[test]
    fn outcomes_are_counted_and_what_is_wrong_is_named() {
        let (module, reached) = read(&format!("{LINES}{}", r#"{"module": "done"}"#));
        assert_eq!((module.ok, module.skipped, reached), (1, 1, Reached::Done));
        let wrong: Vec<_> = module.wrong.iter().map(|wrong| (&*wrong.id, wrong.is_test)).collect();
        let set_up = "test_x: setUpClass (test.test_x.B)";
        assert_eq!(wrong, [("test_x: A.test_b", true), (set_up, false)]);
        assert_eq!(
            Counts::of([&module].into_iter()).to_string(),
            "1 modules ran, with 3 tests: 1 are ok, 1 are skipped, 2 are wrong. 0 modules are \
             skipped as a whole."
        );
    }

    #[test]
    fn where_a_session_died_is_known() {
        assert_eq!(read(LINES).1, Reached::Between);
        let start = r#"{"start": 6, "id": "test.test_x.C.test_c"}"#;
        let within = Reached::Within(Some(6), "test_x: C.test_c".to_owned());
        assert_eq!(read(&format!("{LINES}{start}\n{{\"id\": \"te")).1, within);
        let unknown = start.replace('6', "-1");
        let within = Reached::Within(None, "test_x: C.test_c".to_owned());
        assert_eq!(read(&unknown).1, within);
    }

    #[test]
    fn a_module_is_skipped_or_wrong_as_a_whole() {
        let (module, reached) = read(r#"{"module": "skipped", "reason": "no curses"}"#);
        assert_eq!((module.skip.as_deref(), reached), (Some("no curses"), Reached::Done));
        assert_eq!(module.summary(), "skipped: no curses");
        let (module, _) = read(r#"{"module": "error", "reason": "SyntaxError"}"#);
        assert_eq!(module.wrong[0].id, "test_x");
        assert_eq!(module.summary(), "0 ok, 0 skipped, 1 wrong, 0 s");
    }

    #[test]
    fn results_are_those_of_their_key() {
        let file = std::env::temp_dir().join(format!("xtask-results-{}", std::process::id()));
        let (module, _) = read(LINES);
        Results::open(file.clone(), "a").unwrap().keep("test_x", module.clone()).unwrap();
        assert_eq!(Results::open(file.clone(), "a").unwrap().module("test_x"), Some(&module));
        assert_eq!(Results::open(file.clone(), "b").unwrap().module("test_x"), None);
        fs::remove_file(file).unwrap();
    }
}
