//! The coding environment: runs code and returns its output.

use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::interpreter::{Helpers, Interpreter, failure, joined, output};
use super::{Failed, Observation};

/// The helper functions that OpenEnv's executor provides.
pub(super) const HELPERS: Helpers = (
    "from traceback import format_exc
def safe_json_dumps(obj):
    import json
    return json.dumps(obj, default=repr)
",
    "<isolet>/coding",
);

pub(super) struct Coding {
    interpreter: Interpreter,
    episode: Option<String>,
    steps: u64,
    last_exit_code: i32,
}

/// A reset. Unknown fields are ignored.
#[derive(Deserialize)]
pub(super) struct ResetRequest {
    episode_id: Option<String>,
    seed: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    code: String,
    #[serde(default, rename = "metadata")]
    _metadata: Json,
}

impl Coding {
    pub(super) fn new(interpreter: Interpreter) -> Self {
        Self { interpreter, episode: None, steps: 0, last_exit_code: 0 }
    }

    pub(super) fn interpreter(&self) -> &Interpreter {
        &self.interpreter
    }

    pub(super) async fn reset(&mut self, given: ResetRequest) -> Result<Observation, Failed> {
        self.interpreter.renew(Vec::new(), given.seed).await?;
        let episode = super::episode(given.episode_id)?;
        (self.episode, self.steps, self.last_exit_code) = (Some(episode), 0, 0);
        Ok(shown("", "", 0))
    }

    pub(super) async fn step(
        &mut self,
        action: Action,
        seconds: Option<f64>,
    ) -> Result<Observation, Failed> {
        let execution = self.interpreter.run(action.code, seconds).await?;
        let (stdout, value) = output(&execution);
        let failure = failure(&execution, false);
        self.steps += 1;
        self.last_exit_code = execution.exit_code.unwrap_or(failure.is_some().into());
        let stderr = execution.stderr + &failure.unwrap_or_default();
        Ok(shown(&joined(stdout, &value), &stderr, self.last_exit_code))
    }

    pub(super) fn state(&self) -> Json {
        json!({
            "episode_id": self.episode,
            "step_count": self.steps,
            "last_exit_code": self.last_exit_code,
        })
    }
}

fn shown(stdout: &str, stderr: &str, exit_code: i32) -> Observation {
    let shown = json!({"stdout": stdout, "stderr": stderr, "exit_code": exit_code});
    Observation { shown, metadata: None, reward: 0.0, done: false }
}
