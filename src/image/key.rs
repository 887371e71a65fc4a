//! All that an image depends on, and its digest.

use isolet_pyodide_assets::{Digest, Lock, patches};

use super::sources::{JAVASCRIPT, PYTHON, WARM_UP, WARM_UP_PACKAGES};
use super::v8_flags::{MEMORY_BOUNDS, V8_FLAGS};
use crate::data::version::v8_version;

/// What changes Pyodide's files before an interpreter has them, and what an image has besides. The
/// sources stand for what they do, since they are not compiled without the engine.
const CHANGES: [&str; 12] = [
    include_str!("../isolate/adapt/mod.rs"),
    include_str!("../isolate/adapt/data_segments.rs"),
    include_str!("../isolate/adapt/errnos.rs"),
    include_str!("../isolate/adapt/patches.rs"),
    include_str!("../isolate/adapt/recursion.rs"),
    include_str!("../isolate/adapt/recursion/circles.rs"),
    include_str!("../isolate/adapt/exports.rs"),
    include_str!("../isolate/adapt/used_exports.rs"),
    // It has the digests of what is added to the standard library.
    include_str!("../isolate/stdlib.rs"),
    // They say what V8's code an image has, and where.
    include_str!("../isolate/native_code.rs"),
    include_str!("../isolate/module_cache.rs"),
    include_str!("../isolate/image/layout.rs"),
];

/// Returns the key of an image of these assets.
pub(super) fn key(lock: &Lock) -> Digest {
    let mut inputs = Vec::from(lock.digest().as_bytes());
    for text in texts() {
        inputs.extend_from_slice(&(text.len() as u64).to_le_bytes());
        inputs.extend_from_slice(text.as_bytes());
    }
    Digest::of(&inputs)
}

fn texts() -> impl Iterator<Item = &'static str> {
    let version = env!("CARGO_PKG_VERSION");
    let settings = [version, v8_version(), V8_FLAGS, MEMORY_BOUNDS, WARM_UP, WARM_UP_PACKAGES];
    // An image has native code, and a directory may be shared by machines that are not alike.
    let machine = [std::env::consts::ARCH, std::env::consts::OS];
    let glue = JAVASCRIPT.iter().chain(&PYTHON).map(|(_, text)| *text);
    // If they are not valid, no image is made.
    let patches = patches().into_iter().flatten();
    let patches = patches.flat_map(|patch| [patch.find(), patch.replace()]);
    settings.into_iter().chain(machine).chain(CHANGES).chain(glue).chain(patches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_belongs_to_the_text_of_each_patch() {
        for patch in patches().unwrap() {
            for wanted in [patch.find(), patch.replace()] {
                assert!(texts().any(|text| text == wanted), "{}", patch.name());
            }
        }
    }
}
