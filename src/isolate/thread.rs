//! The thread of an isolate: the boot, the event loop, and in it one command after another.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use super::control::{IsolateControl, lost_threads};
use super::image::Image;
use super::platform;
use super::runtime::{Isolate, Parts};
use crate::data::error::{Error, ErrorKind};
use crate::protocol::codec;
use crate::protocol::{Command, Control, Message, Reply, ReplySink};
use crate::support::spin;

/// After this many rounds V8 has compiled and optimised the start-up sequence of a session.
const REHEARSALS: u32 = 150;

/// How many threads may be lost before no further isolate gets one.
const MAX_LOST_THREADS: usize = 8;

/// Which of the two processes goes on after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forked {
    Original,
    Copy,
}

/// A booted interpreter. It stays on its thread.
pub(crate) struct Booted {
    isolate: Isolate,
    control: Arc<IsolateControl>,
    /// The event loop that it booted in, or a later one. Dropped after the isolate.
    runtime: Runtime,
}

/// Starts an isolate that restores `image` and then takes commands. It ends when no more messages
/// will come.
pub(crate) fn spawn(
    parts: Parts,
    image: Image,
    replies: ReplySink,
) -> Result<Arc<dyn Control>, Error> {
    let lost = lost_threads();
    if lost >= MAX_LOST_THREADS {
        let message = format!(
            "{lost} threads of killed sessions have not ended, the limit is {MAX_LOST_THREADS}"
        );
        let hint = "use `Isolation::Process`: a process can always be killed";
        return Err(Error::new(ErrorKind::Limit, message).with_hint(hint));
    }
    let control = IsolateControl::new();
    let shared = Arc::clone(&control) as Arc<dyn Control>;
    on_isolate_thread(move || {
        let ending = control.ending();
        // Fails only if the session is gone; this also applies below.
        let failed = |reason: String| {
            let _ = replies(Reply::Failed(reason));
        };
        match Booted::boot(parts, image, control) {
            Ok(mut booted) => {
                replies(Reply::Booted);
                let fork = || Err(io::ErrorKind::Unsupported.into());
                if let Err(error) = booted.serve(&replies, || Ok(()), &fork) {
                    failed(format!("nothing can be sent to the isolate: {error}"));
                }
                // Before the isolate is dropped, which takes time.
                ending.leave();
            }
            Err(reason) => failed(reason),
        }
    })?;
    Ok(shared)
}

/// Runs `main` on a new thread that may have an isolate.
pub(crate) fn on_isolate_thread(main: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    // The first call asks the system, which a locked-down worker can no longer do.
    spin::budget();
    platform::spawn(main).map_err(|error| {
        let message = format!("the isolate's thread cannot start: {error}");
        Error::new(ErrorKind::Start, message).with_source(error)
    })
}

/// Drives a future that waits only for time.
pub(super) fn block_on<T>(future: impl Future<Output = Result<T, String>>) -> Result<T, String> {
    event_loop()?.block_on(future)
}

/// Makes an event loop for a process that is confined while the isolate boots: it can wait for
/// descriptors.
pub(super) fn full_event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// Makes an event loop for this thread without descriptors. Only its clock or another thread wakes
/// it.
fn event_loop() -> Result<Runtime, String> {
    let runtime = Builder::new_current_thread().enable_time().build();
    runtime.map_err(|error| format!("there is no event loop: {error}"))
}

impl Booted {
    /// Boots an interpreter from `image` on this thread.
    pub(crate) fn boot(
        parts: Parts,
        image: Image,
        control: Arc<IsolateControl>,
    ) -> Result<Self, String> {
        let runtime = match parts.confine {
            Some(_) => full_event_loop().map_err(|error| error.to_string())?,
            None => event_loop()?,
        };
        let isolate = runtime.block_on(Isolate::boot(parts, Some(image), Arc::clone(&control)))?;
        Ok(Self { isolate, control, runtime })
    }

    /// Returns the control that stops the isolate.
    pub(crate) fn control(&self) -> Arc<dyn Control> {
        Arc::clone(&self.control) as _
    }

    /// Prepares an interpreter for being copied: makes V8 optimise the start-up sequence of
    /// sessions, and collects garbage.
    pub(crate) fn rehearse(&mut self) -> Result<(), String> {
        let frame = codec::encode(Command::Rehearse(REHEARSALS));
        let nowhere: ReplySink = Box::new(|_| true);
        self.runtime.block_on(async {
            match self.isolate.carry_out(frame, &nowhere).await {
                Reply::Done { .. } => Ok(()),
                reply => Err(format!("the interpreter cannot be made ready: {reply:?}")),
            }
        })?;
        self.isolate.collect_garbage();
        Ok(())
    }

    /// Replaces the event loop by one that can wait for descriptors. V8's delayed tasks stay with
    /// the old one, which is dropped; they only try to reduce memory while idle.
    pub(crate) fn renew_event_loop(&mut self) -> io::Result<()> {
        self.runtime = full_event_loop()?;
        Ok(())
    }

    /// Takes commands until there are no more, or the interpreter has ended. `ready` is called
    /// before the first one, when the thread needs nothing more from the system; `fork` when the
    /// session has its process copied.
    pub(crate) fn serve(
        &mut self,
        replies: &ReplySink,
        ready: impl FnOnce() -> io::Result<()>,
        fork: &dyn Fn() -> io::Result<Forked>,
    ) -> io::Result<()> {
        self.runtime.block_on(async {
            self.isolate.attach_inbox()?;
            ready()?;
            while let Some(message) = self.isolate.next_message().await {
                let reply = match message {
                    Message::Command(frame) => self.isolate.carry_out(frame, replies).await,
                    Message::Restore(frame) => self.isolate.restore(frame, replies).await,
                    Message::Fork => {
                        if let Forked::Copy = fork()? {
                            self.isolate.renew();
                        }
                        continue;
                    }
                    message => {
                        self.isolate.serve(message, replies);
                        continue;
                    }
                };
                let last = !matches!(reply, Reply::Done { .. });
                if !replies(reply) || last {
                    break;
                }
            }
            Ok(())
        })
    }
}
