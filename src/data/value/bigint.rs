//! Python integers that exceed 64 bits.

use std::fmt;

use crate::data::error::{Error, ErrorKind};

/// The maximum size that is written in decimal: 4300 digits, as in CPython. The conversion takes
/// time quadratic in the length, and a guest chooses the length.
const MAX_DECIMAL_BITS: u64 = 14_284;

/// An integer of any size. It is shown in decimal, or beyond 4300 digits (where CPython refuses) in
/// hexadecimal, as `0x…`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BigInt(num_bigint::BigInt);

/// The sign of a [`BigInt`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sign {
    /// Below zero.
    Negative,
    /// Zero or above.
    NonNegative,
}

impl BigInt {
    /// Makes a number from its sign and magnitude, least significant byte first.
    #[must_use]
    pub fn from_le_bytes(sign: Sign, magnitude: &[u8]) -> Self {
        let sign = match sign {
            Sign::Negative => num_bigint::Sign::Minus,
            Sign::NonNegative => num_bigint::Sign::Plus,
        };
        Self(num_bigint::BigInt::from_bytes_le(sign, magnitude))
    }

    /// Returns the sign and the magnitude, least significant byte first.
    #[must_use]
    pub fn to_le_bytes(&self) -> (Sign, Vec<u8>) {
        let (sign, magnitude) = self.0.to_bytes_le();
        let is_negative = sign == num_bigint::Sign::Minus;
        (if is_negative { Sign::Negative } else { Sign::NonNegative }, magnitude)
    }

    /// Returns the number if it fits into a signed 128-bit integer.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        i128::try_from(&self.0).ok()
    }

    /// Returns the number if it fits into an unsigned 128-bit integer.
    #[must_use]
    pub fn to_u128(&self) -> Option<u128> {
        u128::try_from(&self.0).ok()
    }

    /// Returns the nearest float, or an infinity if the number exceeds the range of floats.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "the nearest float is what is promised")]
    pub fn to_f64(&self) -> f64 {
        let magnitude = self.0.magnitude();
        let shift = self.bits().saturating_sub(64);
        let mut top = (magnitude >> shift).to_u64_digits().first().copied().unwrap_or_default();
        // Bits below the top 64 matter only for deciding whether the number is half-way between two
        // floats.
        top |= u64::from(magnitude.trailing_zeros().is_some_and(|zeros| zeros < shift));
        let scale = i32::try_from(shift).map_or(f64::INFINITY, |shift| 2f64.powi(shift));
        let float = top as f64 * scale;
        if self.0.sign() == num_bigint::Sign::Minus { -float } else { float }
    }

    /// Returns the number if it fits into a signed 64-bit integer.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        i64::try_from(&self.0).ok()
    }

    /// Returns the number if it fits into an unsigned 64-bit integer.
    pub(super) fn to_u64(&self) -> Option<u64> {
        u64::try_from(&self.0).ok()
    }

    /// Returns the number in two's complement, least significant byte first.
    pub(super) fn to_signed_le_bytes(&self) -> Vec<u8> {
        self.0.to_signed_bytes_le()
    }

    /// Reads the output of [`to_signed_le_bytes`](Self::to_signed_le_bytes).
    pub(super) fn from_signed_le_bytes(bytes: &[u8]) -> Self {
        Self(num_bigint::BigInt::from_signed_bytes_le(bytes))
    }

    /// Returns the number of bits of the magnitude.
    pub(super) fn bits(&self) -> u64 {
        self.0.bits()
    }

    /// Returns a description for messages: the digits, if there are few.
    pub(super) fn summary(&self) -> String {
        match self.bits() {
            ..=128 => format!("int {}", self.0),
            bits => format!("int of {bits} bits"),
        }
    }

    /// Returns a Python literal of the number: decimal, or hexadecimal where decimal would take too
    /// long.
    pub(super) fn to_literal(&self) -> String {
        if self.bits() <= MAX_DECIMAL_BITS { self.0.to_string() } else { format!("{:#x}", self.0) }
    }

    /// Reads the output of [`to_literal`](Self::to_literal).
    pub(super) fn from_literal(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (digits, radix) = digits.strip_prefix("0x").map_or((digits, 10), |hex| (hex, 16));
        let magnitude = num_bigint::BigInt::parse_bytes(digits.as_bytes(), radix)?;
        Some(Self(if negative { -magnitude } else { magnitude }))
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_literal())
    }
}

impl std::str::FromStr for BigInt {
    type Err = Error;

    /// Reads a decimal number.
    fn from_str(digits: &str) -> Result<Self, Error> {
        digits.parse().map(Self).map_err(|error: num_bigint::ParseBigIntError| {
            Error::new(ErrorKind::Value, format!("not a decimal number: {error}"))
        })
    }
}

macro_rules! from_integers {
    ($($integer:ty)*) => {$(
        impl From<$integer> for BigInt {
            fn from(number: $integer) -> Self {
                Self(number.into())
            }
        }
    )*};
}
from_integers!(u64 usize i128 u128);

#[cfg(test)]
mod tests {
    use super::*;

    fn power(exponent: usize, plus: i128) -> BigInt {
        BigInt((num_bigint::BigInt::from(1) << exponent) + plus)
    }

    #[test]
    fn the_nearest_float_is_that_of_the_decimal() {
        let shifts = [0, 1, 52, 53, 54, 63, 64, 65, 117, 118, 1000, 1022, 1023, 1024, 2000];
        for shift in shifts {
            for plus in [-1, 0, 1, (1 << 63) + 1, (3 << 64) - 1, 1 << 65, (1 << 65) + 1] {
                for number in [power(shift, plus), BigInt(-power(shift, plus).0)] {
                    let nearest: f64 = number.to_string().parse().unwrap();
                    assert_eq!(number.to_f64().to_bits(), nearest.to_bits(), "{number}");
                }
            }
        }
        assert!(power(10_000_000, 0).to_f64().is_infinite());
    }

    #[test]
    fn literals_are_read_back_whether_decimal_or_not() {
        for number in [power(0, -1), power(200, 1), power(14_283, 0), power(14_284, 0)] {
            for number in [BigInt(-number.0.clone()), number] {
                let literal = number.to_literal();
                assert_eq!(BigInt::from_literal(&literal).as_ref(), Some(&number), "{literal}");
            }
        }
        assert_eq!(power(14_283, 0).to_literal().len(), 4300);
        assert!(power(14_284, 0).to_literal().starts_with("0x1000"));
        assert_eq!(BigInt::from_literal("0x"), None);
        assert_eq!(BigInt::from_literal("x"), None);
    }
}
