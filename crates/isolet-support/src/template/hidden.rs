//! Texts that are never shown.

use std::fmt;

/// A text that `Debug` does not show: a token, a header, a variable of the environment.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text. Whoever calls this takes care that it is neither logged nor shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

#[cfg(test)]
mod tests {
    use super::Secret;

    #[test]
    fn a_secret_is_not_shown() {
        assert_eq!(format!("{:?}", Some(Secret::new("hunter2"))), "Some([secret])");
    }
}
