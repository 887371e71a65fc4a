//! No modules for the guest: every `import()` is rejected, whatever it names.
//!
//! The modules of an isolate are those in the binary and Pyodide's, which are given to V8 as text while
//! it boots. Nothing here opens a file or a connection.

use deno_core::{
    ModuleLoadOptions, ModuleLoadReferrer, ModuleLoadResponse, ModuleLoader, ModuleSpecifier,
    ResolutionKind, v8,
};
use deno_error::JsErrorBox;

const REFUSAL: &str = "modules cannot be imported in this sandbox";

/// What Pyodide's module is called. Its text is given along with the name.
pub(crate) const PYODIDE: &str = "isolet:pyodide.asm.mjs";

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
