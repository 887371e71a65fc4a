//! A command as it is sent to the guest, and what the session has to know of it.

use super::checkpoint::Turn;
use super::setup::Effect;
use crate::data::cell::Role;
use crate::host::journal::{CommandKind, Ending};
use crate::host::saved::SavedWriter;
use crate::protocol::codec;
use crate::protocol::{Command, Message};

/// An encoded command.
pub(super) struct Frame {
    pub(super) message: Message,
    pub(super) kind: CommandKind,
    pub(super) origin: Origin,
    pub(super) effect: Effect,
    pub(super) turn: Turn,
    /// What the guest is saved to.
    pub(super) saves_to: Option<Box<SavedWriter>>,
}

/// Where a command is from.
pub(super) enum Origin {
    /// From the session's owner, or a handle.
    Owner,
    /// From a journal, which has also how it ended, if it had ended.
    Journal(Option<Ending>),
}

impl Frame {
    pub(super) fn of(command: Command) -> Self {
        let kind = match command {
            Command::Run(ref run) => CommandKind::Run {
                is_program: matches!(run.role, Role::Program | Role::KeptProgram),
            },
            Command::End => CommandKind::End,
            Command::Start(_) => CommandKind::Start,
            Command::Resume { .. } => CommandKind::Resume,
            _ => CommandKind::Other,
        };
        let effect = Effect::of(&command);
        Self { effect, ..Self::first(kind, codec::encode(command)) }
    }

    /// A command of this kind that was encoded before.
    pub(super) fn first(kind: CommandKind, frame: Vec<u8>) -> Self {
        let message = match kind {
            CommandKind::Resume => Message::Restore(frame),
            _ => Message::Command(frame),
        };
        let (origin, effect, turn) = (Origin::Owner, Effect::Any, Turn::Command);
        Self { message, kind, origin, effect, turn, saves_to: None }
    }

    /// A command that was encoded before, and has run no code.
    pub(super) fn again(command: Vec<u8>) -> Self {
        Self::first(CommandKind::Other, command)
    }

    /// A command of a journal.
    pub(super) fn repeated(kind: CommandKind, frame: Vec<u8>, ending: Option<Ending>) -> Self {
        Self { origin: Origin::Journal(ending), ..Self::first(kind, frame) }
    }

    pub(super) fn is_run(&self) -> bool {
        self.kind.is_run()
    }

    pub(super) fn is_end(&self) -> bool {
        self.kind == CommandKind::End
    }

    /// Has the guest saved, in this turn.
    pub(super) fn save(to: Box<SavedWriter>, turn: Turn, flushes_files: bool) -> Self {
        Self { turn, saves_to: Some(to), ..Self::of(Command::Save { flushes_files }) }
    }
}
