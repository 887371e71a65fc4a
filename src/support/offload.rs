//! Work that may take a while, off the path of whoever waits for something else too.

use tokio::sync::oneshot;

/// Bytes from the guest that are decoded in place; more of them are a thread's work.
const SMALL_BYTES: usize = 256 << 10;

/// Does what takes time by the number of these bytes: a little at once, more on a thread. Dropping
/// the future leaves the work to the thread.
pub(crate) async fn by_size<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if bytes <= SMALL_BYTES {
        return Ok(work());
    }
    let (sender, receiver) = oneshot::channel();
    let main = move || {
        // What nobody waits for any more is dropped here.
        let _ = sender.send(work());
    };
    let thread = std::thread::Builder::new().name("isolet-decode".to_owned()).spawn(main);
    thread.map_err(|error| format!("there is no thread to decode it on: {error}"))?;
    receiver.await.map_err(|_| "decoding it failed".to_owned())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[tokio::test]
    async fn much_is_done_on_another_thread_and_little_on_this_one() {
        let this = thread::current().id();
        assert_eq!(by_size(SMALL_BYTES, || thread::current().id()).await, Ok(this));
        assert_ne!(by_size(SMALL_BYTES + 1, || thread::current().id()).await, Ok(this));
    }
}
