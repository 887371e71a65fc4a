//! The op for requests to the network.

use deno_core::{OpState, op2};

use super::OpError;
use crate::engine::isolate::State;
use crate::waist::{HostReply, HostRequest};

/// Asks the host to reach an address.
#[op2(fast)]
pub(crate) fn op_isolet_fetch(state: &OpState, #[string] address: &str) -> Result<(), OpError> {
    match state.borrow::<State>().host.call(HostRequest::Fetch(address)) {
        HostReply::Refused(error) => Err(OpError::Host(error.message().to_owned())),
        _ => Err(OpError::Phase("the network")),
    }
}
