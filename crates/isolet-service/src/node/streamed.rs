//! The items of a streamed run: its events, and its result after them.

use futures_util::future::BoxFuture;
use futures_util::stream::{self, Stream};

use super::events::{Event, Events};
use super::{Refusal, Streamed};
use crate::core::Execution;

/// An item of a streamed run; the last one is its end.
pub enum StreamItem {
    Event(Event),
    End(Result<Box<Execution>, Refusal>),
}

struct Listening {
    events: Events,
    result: Option<BoxFuture<'static, Result<Execution, Refusal>>>,
    /// The result, kept until the events before it are delivered.
    ended: Option<Result<Execution, Refusal>>,
}

impl Streamed {
    /// Returns the run's events as they occur, and then its result.
    pub fn items(self) -> impl Stream<Item = StreamItem> + Send + 'static {
        let Self { events, result } = self;
        let listening = Listening { events, result: Some(result), ended: None };
        stream::unfold(listening, async |mut listening| {
            while let Some(result) = &mut listening.result {
                tokio::select! {
                    biased;
                    Some(event) = listening.events.next() => {
                        return Some((StreamItem::Event(event), listening));
                    }
                    ended = result => {
                        listening.ended = Some(ended);
                        listening.result = None;
                    }
                }
            }
            // No event follows the result.
            if let Some(event) = listening.events.try_next() {
                return Some((StreamItem::Event(event), listening));
            }
            let ended = listening.ended.take()?;
            Some((StreamItem::End(ended.map(Box::new)), listening))
        })
    }
}
