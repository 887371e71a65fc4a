//! Runs long work on a thread, so that a caller can wait for other things too.

use tokio::sync::oneshot;

use crate::data::value::{self, Value, marshal};

/// Up to this many [steps](value::takes_more_steps) are encoded or decoded in place, such as a text
/// of 2 MiB; more on a thread. A thread must be started, and its memory is cold.
const FEW_STEPS: u64 = 128 << 10;

/// Returns whether it takes long to encode values.
pub(crate) fn is_much<'a>(values: impl IntoIterator<Item = &'a Value>) -> bool {
    values.into_iter().any(|value| value::takes_more_steps(value, FEW_STEPS))
}

/// Returns whether it takes long to decode bytes in marshal's format.
pub(crate) fn is_much_to_decode(bytes: &[u8]) -> bool {
    marshal::takes_more_steps(bytes, FEW_STEPS)
}

/// Runs work in place, or if it `is_much` on a thread. If the future is dropped, the thread still
/// completes the work.
pub(crate) async fn run<T: Send + 'static>(
    is_much: bool,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    if !is_much {
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
        let few = usize::try_from(FEW_STEPS).unwrap();
        let text = Value::from("x".repeat(16 * few + 1));
        let items = Value::List(vec![Value::None; few]);
        for value in [text, items] {
            assert!(is_much([&Value::None, &value]));
            let mut encoded = Vec::new();
            marshal::encode(&value, &mut encoded);
            assert!(is_much_to_decode(&encoded));
        }
        let text = Value::from("x".repeat(8 * few));
        assert!(!is_much([&Value::None, &text]));
        let mut encoded = Vec::new();
        marshal::encode(&text, &mut encoded);
        assert!(!is_much_to_decode(&encoded));
    }

    #[tokio::test]
    async fn much_is_done_on_another_thread_and_little_on_this_one() {
        let this = thread::current().id();
        assert_eq!(run(false, || thread::current().id()).await, Ok(this));
        assert_ne!(run(true, || thread::current().id()).await, Ok(this));
    }
}
