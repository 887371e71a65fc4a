//! What isolet gets from a version of `deno_core` and its V8, read from the sources of the crates.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use isolet_pyodide_assets::Digest;

use super::tree::Tree;
use crate::bump::words;

/// The headers of V8 that `src/isolate/native_code.rs` declares functions and objects of.
const HEADERS: [&str; 4] = [
    "v8/include/v8-wasm.h",
    "v8/src/wasm/wasm-code-manager.h",
    "v8/src/wasm/wasm-engine.h",
    "v8/src/wasm/wasm-tier.h",
];

/// A header of V8.
pub(super) struct Header {
    pub(super) name: &'static str,
    pub(super) path: PathBuf,
    /// `None` if there is no such file.
    pub(super) digest: Option<Digest>,
}

/// A version of `deno_core`, with what it brings.
pub(super) struct Engine {
    pub(super) deno_core: String,
    pub(super) deno_error: String,
    /// The version of the crate `v8`.
    pub(super) v8_crate: String,
    /// V8's own version, as the crate writes it.
    pub(super) v8: String,
    /// The version of the crate with ICU's data.
    pub(super) icu: String,
    pub(super) default_features: Vec<String>,
    pub(super) ops: BTreeSet<String>,
    /// The names in the Rust of `deno_core` and the crate `v8`.
    pub(super) rust: BTreeSet<String>,
    /// The names in `deno_core`'s JavaScript.
    pub(super) scripts: BTreeSet<String>,
    pub(super) headers: Vec<Header>,
    /// What both isolet and `deno_core` depend on, if they get different versions: isolet's and
    /// `deno_core`'s.
    pub(super) apart: BTreeMap<String, [String; 2]>,
    /// The text of `Cargo.lock`.
    pub(super) lock: String,
}

impl Engine {
    pub(super) fn read(tree: Tree) -> Result<Self> {
        let (core, v8) = (tree.package("deno_core")?, tree.package("v8")?);
        let isolet = tree.package("isolet")?;
        let deno_error = core.uses.get("deno_error");
        let deno_error = deno_error.context("deno_core does not depend on `deno_error`")?;
        let icu = core.asks.get("deno_core_icudata").map_or("none", |asked| asked);
        let rust = [words::texts(&core.directory, "rs")?, words::texts(&v8.directory, "rs")?];
        let header = |name| {
            let path = v8.directory.join(name);
            let digest = fs::read(&path).ok().map(|bytes| Digest::of(&bytes));
            Header { name, path, digest }
        };
        let both = isolet.uses.iter().filter_map(|(name, ours)| {
            let theirs = core.uses.get(name).filter(|theirs| *theirs != ours)?;
            Some((name.clone(), [ours.clone(), theirs.clone()]))
        });
        // isolet names it only because deno_core does.
        let apart = both.filter(|(name, _)| name != "deno_error").collect();
        Ok(Self {
            deno_core: core.version.clone(),
            deno_error: deno_error.clone(),
            v8_crate: v8.version.clone(),
            v8: v8_version(&v8.directory)?,
            icu: icu.trim_start_matches(['^', '=']).to_owned(),
            default_features: core.default.clone(),
            ops: ops(&core.directory)?,
            rust: owned(rust.iter().flat_map(|text| words::words(text))),
            scripts: owned(words::words(&words::texts(&core.directory, "js")?)),
            headers: HEADERS.into_iter().map(header).collect(),
            apart,
            lock: tree.lock,
        })
    }
}

fn owned<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the ops that `deno_core` has without any extension.
fn ops(directory: &Path) -> Result<BTreeSet<String>> {
    let path = directory.join("ops_builtin.rs");
    let text = fs::read_to_string(&path).context("deno_core has no `ops_builtin.rs`")?;
    let list = text.split_once("\nbuiltin_ops! {").and_then(|(_, rest)| rest.split_once('}'));
    let (list, _) = list.context("`ops_builtin.rs` of deno_core lists no `builtin_ops!`")?;
    let without_comments = list.lines().map(|line| line.split("//").next().unwrap_or_default());
    let paths: Vec<&str> = without_comments.flat_map(|line| line.split(',')).collect();
    Ok(owned(paths.iter().filter_map(|path| path.trim().rsplit("::").next()))
        .into_iter()
        .filter(|name| !name.is_empty())
        .collect())
}

/// Returns V8's version, as the constant `VERSION_STRING` of its crate has it.
fn v8_version(directory: &Path) -> Result<String> {
    let text = fs::read_to_string(directory.join("v8/include/v8-version.h"));
    let text = text.context("the crate `v8` has no `v8-version.h`")?;
    let number = |name: &str| {
        let start = format!("#define {name} ");
        let number = text.lines().find_map(|line| line.strip_prefix(&start));
        number.map(str::trim).with_context(|| format!("`v8-version.h` defines no {name}"))
    };
    Ok(format!(
        "{}.{}.{}.{}-rusty",
        number("V8_MAJOR_VERSION")?,
        number("V8_MINOR_VERSION")?,
        number("V8_BUILD_NUMBER")?,
        number("V8_PATCH_LEVEL")?
    ))
}
