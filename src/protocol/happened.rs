//! What happens in a recorded session that its program does not determine: the isolate tells its
//! host, and gets it back when the session is replayed.

use serde::{Deserialize, Serialize};

/// Something that has happened. Each position is a count since the event before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// The guest got the answer to this call.
    Answer(u32),
    /// The first timer of the guest fired.
    Timer,
    /// An interrupt ended what the guest waited for.
    InterruptInWait,
    /// At this look for an interrupt, there was one.
    Interrupt { look: u64 },
    /// At this check for signals, the alarm was due.
    Alarm { check: u64 },
    /// At this look at the clock, it had gone on to this time, in milliseconds since the session
    /// started.
    Clock { look: u64, now: f64 },
    /// The guest did not get the answer to this call by waiting for it in place.
    NoAnswerSoon(u32),
    /// The guest waited in place for the answer to this call until its time was over.
    Expired(u32),
    /// The guest's wait in place for the answer to this call was interrupted.
    InterruptInPlace(u32),
    /// The guest of a session with virtual clocks waited for a server for this long, in
    /// milliseconds.
    Waited(f64),
    /// The guest carried out a peek.
    Peek(#[serde(with = "serde_bytes")] Vec<u8>),
}

/// The next events of a session that is replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Script {
    pub(crate) events: Vec<Event>,
    /// Set if no further event was recorded: how many requests were, of those that
    /// [are](super::HostRequest::is_recorded).
    pub(crate) requests: Option<u64>,
}

impl Event {
    /// Returns `true` if it is an interrupt of the run.
    pub(crate) fn is_interrupt(&self) -> bool {
        matches!(self, Self::InterruptInWait | Self::Interrupt { .. } | Self::InterruptInPlace(_))
    }

    /// Returns where the clock stands from here on, in milliseconds since the session started, if
    /// that is what happened.
    pub(crate) fn time(&self) -> Option<f64> {
        match self {
            Self::Clock { now, .. } => Some(*now),
            _ => None,
        }
    }

    /// Appends it to others.
    pub(crate) fn append_to(&self, events: &mut Vec<u8>) -> Result<(), postcard::Error> {
        let before = std::mem::take(events);
        *events = postcard::to_extend(self, before)?;
        Ok(())
    }

    /// Reads events that were appended to each other.
    pub(crate) fn read_all(mut bytes: &[u8]) -> Result<Vec<Self>, postcard::Error> {
        let mut events = Vec::new();
        while !bytes.is_empty() {
            let (event, rest) = postcard::take_from_bytes(bytes)?;
            events.push(event);
            bytes = rest;
        }
        Ok(events)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_appended() {
        let events = [
            Event::Answer(7),
            Event::Timer,
            Event::Clock { look: 3, now: 12.5 },
            Event::Peek(vec![1, 2, 3]),
            Event::Interrupt { look: 1 << 40 },
        ];
        let mut bytes = Vec::new();
        for event in &events {
            event.append_to(&mut bytes).unwrap();
        }
        assert_eq!(Event::read_all(&bytes).unwrap(), events);
        assert!(Event::read_all(&bytes[..bytes.len() - 1]).is_err());
        assert!(Event::read_all(&[200]).is_err());
    }
}
