//! A command as it is sent to the guest, and what the session has to know of it.

use super::checkpoint::Turn;
use super::setup::Effect;
use crate::host::saved::SavedWriter;
use crate::protocol::codec;
use crate::protocol::{Command, Message};

/// An encoded command.
pub(super) struct Frame {
    pub(super) message: Message,
    pub(super) is_run: bool,
    pub(super) is_end: bool,
    pub(super) effect: Effect,
    pub(super) turn: Turn,
    /// What the guest is saved to.
    pub(super) saves_to: Option<Box<SavedWriter>>,
}

impl Frame {
    pub(super) fn of(command: Command) -> Self {
        let is_run = matches!(command, Command::Run(_));
        let is_end = matches!(command, Command::End);
        let effect = Effect::of(&command);
        let restores = matches!(command, Command::Resume { .. });
        let frame = codec::encode(command);
        let message = if restores { Message::Restore(frame) } else { Message::Command(frame) };
        Self { message, is_run, is_end, effect, turn: Turn::Command, saves_to: None }
    }

    /// A command that was encoded before, and has run no code.
    pub(super) fn again(command: Vec<u8>) -> Self {
        let (message, effect) = (Message::Command(command), Effect::Any);
        Self { message, is_run: false, is_end: false, effect, turn: Turn::Command, saves_to: None }
    }

    /// Has the guest saved, in this turn.
    pub(super) fn save(to: Box<SavedWriter>, turn: Turn, flushes_files: bool) -> Self {
        Self { turn, saves_to: Some(to), ..Self::of(Command::Save { flushes_files }) }
    }
}
