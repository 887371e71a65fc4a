//! Descriptions of the environments: JSON schemas, names and texts.

use serde_json::{Value as Json, json};

use super::Kind;

impl Kind {
    /// Returns the schemas of actions, observations and the state.
    pub(super) fn schema(self) -> Json {
        let (action, observation, state) = match self {
            Self::Coding => (
                object("CodeAction", &json!({"code": string()}), &["code"]),
                json!({
                    "stdout": string(),
                    "stderr": string(),
                    "exit_code": integer(),
                }),
                object(
                    "CodeState",
                    &json!({
                        "episode_id": optional("string"),
                        "step_count": integer(),
                        "last_exit_code": integer(),
                    }),
                    &[],
                ),
            ),
            Self::Repl => (
                object(
                    "REPLAction",
                    &json!({
                        "code": string(),
                        "is_final": {"type": "boolean"},
                        "final_answer": optional("string"),
                    }),
                    &[],
                ),
                json!({
                    "result": object(
                        "CodeBlockResult",
                        &json!({
                            "stdout": string(),
                            "stderr": string(),
                            "locals_snapshot": {
                                "type": "object", "additionalProperties": string(),
                            },
                            "execution_time": number(),
                            "success": {"type": "boolean"},
                            "exception": optional("string"),
                        }),
                        &[],
                    ),
                    "context_preview": optional("string"),
                    "context_length": integer(),
                    "available_variables": strings(),
                    "iteration": integer(),
                    "max_iterations": integer(),
                }),
                object(
                    "REPLState",
                    &json!({
                        "episode_id": optional("string"),
                        "step_count": integer(),
                        "context": optional("string"),
                        "task_prompt": optional("string"),
                        "iteration": integer(),
                        "max_iterations": integer(),
                        "namespace_keys": strings(),
                        "final_answer": optional("string"),
                        "total_execution_time": number(),
                    }),
                    &[],
                ),
            ),
        };
        let mut shown = observation;
        shown["done"] = json!({"type": "boolean"});
        shown["reward"] = number();
        shown["metadata"] = json!({"type": "object"});
        let title =
            if matches!(self, Self::Coding) { "CodeObservation" } else { "REPLObservation" };
        let observation = object(title, &shown, &[]);
        json!({
            "action": action,
            "observation": observation,
            "reset_observation": observation,
            "state": state,
        })
    }

    /// Returns the environment's name and description.
    pub(super) fn metadata(self) -> Json {
        let (name, description) = match self {
            Self::Coding => ("coding_env", "Runs Python code in a sandbox of isolet"),
            Self::Repl => ("repl_env", "Runs Python code on a context, in a sandbox of isolet"),
        };
        json!({"name": name, "description": description, "version": env!("CARGO_PKG_VERSION")})
    }
}

fn object(title: &str, properties: &Json, required: &[&str]) -> Json {
    json!({
        "title": title,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn string() -> Json {
    json!({"type": "string"})
}

fn integer() -> Json {
    json!({"type": "integer"})
}

fn number() -> Json {
    json!({"type": "number"})
}

fn strings() -> Json {
    json!({"type": "array", "items": string()})
}

fn optional(kind: &str) -> Json {
    json!({"anyOf": [{"type": kind}, {"type": "null"}]})
}
