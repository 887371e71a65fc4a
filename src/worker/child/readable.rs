//! A socket of which the event loop learns only when it can be read. Unsafe, because tokio has to
//! rely on its descriptor.

use std::io;
use std::os::unix::net::UnixStream;
use std::task::{Context, Poll, ready};

use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// A socket in tokio's event loop. Not for writing, too, as tokio's own are: then each read of the
/// other end would wake this process.
pub(super) struct Readable(AsyncFd<UnixStream>);

impl Readable {
    pub(super) fn new(socket: UnixStream) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "there is no safe constructor")]
        // SAFETY: A `UnixStream` owns its descriptor, which stays the same until it is dropped, and
        // only `AsyncFd` drops it.
        let registered = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) };
        Ok(Self(registered?))
    }

    /// Calls `receive` whenever the socket may be readable, until the result is something else than
    /// `WouldBlock`.
    pub(super) fn poll_receive<T>(
        &self,
        context: &mut Context<'_>,
        mut receive: impl FnMut() -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        loop {
            let mut readable = ready!(self.0.poll_read_ready(context))?;
            if let Ok(received) = readable.try_io(|_| receive()) {
                return Poll::Ready(received);
            }
        }
    }
}
