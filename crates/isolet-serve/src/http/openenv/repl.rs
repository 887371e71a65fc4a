//! The environment of recursive language models: code works on a context until it sets an answer.

use std::collections::{BTreeSet, HashSet};

use isolet::Value;
use isolet::profile::python_executor::{ARGUMENT, FINAL_ANSWER, Mark, PRELUDE, PRELUDE_NAME};
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};

use super::interpreter::{Helpers, Interpreter, failure, joined, output};
use super::{Failed, Observation};
use isolet_service::core::{Execution, Run, RunOptions};
use isolet_service::node::Charge;

pub(super) const HELPERS: Helpers = (PRELUDE, PRELUDE_NAME);

/// The number of iterations after which an episode ends.
const MAX_ITERATIONS: u64 = 30;

/// The maximum length of each output and of the context's preview, in characters.
const MAX_OUTPUT_CHARS: usize = 8192;
const PREVIEW_CHARS: usize = 500;

/// The rewards for an episode without an answer, and for failing code.
const NO_ANSWER: f64 = -0.1;
const FAILURE: f64 = -0.05;

pub(super) struct Repl {
    interpreter: Interpreter,
    /// `None` before the first reset.
    episode: Option<Episode>,
}

struct Episode {
    id: String,
    /// The beginning of the context, and the context's length in characters. The interpreter has
    /// the whole.
    preview: String,
    length: usize,
    task: String,
    expected: Option<String>,
    iteration: u64,
    /// All names that were bound so far.
    known: HashSet<String>,
    names: Vec<String>,
    answer: Option<String>,
    seconds: f64,
    /// Charges data that is kept until the next episode.
    kept: Charge,
    /// The bytes of the context.
    context_bytes: usize,
}

/// A reset. Unknown fields are ignored.
#[derive(Deserialize)]
pub(super) struct ResetRequest {
    episode_id: Option<String>,
    seed: Option<i64>,
    context: Option<String>,
    task_prompt: Option<String>,
    expected_answer: Option<Json>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    #[serde(default)]
    code: String,
    #[serde(default)]
    is_final: bool,
    #[serde(default)]
    final_answer: Option<String>,
    #[serde(default, rename = "metadata")]
    _metadata: Json,
}

impl Repl {
    pub(super) fn new(interpreter: Interpreter) -> Self {
        Self { interpreter, episode: None }
    }

    pub(super) fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    pub(super) async fn reset(&mut self, given: ResetRequest) -> Result<Observation, Failed> {
        let context = given.context.unwrap_or_default();
        let task = given.task_prompt.unwrap_or_default();
        let expected = given.expected_answer.map(|expected| match expected {
            Json::String(text) => text,
            other => other.to_string(),
        });
        let texts = [Some(&context), Some(&task), expected.as_ref()];
        let mut kept = self.interpreter.charge();
        kept.take(texts.into_iter().flatten().map(String::len).sum::<usize>() as u64)?;
        let preview = context.chars().take(PREVIEW_CHARS).collect();
        let (length, context_bytes) = (context.chars().count(), context.len());
        let answer = Value::dict([("content", Value::from("")), ("ready", false.into())]);
        let mut variables = vec![("answer".to_owned(), answer)];
        let mut said = vec!["REPL environment initialized.".to_owned()];
        if !context.is_empty() {
            variables.push(("context".to_owned(), context.into()));
            said.push(format!(
                "Context loaded ({length} chars). Use 'context' variable to access it."
            ));
        }
        if !task.is_empty() {
            said.push(format!("Task: {task}"));
        }
        said.push(
            "Use answer['content'] to store your answer, and set answer['ready'] = True when done."
                .to_owned(),
        );
        self.interpreter.renew(variables, given.seed).await?;
        let mut episode = Episode {
            id: super::episode(given.episode_id)?,
            preview,
            length,
            task,
            expected,
            iteration: 0,
            known: HashSet::new(),
            names: Vec::new(),
            answer: None,
            seconds: 0.0,
            kept,
            context_bytes,
        };
        episode.look(&self.interpreter).await?;
        episode.known.extend(episode.names.iter().cloned());
        episode.count();
        let result = result(&said.join("\n"), "", &Map::new(), 0.0, None);
        let metadata = json!({"task_prompt": episode.task, "message": "Environment ready."});
        let shown = episode.shown(&result);
        self.episode = Some(episode);
        Ok(Observation { shown, metadata: Some(metadata), reward: 0.0, done: false })
    }

