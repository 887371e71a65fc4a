//! Python integers past 64 bits.

use std::fmt;

use num_bigint::Sign;

/// An integer of any size; shown in decimal.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BigInt(num_bigint::BigInt);

impl BigInt {
    /// Makes the number of magnitude `bytes`, least significant first.
    #[must_use]
    pub fn from_le_bytes(negative: bool, bytes: &[u8]) -> Self {
        let sign = if negative { Sign::Minus } else { Sign::Plus };
        Self(num_bigint::BigInt::from_bytes_le(sign, bytes))
    }

    /// Returns whether the number is below zero, and its magnitude, least significant byte first.
    #[must_use]
    pub fn to_le_bytes(&self) -> (bool, Vec<u8>) {
        let (sign, bytes) = self.0.to_bytes_le();
        (sign == Sign::Minus, bytes)
    }

    /// Returns the number if it fits into 128 bits.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        i128::try_from(&self.0).ok()
    }

    /// Returns the number if it fits into 64 bits.
    pub(crate) fn to_i64(&self) -> Option<i64> {
        i64::try_from(&self.0).ok()
    }
}

impl fmt::Display for BigInt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i128> for BigInt {
    fn from(number: i128) -> Self {
        Self(number.into())
    }
}
