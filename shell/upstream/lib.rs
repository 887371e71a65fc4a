//! Empty: `Cargo.toml` says what this is for.
