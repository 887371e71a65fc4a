//! Checks whether a value may cross from the host to the guest, and computes its encoded length.

use super::Value;

/// The maximum nesting depth of a value that crosses in either direction. Keep equal to the number
/// in `js/py/values.py`.
pub(crate) const MAX_CROSSING_DEPTH: usize = 100;

/// The format stores lengths in 31 bits.
const MAX_LENGTH: usize = i32::MAX as usize;

/// Returns how many bytes `value` has in the format in which it crosses to the guest.
#[must_use]
pub fn encoded_len(value: &Value) -> u64 {
    let mut bytes = own_len(value);
    let mut containers = vec![value];
    while let Some(container) = containers.pop() {
        for_each_child(container, |child| {
            bytes = bytes.saturating_add(own_len(child));
            if !child.is_scalar() {
                containers.push(child);
            }
        });
    }
    bytes
}

/// Bytes of a text that take as long to encode or decode as a small value, at most.
pub(super) const BYTES_PER_STEP: u64 = 16;

/// Returns `true` if encoding `value` takes more than `most` steps: one for each value in it, and
/// one for each [`BYTES_PER_STEP`] bytes. Reads no more of it than that takes.
pub(crate) fn takes_more_steps(value: &Value, most: u64) -> bool {
    let own = |value: &Value| 1 + own_len(value) / BYTES_PER_STEP;
    let mut steps = own(value);
    let mut containers = vec![value];
    while let Some(container) = containers.pop() {
        let items = match container {
            Value::List(items) => items.len(),
            Value::Dict(items) => items.len(),
            _ => 0,
        };
        if steps.saturating_add(items as u64) > most {
            return true;
        }
        for_each_child(container, |child| {
            steps = steps.saturating_add(own(child));
            if !child.is_scalar() {
                containers.push(child);
            }
        });
    }
    steps > most
}

/// Fails with a reason if `value` cannot cross to the guest.
pub(crate) fn check_bounds(value: &Value, max_bytes: u64) -> Result<(), String> {
    check_own(value)?;
    let mut containers = vec![(value, 1)];
    while let Some((container, depth)) = containers.pop() {
        if !container.is_scalar() && depth > MAX_CROSSING_DEPTH {
            return Err(format!(
                "a value nested deeper than {MAX_CROSSING_DEPTH} levels cannot cross to the guest"
            ));
        }
        let mut checked = Ok(());
        for_each_child(container, |child| {
            if checked.is_ok() {
                checked = check_own(child);
            }
            if !child.is_scalar() {
                containers.push((child, depth + 1));
            }
        });
        checked?;
    }
    let bytes = encoded_len(value);
    if bytes > max_bytes {
        return Err(format!(
            "a value of {bytes} bytes cannot cross to the guest, the limit is {max_bytes} bytes"
        ));
    }
    Ok(())
}

/// Checks a value without its items.
fn check_own(value: &Value) -> Result<(), String> {
    match value {
        Value::Str(text) => check_length(text.len(), "a str", "bytes"),
        Value::Bytes(bytes) => check_length(bytes.len(), "a bytes", "bytes"),
        Value::List(items) => check_length(items.len(), "a list", "items"),
        Value::BigInt(number) => {
            let digits = usize::try_from(long_digits(number.bits())).unwrap_or(usize::MAX);
            check_length(digits, "an int", "digits of 15 bits")
        }
        Value::Dict(items) => match items.iter().find(|(key, _)| !key.is_scalar()) {
            Some((key, _)) => {
                Err(format!("a dict key of type {} cannot cross to the guest", key.type_name()))
            }
            None => Ok(()),
        },
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Float(_) => Ok(()),
    }
}

fn check_length(length: usize, what: &str, unit: &str) -> Result<(), String> {
    if length > MAX_LENGTH {
        return Err(format!(
            "{what} of {length} {unit} cannot cross to the guest, the limit is {MAX_LENGTH} {unit}"
        ));
    }
    Ok(())
}

/// Returns the encoded length of a value without its items.
fn own_len(value: &Value) -> u64 {
    match value {
        Value::None | Value::Bool(_) => 1,
        Value::Int(number) if i32::try_from(*number).is_ok() => 5,
        Value::Int(number) => {
            5 + 2 * long_digits(u64::from(u64::BITS - number.unsigned_abs().leading_zeros()))
        }
        Value::BigInt(number) => 5 + 2 * long_digits(number.bits()),
        Value::Float(_) => 9,
        Value::Str(text) => 5 + text.len() as u64,
        Value::Bytes(bytes) => 5 + bytes.len() as u64,
        Value::List(_) => 5,
        Value::Dict(_) => 2,
    }
}

fn long_digits(bits: u64) -> u64 {
    bits.div_ceil(15)
}

fn for_each_child<'a>(container: &'a Value, mut visit: impl FnMut(&'a Value)) {
    match container {
        Value::List(items) => items.iter().for_each(visit),
        Value::Dict(items) => items.iter().for_each(|(key, item)| {
            visit(key);
            visit(item);
        }),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::None, |value, _| Value::List(vec![value]))
    }

    #[test]
    fn a_value_may_be_nested_as_deep_as_the_limit() {
        assert_eq!(check_bounds(&nested(MAX_CROSSING_DEPTH), u64::MAX), Ok(()));
        let mut deep = nested(100_000);
        for levels in [MAX_CROSSING_DEPTH + 1, 100_000] {
            let value = if levels == 100_000 { &deep } else { &nested(levels) };
            assert_eq!(
                check_bounds(value, u64::MAX).unwrap_err(),
                "a value nested deeper than 100 levels cannot cross to the guest"
            );
        }
        assert_eq!(encoded_len(&deep), 500_001);
        // Taken apart level by level, because dropping it whole would overflow the stack.
        while let Value::List(mut items) = deep {
            deep = items.pop().unwrap_or_default();
        }
    }

    #[test]
    fn a_value_may_be_as_large_as_the_limit() {
        let value = Value::List(vec!["abcde".into(), Value::Int(1)]);
        assert_eq!(check_bounds(&value, 20), Ok(()));
        assert_eq!(
            check_bounds(&value, 19).unwrap_err(),
            "a value of 20 bytes cannot cross to the guest, the limit is 19 bytes"
        );
    }

    #[test]
    fn steps_are_values_and_pieces_of_texts() {
        let long = Value::from("x".repeat(160));
        let items = Value::List(vec![long.clone(), Value::Int(1), Value::None]);
        let items = Value::Dict(vec![(Value::from("a"), items)]);
        for (value, steps) in [(Value::None, 1), (long, 11), (items, 16)] {
            assert!(takes_more_steps(&value, steps - 1) && !takes_more_steps(&value, steps));
        }
    }

    #[test]
    fn lengths_past_31_bits_are_refused_whatever_the_limit() {
        assert_eq!(check_length(MAX_LENGTH, "a str", "bytes"), Ok(()));
        assert_eq!(
            check_length(MAX_LENGTH + 1, "a list", "items").unwrap_err(),
            "a list of 2147483648 items cannot cross to the guest, the limit is 2147483647 items"
        );
    }

    #[test]
    fn a_key_is_a_scalar() {
        let value = Value::List(vec![Value::dict([(Value::List(vec![]), 1)])]);
        assert_eq!(
            check_bounds(&value, u64::MAX).unwrap_err(),
            "a dict key of type list cannot cross to the guest"
        );
    }
}
