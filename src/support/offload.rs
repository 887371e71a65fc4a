//! Runs long work on a thread, so that a caller can wait for other things too.

use tokio::sync::oneshot;

use crate::data::value::{Value, is_longer};

/// Up to this many bytes are encoded or decoded in place, more on a thread.
const SMALL_BYTES: usize = 256 << 10;

/// Returns a size for [`by_size`] of work on values.
pub(crate) fn size<'a>(values: impl IntoIterator<Item = &'a Value>) -> usize {
    let is_long = values.into_iter().any(|value| is_longer(value, SMALL_BYTES as u64));
    if is_long { usize::MAX } else { 0 }
}

/// Runs work whose duration depends on a number of bytes: in place if there are few, otherwise on a
/// thread. If the future is dropped, the thread still completes the work.
pub(crate) async fn by_size<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if bytes <= SMALL_BYTES {
        return Ok(work());
    }
    let (sender, receiver) = oneshot::channel();
    let main = move || {
        // If the receiver was dropped, the result is dropped here.
        let _ = sender.send(work());
    };
    let thread = std::thread::Builder::new().name("isolet-codec".to_owned()).spawn(main);
    thread.map_err(|error| format!("there is no thread for a large value: {error}"))?;
    receiver.await.map_err(|_| "the thread for a large value ended".to_owned())
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn many_items_are_much_and_so_is_a_long_text() {
        let text = Value::from("x".repeat(SMALL_BYTES));
        let items = Value::List(vec![Value::None; SMALL_BYTES]);
        for values in [[Value::None, text], [Value::None, items]] {
            assert_eq!(size(&values), usize::MAX);
            assert_eq!(size(&values[..1]), 0);
        }
    }

    #[tokio::test]
    async fn much_is_done_on_another_thread_and_little_on_this_one() {
        let this = thread::current().id();
        assert_eq!(by_size(SMALL_BYTES, || thread::current().id()).await, Ok(this));
        assert_ne!(by_size(SMALL_BYTES + 1, || thread::current().id()).await, Ok(this));
    }
}
