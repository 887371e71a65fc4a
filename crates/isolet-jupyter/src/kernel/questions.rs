//! What front ends ask about code, which the guest's half answers: completions, documentation,
//! whether code is whole.

use std::time::Duration;

use anyhow::Result;
use isolet::{Cell, Value};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::contents::{
    Answer, CompleteReply, CompleteRequest, Empty, ErrorContent, InspectReply, InspectRequest,
    IsCompleteRequest,
};
use super::running::Running;
use super::{Kernel, Sessions, contents, error_content};
use crate::message::{MessageKind, Request};

/// The name of the kernel's own cells. Tracebacks omit frames whose file begins so.
pub(super) const NAME: &str = "<isolet>/jupyter";

/// Connects the guest's half with the tool, whose name goes.
pub(super) const CONNECT: &str = "\
__import__('isolet_jupyter').connect(\
globals().pop('_isolet_jupyter_tell'), globals().pop('_isolet_jupyter_widgets'))";
pub(super) const HAS_WIDGETS: &str = "_isolet_jupyter_widgets";

const ANSWER: &str =
    "__import__('isolet_jupyter').answer(globals().pop('_isolet_jupyter_question'))";
const QUESTION: &str = "_isolet_jupyter_question";

/// How long the guest may take for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

#[derive(Deserialize)]
struct Completions {
    matches: Vec<String>,
    start: usize,
}

impl<S: Sessions> Kernel<S> {
    pub(super) async fn complete(&mut self, request: &Request) -> Result<()> {
        let answer = match contents::<CompleteRequest>(request) {
            Err(error) => Answer::Error(error),
            Ok(asked) => {
                let place = place(asked.cursor_pos);
                let question = vec!["complete".into(), asked.code.into(), place];
                match self.ask_guest(request, question).await? {
                    Err(error) => Answer::Error(error),
                    Ok(Completions { matches, start }) => Answer::Ok(CompleteReply {
                        matches,
                        cursor_start: start.min(asked.cursor_pos),
                        cursor_end: asked.cursor_pos,
                        metadata: Empty {},
                    }),
                }
            }
        };
        self.out.reply(request, MessageKind::CompleteReply, &answer).await
    }

    pub(super) async fn inspect(&mut self, request: &Request) -> Result<()> {
        let answer = match contents::<InspectRequest>(request) {
            Err(error) => Answer::Error(error),
            Ok(asked) => {
                let (place, has_source) = (place(asked.cursor_pos), asked.detail_level > 0);
                let question = vec!["inspect".into(), asked.code.into(), place, has_source.into()];
                match self.ask_guest::<Option<String>>(request, question).await? {
                    Err(error) => Answer::Error(error),
                    Ok(told) => {
                        let found = told.is_some();
                        let plain = told.map(|told| ("text/plain".to_owned(), Json::from(told)));
                        let data = Map::from_iter(plain);
                        Answer::Ok(InspectReply { found, data, metadata: Empty {} })
                    }
                }
            }
        };
        self.out.reply(request, MessageKind::InspectReply, &answer).await
    }

    pub(super) async fn is_complete(&mut self, request: &Request) -> Result<()> {
        let answer = match contents::<IsCompleteRequest>(request) {
            Err(error) => Err(error),
            Ok(asked) => {
                let question = vec!["is_complete".into(), asked.code.into()];
                self.ask_guest::<IsCompleteReply>(request, question).await?
            }
        };
        // An error has no place in this answer.
        let answer = answer.unwrap_or(IsCompleteReply { status: Wholeness::Unknown, indent: None });
        self.out.reply(request, MessageKind::IsCompleteReply, &answer).await
    }

    /// Asks the guest's half. The outer error is that the transport has gone; the inner one is for
    /// the front end.
    pub(super) async fn ask_guest<T: DeserializeOwned>(
        &mut self,
        request: &Request,
        question: Vec<Value>,
    ) -> Result<Result<T, ErrorContent>> {
        let cell = Cell::new(ANSWER).name(NAME).timeout(PATIENCE);
        let cell = cell.inputs([(QUESTION, Value::List(question))]);
        let mut running = Running::new(request, self.options.max_output_bytes);
        let execution = match self.run_cell(cell, &mut running).await? {
            Ok(execution) => execution,
            Err(error) => return Ok(Err(error)),
        };
        if let Some(error) = super::cells::failure(&execution) {
            return Ok(Err(error));
        }
        let answer = execution.value().and_then(Value::as_str).unwrap_or_default();
        Ok(serde_json::from_str(answer).map_err(|error| {
            let message = format!("the session's answer is not understood: {error}");
            error_content("RuntimeError", &message)
        }))
    }
}

fn place(characters: usize) -> Value {
    i64::try_from(characters).unwrap_or(i64::MAX).into()
}

#[derive(Deserialize, serde::Serialize)]
struct IsCompleteReply {
    status: Wholeness,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    indent: Option<String>,
}

#[derive(Deserialize, serde::Serialize)]
#[serde(rename_all = "lowercase")]
enum Wholeness {
    Complete,
    Incomplete,
    Invalid,
    Unknown,
}
