//! Tests which bytes are accepted as a trampoline.

use proptest::prelude::*;

use super::{HEADER, IMPORT_AND_EXPORT, MAX_PARAMETERS, VALUE_TYPES, is_trampoline};

/// Returns what Emscripten's `convertJsFunctionToWasm` writes.
fn trampoline(parameters: &[u8], results: &[u8]) -> Vec<u8> {
    let number = |n: usize| [u8::try_from(n % 128).unwrap() | 128, u8::try_from(n >> 7).unwrap()];
    let counted = |types: &[u8]| [number(types.len()).to_vec(), types.to_vec()].concat();
    let one_type = [vec![1, 0x60], counted(parameters), counted(results)].concat();
    [HEADER.to_vec(), vec![1], counted(&one_type), IMPORT_AND_EXPORT.to_vec()].concat()
}

#[test]
fn what_emscripten_writes_is_a_trampoline() {
    assert!(is_trampoline(&trampoline(&[], &[])));
    assert!(is_trampoline(&trampoline(&[0x7f, 0x7e, 0x7d, 0x7c, 0x6f], &[0x7f])));
    assert!(is_trampoline(&trampoline(&[0x7f; MAX_PARAMETERS], &[])));
}

#[test]
fn other_modules_are_none() {
    let good = trampoline(&[0x7f, 0x7f], &[0x7f]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let cases = [
        ("nothing", Vec::new()),
        ("an empty module", HEADER.to_vec()),
        ("another version", with(4, 2)),
        ("a section of another kind", with(8, 10)),
        ("two types", with(11, 2)),
        ("another kind of type", with(12, 0x5f)),
        ("a vector", with(15, 0x7b)),
        ("a reference to a function", with(15, 0x70)),
        ("two results", trampoline(&[], &[0x7f, 0x7f])),
        ("too many parameters", trampoline(&[0x7f; MAX_PARAMETERS + 1], &[])),
        ("a byte more", [good.clone(), vec![0]].concat()),
        ("a custom section", [good.clone(), vec![0, 2, 1, b'x']].concat()),
        ("a code section", [good.clone(), vec![10, 4, 1, 2, 0, 11]].concat()),
        ("a start function", [good.clone(), vec![8, 1, 0]].concat()),
        ("itself twice", [good.clone(), good.clone()].concat()),
    ];
    for (what, bytes) in cases {
        assert!(!is_trampoline(&bytes), "{what}");
    }
    for length in 0..good.len() {
        assert!(!is_trampoline(&good[..length]), "the first {length} bytes");
    }
}

proptest! {
    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        is_trampoline(&[HEADER, &[1], &bytes, IMPORT_AND_EXPORT].concat());
        is_trampoline(&bytes);
    }

    /// Accepted bytes have the right shape: written by Emscripten, the same types give the same
    /// bytes.
    #[test]
    fn a_changed_trampoline_is_none_or_another_one(
        parameters in prop::collection::vec(prop::sample::select(&VALUE_TYPES[..]), 0..8),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let mut bytes = trampoline(&parameters, &[0x7f]);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if is_trampoline(&bytes) {
            let count = usize::from(bytes[13] & 0x7f);
            let (parameters, rest) = bytes[15..].split_at(count);
            let results = &rest[2..2 + usize::from(rest[0] & 0x7f)];
            prop_assert_eq!(trampoline(parameters, results), bytes);
        }
    }
}
