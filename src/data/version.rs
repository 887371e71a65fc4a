//! The versions of this program and of V8, for hosts that do not link V8: images, workers and
//! journals are named by them.

/// The version string of the V8 that isolet links with. A test of `isolate` compares it with V8's
/// own.
const V8: &str = "15.0.245.2-rusty";

/// Returns the version of V8 that guests run on.
#[must_use]
pub fn v8_version() -> &'static str {
    V8
}

/// Names this program: its version and that of V8.
pub(crate) fn program() -> String {
    format!("isolet {} with V8 {V8}", env!("CARGO_PKG_VERSION"))
}
