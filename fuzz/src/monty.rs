//! Messages of Monty's client, and what the guest's half reports for it.

#[path = "../../crates/isolet-cli/src/monty/asks.rs"]
mod asks;
#[path = "../../crates/isolet-cli/src/monty/exceptions.rs"]
mod exceptions;
#[path = "../../crates/isolet-cli/src/monty/fields.rs"]
mod fields;
#[path = "../../crates/isolet-cli/src/monty/messages/mod.rs"]
mod messages;
#[path = "../../crates/isolet-cli/src/monty/nodes.rs"]
mod nodes;
#[path = "../../crates/isolet-cli/src/monty/settings.rs"]
mod settings;

use isolet::Value;
use isolet::fuzzing::measured;
use prost::Message as _;

use messages::events::{Event, FunctionCall};
use messages::requests::{ParentRequest, Request};
use messages::values::Arena;
use settings::Settings;

/// How many times its length a message may take: an empty node has two bytes. Besides, lists of a
/// false length.
const FACTOR: usize = 800;
const FIXED: usize = 8 << 20;

/// Reads the bytes, by their first one, as a client's request or as a value of the guest's. Nodes
/// refer to earlier ones only; those that go to the guest and come back are the same; memory is
/// bounded by the length.
pub fn monty(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    if kind % 2 == 0 { request(data) } else { report(data) }
}

fn request(data: &[u8]) {
    let (request, used) = measured(|| ParentRequest::decode(data));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let Ok(request) = request else { return };
    let written = request.encode_to_vec();
    // As bytes, because a float that is no number equals nothing.
    let again = ParentRequest::decode(&*written).map(|again| again.encode_to_vec());
    assert_eq!(again.as_ref(), Ok(&written));
    match request.kind {
        Some(Request::Configure(configure)) => {
            let known = settings::check_version(&configure);
            assert!(known.is_ok_and(|()| true) || !known_version(configure.protocol_version));
            if let Ok(settings) = Settings::read(*configure) {
                assert!(settings.policy.as_dict().is_some());
            }
        }
        Some(Request::Feed(feed)) => {
            let arena = feed.values;
            let (nodes, used) = measured(|| nodes::to_guest(arena.clone()));
            assert!(used.peak <= FACTOR * data.len() + FIXED, "{used:?}");
            let Ok(nodes) = nodes else { return };
            for input in feed.inputs {
                let count = nodes.as_list().map_or(0, <[Value]>::len);
                let is_there = (input.value as usize) < count;
                assert_eq!(nodes::index(input.value, &nodes).is_ok(), is_there);
            }
        }
        Some(request) => is_answer(request),
        None => {}
    }
}

/// An answer is one of the client's to a call of the guest's, or is refused.
fn is_answer(request: Request) {
    let call = FunctionCall { call_id: 1, ..FunctionCall::default() };
    match asks::answer(&Event::FunctionCall(call), request) {
        Ok(answer) => assert!(matches!(answer, Value::List(_)), "{answer}"),
        Err(reason) => assert!(!reason.is_empty() && !reason.contains('\n'), "{reason:?}"),
    }
}

fn known_version(version: u32) -> bool {
    messages::PROTOCOLS.contains(&version)
}

fn report(data: &[u8]) {
    let Ok(value) = isolet::Value::from_marshal(data, 16 << 20) else { return };
    let _ = asks::read(value.clone());
    let _ = exceptions::from_guest(value.clone());
    let (arena, used) = measured(|| nodes::from_guest(value));
    assert!(used.peak <= FACTOR * data.len() + FIXED, "{} bytes took {used:?}", data.len());
    let Ok(arena) = arena else { return };
    assert_eq!(arena.node_count as usize, arena.nodes.len());
    let written = arena.encode_to_vec();
    let again = Arena::decode(&*written).map(|again| again.encode_to_vec());
    assert_eq!(again.as_ref(), Ok(&written));
}
