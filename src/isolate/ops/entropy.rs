//! The op for randomness.

use deno_core::{OpState, op2};

use super::OpError;
use crate::isolate::state::State;

#[op2(fast)]
pub(crate) fn op_isolet_entropy(
    state: &OpState,
    #[buffer] buffer: &mut [u8],
) -> Result<(), OpError> {
    state.borrow::<State>().host.fill_entropy(buffer).map_err(OpError::Host)
}