    pub(super) async fn step(
        &mut self,
        action: Action,
        seconds: Option<f64>,
    ) -> Result<Observation, Failed> {
        let Self { interpreter, episode } = self;
        let episode = episode.as_mut().ok_or_else(uninitialized)?;
        episode.iteration += 1;
        if action.is_final {
            episode.answer = Some(action.final_answer.unwrap_or_default());
            episode.count();
            return Ok(episode.finished("Final answer submitted.", true));
        }
        if episode.iteration >= MAX_ITERATIONS {
            if interpreter.is_alive() {
                episode.answer = answer_so_far(interpreter).await?;
                episode.count();
            }
            let text = format!("Maximum iterations ({MAX_ITERATIONS}) reached.");
            return Ok(episode.finished(&text, false));
        }
        let execution = interpreter.run(action.code, seconds).await?;
        let (stdout, value) = output(&execution);
        // A string is shown without quotes and escapes.
        let plain = execution.value().and_then(Value::as_str).unwrap_or(&value);
        let mark = Mark::find(&[&stdout, plain]);
        let exception = failure(&execution, true);
        let stderr = joined(execution.stderr.clone(), exception.as_deref().unwrap_or_default());
        let seconds = execution.usage.wall_time.as_secs_f64();
        episode.seconds += seconds;
        let bound = episode.bound(&execution);
        let success = exception.is_none();
        let result = result(
            &cut(joined(stdout, &value)),
            &cut(stderr),
            &bound,
            seconds,
            exception.as_deref(),
        );
        episode.look(interpreter).await?;
        let answer = match mark {
            Some(Mark::Answer(answer)) => Some(answer),
            _ if !interpreter.is_alive() => None,
            Some(Mark::Variable(name)) => final_answer(interpreter, name.into()).await?,
            None => final_answer(interpreter, Value::None).await?,
        };
        let done = answer.is_some();
        if done {
            episode.answer.clone_from(&answer);
        }
        episode.count();
        let metadata = json!({
            "task_prompt": episode.task,
            "final_answer": answer,
            "execution_time": seconds,
        });
        let reward = match (done, success) {
            (true, _) => episode.outcome(),
            (false, true) => 0.0,
            (false, false) => FAILURE,
        };
        Ok(Observation { shown: episode.shown(&result), metadata: Some(metadata), reward, done })
    }

    pub(super) fn state(&self) -> Result<Json, Failed> {
        let episode = self.episode.as_ref().ok_or_else(uninitialized)?;
        Ok(json!({
            "episode_id": episode.id,
            "step_count": episode.iteration,
            "context": self.interpreter.given("context"),
            "task_prompt": episode.task,
            "iteration": episode.iteration,
            "max_iterations": MAX_ITERATIONS,
            "namespace_keys": episode.names,
            "final_answer": episode.answer,
            "total_execution_time": episode.seconds,
        }))
    }
}

fn uninitialized() -> Failed {
    Failed::Execution("Environment not initialized. Call reset() first.".to_owned())
}

/// Returns the answer from the variable of this name, or from `answer`. Fails if converting it to
/// text raises.
async fn final_answer(
    interpreter: &mut Interpreter,
    name: Value,
) -> Result<Option<String>, Failed> {
    let inputs = vec![(ARGUMENT.to_owned(), name)];
    evaluated(interpreter, FINAL_ANSWER, inputs).await
}

