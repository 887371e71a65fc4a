//! What V8 has compiled of our JavaScript modules, kept in the image: parsing and compiling them
//! takes a tenth of a start.

use std::borrow::Cow;
use std::collections::HashMap;

use bytes::Bytes;
use deno_core::v8::script_compiler::{Source, compile_module};
use deno_core::{
    ExtCodeCache, JsRuntime, ModuleSourceCode, ModuleSpecifier, SourceCodeCacheInfo, v8,
};

use crate::image::JAVASCRIPT;

/// The code of each module, by its specifier.
pub(super) struct ModuleCache(HashMap<String, Bytes>);

impl ModuleCache {
    /// Reads what [`compiled`] has written. What it does not have is compiled anew.
    pub(super) fn read(mut kept: Bytes) -> Self {
        let mut take = || {
            let (length, _) = kept.split_first_chunk()?;
            let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
            let end = length.checked_add(size_of::<u64>()).filter(|end| *end <= kept.len())?;
            Some(kept.split_to(end).slice(size_of::<u64>()..))
        };
        let mut modules = HashMap::new();
        while let (Some(specifier), Some(code)) = (take(), take()) {
            modules.insert(String::from_utf8_lossy(&specifier).into_owned(), code);
        }
        Self(modules)
    }
}

impl ExtCodeCache for ModuleCache {
    fn get_code_cache_info(
        &self,
        specifier: &ModuleSpecifier,
        _code: &ModuleSourceCode,
        _esm: bool,
    ) -> SourceCodeCacheInfo {
        let data = self.0.get(specifier.as_str()).map(|code| Cow::Owned(code.to_vec()));
        SourceCodeCacheInfo { hash: 0, data }
    }

    /// This is called before anything of the module has run. An image keeps what has been compiled
    /// by then, too: see [`compiled`].
    fn code_cache_ready(&self, _: ModuleSpecifier, _hash: u64, _code_cache: &[u8], _esm: bool) {}
}

/// Returns the code of our modules, with all functions that were called so far.
pub(super) fn compiled(runtime: &mut JsRuntime) -> Vec<u8> {
    deno_core::scope!(scope, runtime);
    let mut kept = Vec::new();
    for (specifier, text) in JAVASCRIPT {
        let Some(code) = code(scope, specifier, text) else { continue };
        for piece in [specifier.as_bytes(), &code] {
            kept.extend_from_slice(&(piece.len() as u64).to_le_bytes());
            kept.extend_from_slice(piece);
        }
    }
    kept
}

/// V8 finds the module that it has compiled before: it has the same text, name and options.
fn code(scope: &mut v8::PinScope<'_, '_>, specifier: &str, text: &str) -> Option<Vec<u8>> {
    let name = v8::String::new(scope, specifier)?;
    let origin =
        v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, true, None);
    let text = v8::String::new(scope, text)?;
    let module = compile_module(scope, &mut Source::new(text, Some(&origin)))?;
    let code = module.get_unbound_module_script(scope).create_code_cache()?;
    Some(code.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_is_compiled_anew() {
        let mut kept = Vec::new();
        for piece in ["ext:a", "code", "ext:b", "more"] {
            kept.extend_from_slice(&(piece.len() as u64).to_le_bytes());
            kept.extend_from_slice(piece.as_bytes());
        }
        for length in 0..=kept.len() {
            let cache = ModuleCache::read(Bytes::copy_from_slice(&kept[..length]));
            let code = |name: &str| cache.0.get(name).map(|code| &code[..]);
            let is_whole = length == kept.len();
            assert_eq!(code("ext:b"), is_whole.then_some(&b"more"[..]), "{length}");
            assert!(code("ext:a").is_none_or(|code| code == b"code"), "{length}");
        }
        let huge = [&u64::MAX.to_le_bytes()[..], b"x"].concat();
        assert!(ModuleCache::read(huge.into()).0.is_empty());
    }
}
