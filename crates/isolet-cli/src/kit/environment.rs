//! The command's own environment, as values.

use isolet_support::template::Environment;

/// Returns it, for texts of the user's that may name its variables.
pub(crate) fn environment() -> Environment {
    #[expect(clippy::disallowed_methods, reason = "the user's texts name variables of it")]
    let variables = std::env::vars_os();
    Environment::new(
        variables.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        }),
    )
}
