//! All that an image depends on, and its digest.

use isolet_pyodide_assets::{Digest, Lock};

use super::sources::{JAVASCRIPT, PYTHON, WARM_UP};
use super::v8_flags::V8_FLAGS;
use crate::data::version::v8_version;

/// What changes Pyodide's files before an interpreter has them. The sources stand for what they do,
/// since they are not compiled without the engine.
const CHANGES: [&str; 7] = [
    include_str!("../isolate/adapt/mod.rs"),
    include_str!("../isolate/adapt/data_segments.rs"),
    include_str!("../isolate/adapt/errnos.rs"),
    include_str!("../isolate/adapt/recursion.rs"),
    include_str!("../isolate/adapt/recursion/circles.rs"),
    include_str!("../isolate/adapt/side_table.rs"),
    // It has the digests of what is added to the standard library.
    include_str!("../isolate/stdlib.rs"),
];

/// Returns the key of an image of these assets.
pub(super) fn key(lock: &Lock) -> Digest {
    let mut inputs = Vec::from(lock.digest().as_bytes());
    let glue = JAVASCRIPT.iter().chain(&PYTHON).map(|(_, text)| *text);
    let parts = [env!("CARGO_PKG_VERSION"), v8_version(), V8_FLAGS, WARM_UP];
    for part in parts.into_iter().chain(CHANGES).chain(glue) {
        inputs.extend_from_slice(&(part.len() as u64).to_le_bytes());
        inputs.extend_from_slice(part.as_bytes());
    }
    Digest::of(&inputs)
}
