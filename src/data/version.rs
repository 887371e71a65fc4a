//! The version of V8, which a host without V8 knows too: it names images and workers by it.

/// The version of the V8 that isolet is linked with, as V8 says it; a test of `isolate` compares
/// the two.
const V8: &str = "15.0.245.2-rusty";

/// Returns the version of V8 that guests run on.
#[must_use]
pub fn v8_version() -> &'static str {
    V8
}
