//! What a client of `isolet serve --stdio` writes: frames of JSON or marshal, with messages.

use std::sync::Arc;

use isolet::Value;
use isolet::fuzzing::measured;
use isolet_service::core::Plain;
use isolet_support::frames::{Frame, Input};

use super::client::Stdout;
use super::messages::Message;
use crate::wire::Wire;

/// How many times its length a frame may take, and what it may take besides: memory that frames get
/// before they arrive, lists of a false length.
const FACTOR: usize = 200;
const FIXED: usize = 8 << 20;

/// Reads the bytes, after the first one, as frames of JSON or of marshal, and as the contents of
/// one. A value that is decoded is encoded and decoded as the same; a message that cannot be
/// decoded has the number that it has otherwise; memory is bounded by what has arrived.
pub fn serve_frame(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    let wire = if kind % 2 == 0 { Wire::Json } else { Wire::Marshal };
    if kind & 2 == 0 {
        message(wire, data);
        let mut frame = Frame::default();
        frame.body().extend_from_slice(data);
        let frame = frame.finish().unwrap_or_default();
        let read = Input::new(&frame[..]).next(<[u8]>::to_vec).ok().flatten();
        assert_eq!(read, (!data.is_empty()).then(|| data.to_vec()));
        return;
    }
    let mut input = Input::new(data);
    loop {
        let (read, used) = measured(|| input.next(<[u8]>::to_vec));
        assert!(used.peak <= 4 * data.len() + FIXED, "{} bytes took {used:?}", data.len());
        match read {
            Ok(Some(frame)) => message(wire, &frame),
            Ok(None) => return,
            Err(error) => return assert!(error.to_string().contains("frame"), "{error}"),
        }
    }
}

fn message(wire: Wire, bytes: &[u8]) {
    let head = wire.head(bytes);
    let (value, used) = measured(|| wire.decode(bytes));
    assert!(used.peak <= FACTOR * bytes.len() + FIXED, "{} bytes took {used:?}", bytes.len());
    let Ok(value) = value else { return };
    is_stable(&value);
    let named = named(&value);
    if let (Some(head), Some(named)) = (&head, &named) {
        assert_eq!(head, named);
    }
    let client = Arc::new(Stdout::new(wire));
    let message = Message::read(value, &client);
    match message {
        Ok(Message::Wrong { number, failure }) => {
            assert_eq!(Some(number), named.map(|(_, number)| number));
            assert!(
                failure.message.starts_with('`')
                    || failure.hint.is_some()
                    || !failure.message.is_empty()
            );
        }
        Ok(
            Message::Hello { number, .. }
            | Message::Request { number, .. }
            | Message::Shutdown { number },
        ) => assert_eq!(Some(number), named.map(|(_, number)| number)),
        Ok(Message::Answer { call, .. }) => {
            let number = named.and_then(|(_, number)| u64::try_from(number).ok());
            assert_eq!(Some(call), number);
        }
        Err(reason) => assert!(named.is_none(), "{reason}"),
    }
}

/// Returns the operation and the number of a message.
fn named(value: &Value) -> Option<(String, i64)> {
    match value.as_list()? {
        [Value::Str(operation), Value::Int(number), ..] => Some((operation.clone(), *number)),
        _ => None,
    }
}

/// What is decoded passes through both encodings. The second pass is compared, because a float
/// that is no number equals nothing.
fn is_stable(value: &Value) {
    for wire in [Wire::Json, Wire::Marshal] {
        let mut bytes = Vec::new();
        let encoded = wire.encode(&Plain(value.clone()), &mut bytes);
        assert!(encoded.is_ok(), "{value} is not encoded: {encoded:?}");
        let again = wire.decode(&bytes);
        let Ok(again) = again else { unreachable!("{value} is not decoded: {again:?}") };
        let mut twice = Vec::new();
        let encoded = wire.encode(&Plain(again), &mut twice);
        assert!(encoded.is_ok() && twice == bytes, "{value} is not the same in {wire:?}");
    }
}
