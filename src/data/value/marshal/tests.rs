//! Tests of the format, with bytes that CPython writes and bytes that only an attacker sends.

use super::*;

fn round_trip(value: &Value) -> Value {
    let mut bytes = Vec::new();
    encode(value, &mut bytes);
    decode(&bytes).unwrap()
}

#[test]
fn integers_around_every_width_survive_the_round_trip() {
    for shift in 0..127 {
        for near in -1..=1 {
            for sign in [-1, 1] {
                let number = sign * ((1i128 << shift) + near);
                let value =
                    i64::try_from(number).map_or_else(|_| Value::BigInt(number.into()), Value::Int);
                assert_eq!(round_trip(&value), value, "{number}");
            }
        }
    }
}

#[test]
fn matches_the_bytes_that_cpython_writes() {
    // marshal.dumps({'a': [1, 2.5, None, True, b'x', 10**30]}, 2)
    let expected = b"{u\x01\0\0\0a[\x06\0\0\0i\x01\0\0\0g\0\0\0\0\0\0\x04@NTs\x01\0\0\0x\
        l\x07\0\0\0\0\0\0\0\xa97\xa73\x04M\x93e'\x030";
    let decoded = decode(expected);
    let value = Value::Dict(vec![(
        "a".into(),
        Value::List(vec![
            Value::Int(1),
            Value::Float(2.5),
            Value::None,
            Value::Bool(true),
            Value::Bytes(b"x".to_vec()),
            Value::BigInt(10i128.pow(30).into()),
        ]),
    )]);
    let mut bytes = Vec::new();
    encode(&value, &mut bytes);
    assert_eq!(decode(&bytes), Ok(value.clone()));
    assert_eq!(decoded, Ok(value));
    assert_eq!(bytes, expected);
}

#[test]
fn a_false_length_fails_without_reserving_it() {
    assert_eq!(decode(b"[\xff\xff\xff\x7f"), Err(DecodeError::Truncated(5)));
    assert_eq!(decode(b"u\xff\xff\xff\x7fab"), Err(DecodeError::Truncated(7)));
    assert_eq!(decode(b"i\x01"), Err(DecodeError::Truncated(2)));
}

#[test]
fn nested_false_lengths_reserve_no_more_than_the_limit() {
    let claimed = 16 << 20;
    let mut bytes = Vec::new();
    for _ in 0..MAX_DEPTH {
        bytes.push(b'[');
        encode_length(claimed, &mut bytes);
    }
    bytes.extend(vec![b'N'; claimed]);
    // Reserving what each level claims would take 64 GiB.
    let limit = (claimed * 40) as u64;
    let Err(DecodeError::Truncated(_)) = decode_within(&bytes, limit) else {
        panic!("the first level takes all that there is");
    };
}

#[test]
fn what_takes_more_memory_than_it_may_is_refused_with_both_numbers() {
    let list = Value::List(vec![Value::None; 100]);
    let dict = Value::dict([("a", list.clone()), ("b", Value::bytes(vec![0; 200]))]);
    for (value, needed) in [
        (list, 3200 + 16),
        (dict, 32 + 4 * 32 + 32 + 32 + 3216 + 208),
        (Value::bytes(vec![0; 1000]), 1008),
    ] {
        let mut bytes = Vec::new();
        encode(&value, &mut bytes);
        assert_eq!(Reader::new(&bytes).skip(), Ok(needed), "{value}");
        assert_eq!(decode_within(&bytes, needed).as_ref(), Ok(&value));
        // The smallest block is free, so that a `bytes` as long as the limit is within it.
        let limit = needed - 33;
        let error = DecodeError::Memory { needed, limit };
        assert_eq!(decode_within(&bytes, limit), Err(error), "{value}");
    }
}

#[test]
fn what_is_too_large_is_passed_over() {
    let mut bytes = Vec::new();
    encode(&Value::List(vec![Value::None; 100]), &mut bytes);
    encode(&Value::Int(7), &mut bytes);
    let mut reader = Reader::new(&bytes);
    assert!(matches!(reader.value(1000), Err(DecodeError::Memory { needed: 3216, limit: 1000 })));
    assert_eq!((reader.value(0), reader.end()), (Ok(Value::Int(7)), Ok(())));
}

#[test]
fn code_objects_and_references_are_refused() {
    assert_eq!(decode(b"c"), Err(DecodeError::Tag { tag: b'c', at: 0 }));
    assert_eq!(decode(b"r\0\0\0\0"), Err(DecodeError::Tag { tag: b'r', at: 0 }));
    assert_eq!(decode(b"NN"), Err(DecodeError::Trailing(1)));
}

#[test]
fn deep_nesting_is_an_error_and_no_stack_overflow() {
    assert_eq!(decode(&b"[\x01\0\0\0".repeat(100_000)), Err(DecodeError::Depth));
}

#[test]
fn as_many_levels_are_decoded_as_can_be_converted() {
    let lists = |levels| [b"[\x01\0\0\0".repeat(levels - 1), b"[\0\0\0\0".to_vec()].concat();
    let deepest = decode(&lists(MAX_DEPTH)).unwrap();
    assert_eq!(crate::data::value::to_value(&deepest).unwrap(), deepest);
    assert_eq!(decode(&lists(MAX_DEPTH + 1)), Err(DecodeError::Depth));
}

#[test]
fn a_key_that_is_no_scalar_is_refused() {
    assert_eq!(decode(b"{[\0\0\0\0N0"), Err(DecodeError::Key(1)));
    assert_eq!(decode(b"{NN{0N0"), Err(DecodeError::Key(3)));
    assert_eq!(decode(b"{(\0\0\0\0N0"), Err(DecodeError::Key(1)));
}

#[test]
fn what_is_decoded_has_no_room_to_spare() {
    let long = [b"[\xd0\x07\0\0".to_vec(), vec![b'N'; 2000]].concat();
    let Value::List(items) = decode(&long).unwrap() else { unreachable!() };
    assert_eq!(items.capacity(), 2000);
    let Value::Dict(items) = decode(b"{NN0").unwrap() else { unreachable!() };
    assert_eq!(items.capacity(), 1);
}
