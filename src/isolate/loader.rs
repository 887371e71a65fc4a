//! Loads modules: Pyodide's while an isolate boots, and none for the guest, whose every `import()`
//! is rejected.
//!
//! The modules of an isolate are those in the binary and Pyodide's, which V8 gets as text during
//! the boot. Nothing here opens a file or a connection.

use std::sync::OnceLock;

use bytes::Bytes;
use deno_core::v8::script_compiler::{
    CachedData, CompileOptions, NoCacheReason, Source, compile_module2,
};
use deno_core::{
    JsRuntime, ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader,
    ModuleSpecifier, ResolutionKind, v8,
};
use deno_error::JsErrorBox;

const REFUSAL: &str = "modules cannot be imported in this sandbox";

/// The name of Pyodide's module in stack traces.
const PYODIDE: &str = "isolet:pyodide.asm.mjs";

/// A loader that finds and loads nothing.
pub(crate) struct NoModules;

impl ModuleLoader for NoModules {
    fn resolve(
        &self,
        _specifier: &str,
        _referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        Err(JsErrorBox::type_error(REFUSAL))
    }

    fn load(
        &self,
        _specifier: &ModuleSpecifier,
        _referrer: Option<&ModuleLoadReferrer>,
        _options: ModuleLoadOptions,
    ) -> ModuleLoadResponse {
        ModuleLoadResponse::Sync(Err(JsErrorBox::type_error(REFUSAL)))
    }
}

/// Makes `import()` end here, before `deno_core` checks the imported module and the importer.
/// `deno_core` would trust its own modules, and code that makes one of them call `eval` could
/// import others.
pub(crate) fn refuse_imports(isolate: &mut v8::Isolate) {
    isolate.set_host_import_module_dynamically_callback(
        |scope: &mut v8::PinScope<'_, '_>, _, _, _, _| rejection(scope),
    );
    isolate.set_host_import_module_with_phase_dynamically_callback(
        |scope: &mut v8::PinScope<'_, '_>, _, _, _, _, _| rejection(scope),
    );
}

fn rejection<'s>(scope: &mut v8::PinScope<'s, '_>) -> Option<v8::Local<'s, v8::Promise>> {
    let message = v8::String::new(scope, REFUSAL)?;
    let error = v8::Exception::type_error(scope, message);
    let resolver = v8::PromiseResolver::new(scope)?;
    resolver.reject(scope, error)?;
    Some(resolver.get_promise(scope))
}

/// Pyodide's JavaScript, loaded.
pub(crate) struct Pyodide {
    /// Its default export, which makes an interpreter.
    pub(crate) create_module: v8::Global<v8::Value>,
    script: v8::Global<v8::UnboundModuleScript>,
}

/// Evaluates Pyodide's module. Uses code that V8 compiled before, if V8 accepts it.
pub(crate) fn load_pyodide(
    runtime: &mut JsRuntime,
    text: &Bytes,
    cache: Option<&[u8]>,
) -> Result<Pyodide, String> {
    deno_core::scope!(scope, runtime);
    v8::tc_scope!(let scope, scope);
    evaluate(scope, text, cache).ok_or_else(|| {
        let reason = scope.exception().map(|error| error.to_rust_string_lossy(scope));
        format!("Pyodide's module does not load: {}", reason.unwrap_or_default())
    })
}

fn evaluate(
    scope: &mut v8::PinScope<'_, '_>,
    text: &Bytes,
    cache: Option<&[u8]>,
) -> Option<Pyodide> {
    let name = v8::String::new(scope, PYODIDE)?;
    let origin =
        v8::ScriptOrigin::new(scope, name.into(), 0, 0, false, 0, None, false, false, true, None);
    let text = string(scope, text)?;
    let (mut source, options) = match cache {
        Some(cache) => {
            let cache = CachedData::new(cache);
            let source = Source::new_with_cached_data(text, Some(&origin), cache);
            (source, CompileOptions::ConsumeCodeCache)
        }
        None => (Source::new(text, Some(&origin)), CompileOptions::NoCompileOptions),
    };
    let module = compile_module2(scope, &mut source, options, NoCacheReason::NoReason)?;
    module.instantiate_module(scope, |_, _, _, _| None)?;
    module.evaluate(scope)?;
    let namespace = module.get_module_namespace().to_object(scope)?;
    let key = v8::String::new(scope, "default")?;
    let create_module = namespace.get(scope, key.into())?;
    let script = module.get_unbound_module_script(scope);
    Some(Pyodide {
        create_module: v8::Global::new(scope, create_module),
        script: v8::Global::new(scope, script),
    })
}

/// Returns the text as a V8 string. All isolates of the process share the text in memory, which is
/// never freed.
fn string<'s>(scope: &mut v8::PinScope<'s, '_>, text: &Bytes) -> Option<v8::Local<'s, v8::String>> {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    let shared = TEXT.get_or_init(|| text.clone());
    let is_same = shared.as_ptr() == text.as_ptr() && shared.len() == text.len();
    if (is_same || shared == text) && text.is_ascii() {
        v8::String::new_external_onebyte_static(scope, shared)
    } else {
        v8::String::new_from_utf8(scope, text, v8::NewStringType::Normal)
    }
}

impl Pyodide {
    /// Returns the code that V8 has compiled from it so far, in V8's own format.
    pub(crate) fn cache(&self, runtime: &mut JsRuntime) -> Vec<u8> {
        deno_core::scope!(scope, runtime);
        let script = v8::Local::new(scope, &self.script);
        script.create_code_cache().map(|cache| cache.to_vec()).unwrap_or_default()
    }
}
