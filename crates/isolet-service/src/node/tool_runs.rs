//! Runs whose tool calls their clients answer together, whenever the run waits for answers.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::Stream;
use isolet::Value;

use super::events::Event;
use super::session::OwnSession;
use super::streamed::StreamItem;
use super::{Node, Refusal, gone};
use crate::core::{Answer, Execution, Run};

/// Calls that come within this time of each other are told together.
const TOGETHER: Duration = Duration::from_millis(20);

/// A call of a tool that waits for its answer.
#[derive(Clone, Debug)]
pub struct WaitingCall {
    pub tool: String,
    pub arguments: Value,
}

/// How a run goes on.
pub enum Step {
    /// It waits for answers to these calls, by number.
    Calls(BTreeMap<u64, WaitingCall>),
    Ended(Result<Box<Execution>, Refusal>),
}

/// A run with tools in a session of its own, which ends when this is dropped.
pub struct ToolRun {
    items: Pin<Box<dyn Stream<Item = StreamItem> + Send>>,
    calls: BTreeMap<u64, WaitingCall>,
    session: OwnSession,
}

impl ToolRun {
    pub fn session(&self) -> &OwnSession {
        &self.session
    }

    /// Returns the calls that wait for answers.
    pub fn calls(&self) -> &BTreeMap<u64, WaitingCall> {
        &self.calls
    }

    /// Returns the session of a run that has ended.
    pub fn into_session(self) -> OwnSession {
        self.session
    }

    /// Answers a call.
    pub fn answer(&mut self, node: &Node, call: u64, answer: Answer) {
        if self.calls.remove(&call).is_some() {
            // The guest may have given it up.
            node.answer(self.session.used(), call, answer);
        }
    }

    /// Waits until the run needs answers, or has ended.
    pub async fn step(&mut self) -> Step {
        loop {
            let next = self.items.next();
            let item = if self.calls.is_empty() {
                next.await
            } else {
                match tokio::time::timeout(TOGETHER, next).await {
                    Ok(item) => item,
                    Err(_) => return Step::Calls(self.calls.clone()),
                }
            };
            match item {
                Some(StreamItem::Event(Event::Call { call, tool, arguments })) => {
                    self.calls.insert(call, WaitingCall { tool, arguments });
                }
                Some(StreamItem::Event(Event::Uncall(call))) => {
                    self.calls.remove(&call);
                }
                Some(StreamItem::Event(Event::Output(..) | Event::Display(_))) => {}
                Some(StreamItem::End(ended)) => return Step::Ended(ended),
                None => return Step::Ended(Err(Refusal::Gone("the run has ended".to_owned()))),
            }
        }
    }
}

impl Node {
    /// Begins a run in its session. Its calls of tools wait for answers.
    pub async fn start_tool_run(
        self: &Arc<Self>,
        session: OwnSession,
        run: Run,
    ) -> Result<ToolRun, Refusal> {
        let used = session.used();
        let same = self.table.get(&used.session().tenant.name, used.handle()).map_err(gone)?;
        let items = Box::pin(self.stream(same, run).await?.items());
        Ok(ToolRun { items, calls: BTreeMap::new(), session })
    }
}
