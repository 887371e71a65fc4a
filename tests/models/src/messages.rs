//! The model of an isolate's inbox: a session that sends, and the isolate's thread, which waits in
//! place or in its event loop.

use std::future::poll_fn;
use std::time::Duration;

use shuttle::thread;

use crate::isolate::inbox::queue;
use crate::protocol::Message;

/// The messages of the session.
const MESSAGES: u64 = 6;

/// All messages arrive in their order, however the thread waits for them, and then the end does.
///
/// # Panics
///
/// Panics in an order in which one does not.
pub fn messages_arrive() {
    arrive(false);
}

/// The same of a session that stays: its end, which wakes the thread, too, makes up for nothing.
///
/// # Panics
///
/// As [`messages_arrive`].
pub fn messages_of_a_session_that_stays_arrive() {
    arrive(true);
}

fn arrive(stays: bool) {
    let (sender, inbox) = queue();
    let session = thread::spawn(move || {
        for number in 0..MESSAGES {
            sender.send(Message::Peek(number, Vec::new()));
        }
        stays.then_some(sender)
    });
    for number in 0..MESSAGES {
        let message = if number % 2 == 0 {
            // A limit that never comes in a model: a wake-up that is lost is not made up for.
            let message = || inbox.try_take().or_else(|| wait(&*inbox));
            std::iter::repeat_with(message).flatten().next()
        } else {
            shuttle::future::block_on(poll_fn(|context| inbox.poll_take(context)))
        };
        assert_eq!(message, Some(Message::Peek(number, Vec::new())));
    }
    drop(session.join().expect("the session ends"));
    let end = shuttle::future::block_on(poll_fn(|context| inbox.poll_take(context)));
    assert_eq!(end, None);
}

fn wait(inbox: &dyn crate::protocol::Inbox) -> Option<Message> {
    inbox.wait(Duration::ZERO, Duration::from_hours(1));
    None
}
