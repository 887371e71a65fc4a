//! The calls of tools that wait for the client's answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use isolet::{ToolError, Value};
use tokio::sync::oneshot;

use super::{Client, lock};

/// What a tool of the client has returned, or the exception that it has raised.
pub(crate) type Answer = Result<Value, ToolError>;

/// The calls that the client has not answered yet.
#[derive(Default)]
pub(super) struct Calls(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    last: u64,
    answers: HashMap<u64, oneshot::Sender<Answer>>,
}

/// A call under way. The client is told when it is dropped without an answer.
pub(super) struct CallUnderWay {
    number: u64,
    calls: Arc<Calls>,
    client: Arc<dyn Client>,
    answer: oneshot::Receiver<Answer>,
}

impl Calls {
    /// Starts a call.
    pub(super) fn begin(self: &Arc<Self>, client: &Arc<dyn Client>) -> CallUnderWay {
        let (sender, answer) = oneshot::channel();
        let mut waiting = lock(&self.0);
        waiting.last += 1;
        let number = waiting.last;
        waiting.answers.insert(number, sender);
        CallUnderWay { number, calls: Arc::clone(self), client: Arc::clone(client), answer }
    }

    /// Passes an answer on, if somebody waits for it.
    pub(super) fn answer(&self, call: u64, answer: Answer) {
        let sender = lock(&self.0).answers.remove(&call);
        if let Some(sender) = sender {
            // Sending fails if the call was cancelled meanwhile.
            let _ = sender.send(answer);
        }
    }
}

impl CallUnderWay {
    pub(super) fn number(&self) -> u64 {
        self.number
    }

    /// Waits for the answer.
    pub(super) async fn answer(mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

impl Drop for CallUnderWay {
    fn drop(&mut self) {
        if lock(&self.calls.0).answers.remove(&self.number).is_some() {
            self.client.uncall(self.number);
        }
    }
}