/// Returns the text in `answer`, ready or not.
async fn answer_so_far(interpreter: &mut Interpreter) -> Result<Option<String>, Failed> {
    let code = "str(answer['content'])";
    let found = evaluated(interpreter, code, Vec::new()).await?;
    Ok(found.filter(|answer| !answer.is_empty()))
}

async fn evaluated(
    interpreter: &mut Interpreter,
    code: &str,
    inputs: Vec<(String, Value)>,
) -> Result<Option<String>, Failed> {
    let run = Run { code: code.to_owned(), inputs, options: RunOptions::default(), input: None };
    let execution = interpreter.evaluate(run).await?;
    Ok(execution.value().and_then(Value::as_str).map(str::to_owned))
}

fn result(
    stdout: &str,
    stderr: &str,
    locals: &Map<String, Json>,
    seconds: f64,
    exception: Option<&str>,
) -> Json {
    json!({
        "stdout": stdout,
        "stderr": stderr,
        "locals_snapshot": locals,
        "execution_time": seconds,
        "success": exception.is_none(),
        "exception": exception,
    })
}

/// Truncates a long text, and appends its original length.
fn cut(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(MAX_OUTPUT_CHARS) {
        let notice = format!("\n... (truncated, total {} chars)", text.chars().count());
        text.truncate(end);
        text += &notice;
    }
    text
}

impl Episode {
    /// Charges all data that is kept: the client's and the code's.
    fn count(&mut self) {
        let texts = [Some(&self.task), self.expected.as_ref(), self.answer.as_ref()];
        let names = self.known.iter().chain(&self.names);
        let lengths = names.chain(texts.into_iter().flatten()).map(String::len);
        self.kept.hold((self.context_bytes + lengths.sum::<usize>()) as u64);
    }

    /// Updates the list of variables. Those that the host has set are always listed.
    async fn look(&mut self, interpreter: &Interpreter) -> Result<(), Failed> {
        let mut names = BTreeSet::from(["answer".to_owned()]);
        if self.length > 0 {
            names.insert("context".to_owned());
        }
        names.extend(interpreter.names().await?);
        self.names = names.into_iter().collect();
        Ok(())
    }

    /// Returns the newly bound names and their displayed values.
    fn bound(&mut self, execution: &Execution) -> Map<String, Json> {
        let mut bound = Map::new();
        for (name, repr) in &execution.locals {
            if self.known.insert(name.clone()) {
                bound.insert(name.clone(), repr.as_str().into());
            }
        }
        bound
    }

    fn shown(&self, result: &Json) -> Json {
        json!({
            "result": result,
            "context_preview": (self.length > 0).then_some(&self.preview),
            "context_length": self.length,
            "available_variables": self.names,
            "iteration": self.iteration,
            "max_iterations": MAX_ITERATIONS,
        })
    }

    /// Ends the episode.
    fn finished(&self, text: &str, success: bool) -> Observation {
        let mut result = result(text, "", &Map::new(), 0.0, None);
        result["success"] = success.into();
        let shown = json!({
            "result": result,
            "context_preview": null,
            "context_length": 0,
            "available_variables": [],
            "iteration": self.iteration,
            "max_iterations": MAX_ITERATIONS,
        });
        let metadata = json!({
            "final_answer": self.answer,
            "total_execution_time": self.seconds,
            "total_iterations": self.iteration,
        });
        Observation { shown, metadata: Some(metadata), reward: self.outcome(), done: true }
    }

    /// Returns the final reward of the episode.
    fn outcome(&self) -> f64 {
        let plain = |text: &str| text.trim().to_lowercase();
        match (&self.answer, &self.expected) {
            (None, _) => NO_ANSWER,
            (Some(answer), Some(expected)) if plain(answer) == plain(expected) => 1.0,
            (Some(_), _) => 0.0,
        }
    }
}
