//! The guest's tool calls whose answers it has not taken yet.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use tokio::sync::oneshot;

use super::order::Answerer;

/// Calls by number. A number is never reused in an isolate's life.
#[derive(Default)]
pub(crate) struct PendingCalls {
    last: u32,
    calls: HashMap<u32, Pending>,
    /// The calls that the network answers.
    of_network: HashSet<u32>,
}

enum Pending {
    /// The guest has not asked for the answer yet.
    Open,
    /// The guest waits for the length of the answer.
    Awaited(oneshot::Sender<usize>),
    Answered(Bytes),
}

impl PendingCalls {
    /// Makes a new call. Returns `None` when all numbers are used.
    pub(crate) fn open(&mut self, answerer: Answerer) -> Option<u32> {
        self.last = self.last.checked_add(1)?;
        self.calls.insert(self.last, Pending::Open);
        if answerer == Answerer::Network {
            self.of_network.insert(self.last);
        }
        Some(self.last)
    }

    /// Returns who answers a call; `None` if there is no such call.
    pub(crate) fn answerer(&self, call: u32) -> Option<Answerer> {
        let is_of_network = self.of_network.contains(&call);
        let answerer = if is_of_network { Answerer::Network } else { Answerer::Host };
        self.calls.contains_key(&call).then_some(answerer)
    }

    /// Stores the answer to a call. It is dropped if the call was cancelled or is already answered.
    pub(crate) fn answer(&mut self, call: u32, answer: Bytes) {
        let Some(pending) = self.calls.get_mut(&call) else {
            return;
        };
        if matches!(pending, Pending::Answered(_)) {
            return;
        }
        let length = answer.len();
        if let Pending::Awaited(sender) = std::mem::replace(pending, Pending::Answered(answer)) {
            let _ = sender.send(length);
        }
    }

    /// Answers all calls that are not answered yet.
    pub(crate) fn answer_all(&mut self, answer: &Bytes) {
        let calls: Vec<u32> = self.calls.keys().copied().collect();
        for call in calls {
            self.answer(call, answer.clone());
        }
    }

    /// Returns `true` if a call is answered.
    pub(crate) fn is_answered(&self, call: u32) -> bool {
        matches!(self.calls.get(&call), Some(Pending::Answered(_)))
    }

    /// Returns `true` if a call is not answered yet.
    pub(crate) fn is_open(&self, call: u32) -> bool {
        matches!(self.calls.get(&call), Some(Pending::Open | Pending::Awaited(_)))
    }

    /// Returns the length of the answer to a call, if it is answered.
    pub(crate) fn answer_length(&self, call: u32) -> Option<usize> {
        match self.calls.get(&call)? {
            Pending::Answered(answer) => Some(answer.len()),
            Pending::Open | Pending::Awaited(_) => None,
        }
    }

    /// Returns the most recent call.
    pub(crate) fn last(&self) -> u32 {
        self.last
    }

    /// Takes the answer to a call if it has arrived and is at most `limit` long.
    pub(crate) fn take_short(&mut self, call: u32, limit: usize) -> Option<Bytes> {
        match self.calls.get(&call) {
            Some(Pending::Answered(answer)) if answer.len() <= limit => self.take(call),
            _ => None,
        }
    }

    /// Returns the length of the answer, or a receiver for it; `None` if there is no such call.
    pub(crate) fn wait(&mut self, call: u32) -> Option<Result<usize, oneshot::Receiver<usize>>> {
        let pending = self.calls.get_mut(&call)?;
        if let Pending::Answered(answer) = pending {
            return Some(Ok(answer.len()));
        }
        let (sender, receiver) = oneshot::channel();
        *pending = Pending::Awaited(sender);
        Some(Err(receiver))
    }

    /// Takes an answer that has arrived.
    pub(crate) fn take(&mut self, call: u32) -> Option<Bytes> {
        match self.calls.get(&call) {
            Some(Pending::Answered(_)) => match self.remove(call) {
                Some(Pending::Answered(answer)) => Some(answer),
                _ => None,
            },
            _ => None,
        }
    }

    /// Removes a call. Returns `true` if it was not answered yet.
    pub(crate) fn cancel(&mut self, call: u32) -> bool {
        matches!(self.remove(call), Some(Pending::Open | Pending::Awaited(_)))
    }

    fn remove(&mut self, call: u32) -> Option<Pending> {
        self.of_network.remove(&call);
        self.calls.remove(&call)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_to_a_cancelled_call_is_dropped() {
        let mut calls = PendingCalls::default();
        let call = calls.open(Answerer::Host).unwrap();
        assert!(calls.cancel(call));
        calls.answer(call, Bytes::from_static(&[1]));
        assert!(calls.take(call).is_none());
        assert!(calls.wait(call).is_none());
        assert!(!calls.cancel(call));
    }

    #[test]
    fn an_answer_is_taken_once_and_only_when_it_is_there() {
        let mut calls = PendingCalls::default();
        let call = calls.open(Answerer::Host).unwrap();
        assert!(calls.take(call).is_none());
        let mut waiting = calls.wait(call).unwrap().unwrap_err();
        calls.answer(call, Bytes::from_static(&[1, 2]));
        assert_eq!(waiting.try_recv(), Ok(2));
        assert_eq!(calls.wait(call).unwrap().unwrap(), 2);
        calls.answer(call, Bytes::from_static(&[3]));
        assert_eq!(calls.take(call), Some(Bytes::from_static(&[1, 2])));
        assert!(calls.take(call).is_none());
    }
}
