//! Reads a journal whole, as a replay does, for the fuzz target.

use std::path::Path;

use super::file::{MAGIC, header};
use super::replay::{Replay, Until};

/// Returns a journal with these records, each with a length and a digest that are right.
pub(crate) fn journal<'a>(records: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut journal = MAGIC.to_vec();
    for record in records {
        journal.extend_from_slice(&header(record));
        journal.extend_from_slice(record);
    }
    journal
}

/// Reads all commands, events, answers, and the first `most` requests of a journal. Returns how
/// many commands and scripts there were; `None` if it is refused.
pub(crate) fn read(path: &Path, until: &Until, most: u64) -> Option<u64> {
    let mut replay = Replay::open(path, false, until).ok()?;
    let mut parts = 0;
    while let Ok(Some(_)) = replay.next_command() {
        parts += 1;
    }
    while !replay.has_told_all() {
        let Ok(script) = replay.script() else { break };
        parts += u64::from(!script.events.is_empty());
    }
    while !replay.is_done() && replay.done() < most {
        if replay.next_request().is_err() {
            break;
        }
    }
    for call in 0..8 {
        let _ = (replay.answer(call), replay.loaded(call), replay.has_begun(call));
    }
    Some(parts)
}
