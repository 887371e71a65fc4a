//! The op for randomness.

use deno_core::{OpState, op2};

use super::OpError;
use crate::engine::isolate::State;
use crate::waist::{HostReply, HostRequest};

#[op2(fast)]
pub(crate) fn op_isolet_entropy(
    state: &OpState,
    #[buffer] buffer: &mut [u8],
) -> Result<(), OpError> {
    match state.borrow::<State>().host.call(HostRequest::Entropy(buffer)) {
        HostReply::Failed(reason) => Err(OpError::Host(reason)),
        _ => Ok(()),
    }
}
