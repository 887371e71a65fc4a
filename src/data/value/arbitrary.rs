//! Generates values for property tests.

use proptest::collection::vec;
use proptest::prelude::*;

use super::{BigInt, Sign, Value};

/// Generates any value: every type, ints of every width, floats of every kind, keys of every scalar
/// type.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(6, 64, 8, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..8).prop_map(Value::List),
            vec((scalar(), inner), 0..8).prop_map(Value::Dict),
        ]
    })
}

/// Generates any value except lists and dicts.
pub(crate) fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        int(),
        prop_oneof![any::<f64>(), prop::num::f64::ANY, Just(-0.0)].prop_map(Value::Float),
        prop_oneof![".*", "[a-z]{0,8}"].prop_map(Value::Str),
        vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
    ]
}

/// Generates any int. All widths are equally likely, and the edges between them are included.
pub(crate) fn int() -> impl Strategy<Value = Value> {
    let sign = prop_oneof![Just(Sign::Negative), Just(Sign::NonNegative)];
    let near_power = (0u32..127, -1i128..=1).prop_map(|(shift, near)| (1i128 << shift) + near);
    prop_oneof![
        any::<i64>().prop_map(Value::Int),
        any::<i32>().prop_map(Value::from),
        (near_power, any::<bool>()).prop_map(|(number, minus)| if minus {
            -number
        } else {
            number
        }
        .into()),
        (sign, vec(any::<u8>(), 0..40))
            .prop_map(|(sign, bytes)| BigInt::from_le_bytes(sign, &bytes).into()),
    ]
}
