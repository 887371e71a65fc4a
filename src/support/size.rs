//! Sizes as people read them.

/// Formats a size in the largest unit of which it has at least one: `4.0 KiB`, `13.9 MiB`.
#[must_use]
pub fn shown_bytes(bytes: u64) -> String {
    let units = [("GiB", 1u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(size);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::shown_bytes;

    #[test]
    fn a_size_is_in_the_largest_unit_of_which_it_has_one() {
        let shown = [0, 1023, 1024, 13_513_178, u64::MAX].map(shown_bytes);
        assert_eq!(shown, ["0 B", "1023 B", "1.0 KiB", "12.8 MiB", "17179869183.9 GiB"]);
    }
}
