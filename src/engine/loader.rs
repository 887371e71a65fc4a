//! Loading modules: one of ours while an isolate boots, and none for the guest, whose every `import()` is
//! rejected, whatever it names.
//!
//! The modules of an isolate are those in the binary and Pyodide's, which are given to V8 as text while
//! it boots. Nothing here opens a file or a connection.

use deno_core::error::CoreError;
use deno_core::{
    JsRuntime, ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader,
    ModuleSpecifier, PollEventLoopOptions, ResolutionKind, v8,
};
use deno_error::JsErrorBox;

const REFUSAL: &str = "modules cannot be imported in this sandbox";

/// What Pyodide's module is called. Its text is given along with the name.
const PYODIDE: &str = "isolet:pyodide.asm.mjs";

/// Finds nothing but Pyodide and loads nothing.
pub(crate) struct NoModules;

impl ModuleLoader for NoModules {
    fn resolve(
        &self,
        specifier: &str,
        _referrer: &str,
        _kind: ResolutionKind,
    ) -> Result<ModuleSpecifier, JsErrorBox> {
        let pyodide = (specifier == PYODIDE).then(|| deno_core::resolve_url(specifier).ok());
        pyodide.flatten().ok_or_else(|| JsErrorBox::type_error(REFUSAL))
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

/// Makes `import()` end here, before `deno_core` looks at what is imported and by whom: it would trust
/// modules of its own, and let whoever makes one of them call `eval` import others.
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

/// Evaluates a module of ours and returns its default export.
pub(crate) async fn load_default_export(
    runtime: &mut JsRuntime,
    source: &[u8],
) -> Result<v8::Global<v8::Value>, String> {
    let text = |error: CoreError| error.to_string();
    let specifier = deno_core::resolve_url(PYODIDE).map_err(|e| e.to_string())?;
    let source = String::from_utf8(source.to_vec()).map_err(|error| error.to_string())?;
    let id = runtime.load_side_es_module_from_code(&specifier, source).await.map_err(text)?;
    let evaluated = runtime.mod_evaluate(id);
    runtime.run_event_loop(PollEventLoopOptions::default()).await.map_err(text)?;
    evaluated.await.map_err(text)?;
    let namespace = runtime.get_module_namespace(id).map_err(text)?;
    deno_core::scope!(scope, runtime);
    let namespace = v8::Local::new(scope, namespace);
    let key = v8::String::new(scope, "default").ok_or("a string cannot be made")?;
    let export = namespace.get(scope, key.into()).ok_or("the module has no default export")?;
    Ok(v8::Global::new(scope, export))
}
