//! The op for randomness.

use deno_core::{OpState, op2};

use super::OpError;
use crate::isolate::state::State;

#[op2(fast)]
pub(crate) fn op_isolet_entropy(
    state: &mut OpState,
    #[buffer] buffer: &mut [u8],
) -> Result<(), OpError> {
    let state = state.borrow_mut::<State>();
    match &mut state.order {
        Some(order) => {
            order.fill_entropy(buffer);
            Ok(())
        }
        None => state.host.fill_entropy(buffer).map_err(OpError::Host),
    }
}
