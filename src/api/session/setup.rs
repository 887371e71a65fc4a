//! Gives a session another interpreter before its first code: one that has imported the packages
//! that the code imports.

use std::sync::Arc;

use super::Session;
use super::shared::Shared;
use super::state::SessionState;
use crate::data::cell::Program;
use crate::protocol::{Command, Message};
use crate::support::lock::lock;

/// The most bytes of commands that are kept to be given to another interpreter.
pub(crate) const SETUP_BYTES: u64 = 16 << 20;

/// What a session was given before its first code: variables, files.
#[derive(Default)]
pub(super) struct Setup {
    frames: Vec<Vec<u8>>,
    bytes: u64,
}

/// What a command does to a session that has run no code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// None, or one that the session itself brings about again.
    None,
    /// One that the same command has on another interpreter.
    Same,
    /// Any.
    Any,
}

impl Effect {
    pub(super) fn of(command: &Command) -> Self {
        match command {
            Command::Run(run) if run.code.is_empty() && run.program == Program::Code => Self::Same,
            Command::Set(_)
            | Command::Delete(_)
            | Command::PutFile { .. }
            | Command::DeleteFile(_) => Self::Same,
            Command::Get { .. }
            | Command::GetFile { .. }
            | Command::ListFiles(_)
            | Command::Variables
            | Command::Complete(_)
            | Command::Check { .. }
            | Command::Define(_)
            | Command::PackagesLoaded => Self::None,
            Command::Rehearse(_)
            | Command::Start(_)
            | Command::Fork(_)
            | Command::End
            | Command::Save { .. }
            | Command::Resume { .. }
            | Command::BindLocals
            | Command::Run(_) => Self::Any,
        }
    }
}

impl Setup {
    /// Notes a command that is given to the session.
    pub(super) fn note(setup: &mut Option<Self>, effect: Effect, message: &Message) {
        let Some(noted) = setup else { return };
        match (effect, message) {
            (Effect::None, _) => {}
            (Effect::Same, Message::Command(frame))
                if noted.bytes.saturating_add(frame.len() as u64) <= SETUP_BYTES =>
            {
                noted.bytes += frame.len() as u64;
                noted.frames.push(frame.clone());
            }
            _ => *setup = None,
        }
    }
}

impl Shared {
    /// Keeps what the session is given from now on, until it runs code.
    pub(super) fn note_setup(&self) {
        *lock(&self.setup) = Some(Setup::default());
    }
}

impl Session {
    /// Gives the session an interpreter that has imported what this code imports, if the session
    /// has run no code yet and there is one. Otherwise the code imports it itself.
    pub(super) async fn move_for(&mut self, code: &str) {
        if code.is_empty() || lock(&self.shared.setup).is_none() {
            return;
        }
        let Some(engine) = self.engine.for_code(code).await else { return };
        // Whoever else uses the session meanwhile changes it, or is in the way.
        let Some(setup) = lock(&self.shared.setup).take() else { return };
        let Ok((shared, isolation)) = self.at_beginning(&engine).await else { return };
        for frame in setup.frames {
            if shared.repeat(frame).await.is_err() {
                shared.close();
                return;
            }
        }
        self.seat.give_to(&shared);
        let old = std::mem::replace(&mut self.shared, Arc::clone(&shared));
        self.isolation = isolation;
        self.engine = engine;
        let was_closed = old.state() == SessionState::Closed;
        old.close();
        if was_closed {
            // A handle has closed the session meanwhile, and found the old interpreter.
            shared.close();
        }
    }
}
