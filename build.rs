//! Unpacks the shell of guests, which the library contains.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::Path;

use flate2::read::GzDecoder;

/// A build of `shell/`.
const PACKED: &str = "third_party/shell/isolet_shell.wasm.gz";

#[expect(clippy::disallowed_methods, reason = "cargo tells build scripts by variables")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PACKED}");
    let out = std::env::var_os("OUT_DIR");
    let Some(out) = out.filter(|_| std::env::var_os("CARGO_FEATURE_ENGINE").is_some()) else {
        return Ok(());
    };
    let mut packed = GzDecoder::new(BufReader::new(File::open(PACKED)?));
    let mut module = File::create(Path::new(&out).join("isolet_shell.wasm"))?;
    io::copy(&mut packed, &mut module)?;
    Ok(())
}
