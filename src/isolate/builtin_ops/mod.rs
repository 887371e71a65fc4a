//! Disables `deno_core`'s own ops, except the few that an isolate needs: the others throw.
//!
//! The guest has no reference to any op, so this is a second line of defence. `deno_core` comes
//! with about a hundred ops, and new versions add more: one ends the process, others read and write
//! any open file by its descriptor.

#[cfg(test)]
mod tests;

use deno_core::{Extension, OpDecl, op2, v8};

/// The prefix of all our ops. No op of `deno_core` has it.
const OURS: &str = "op_isolet_";

/// The ops of `deno_core` that stay enabled, each with its caller, which is always `deno_core`'s
/// own JavaScript.
const KEPT: &[(&str, &str)] = &[
    ("op_get_extras_binding_object", "boot: where the async context is kept"),
    ("op_get_ext_import_meta_proto", "boot: what `import.meta` is in modules of the binary"),
    ("op_set_captured_bootstrap", "boot: hands the primordials back to Rust"),
    ("op_run_microtasks", "every turn of the event loop"),
    ("op_drain_pending_rejections", "event loop: rejections that nobody handles"),
    ("op_timer_now", "timers: when one is due"),
    ("op_timer_schedule", "timers: wakes the event loop"),
    ("op_timer_track", "timers: counts them"),
    ("op_timer_untrack", "timers: counts them"),
];

/// Makes `extension` replace the other built-in ops, in every isolate that uses it.
pub(crate) fn replace(extension: &mut Extension) {
    extension.middleware_fn = Some(Box::new(|op| match fate(op.name) {
        Fate::Ours | Fate::Kept => op,
        Fate::Stubbed => op.with_implementation_from(&STUB),
    }));
}

/// What happens to an op.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fate {
    Ours,
    Kept,
    Stubbed,
}

fn fate(name: &str) -> Fate {
    if name.starts_with(OURS) {
        Fate::Ours
    } else if KEPT.iter().any(|(kept, _)| *kept == name) {
        Fate::Kept
    } else {
        Fate::Stubbed
    }
}

/// It has no fast version, because V8 would call that without the exception.
const STUB: OpDecl = op_isolet_stub();

/// Throws without reading its arguments. It makes the exception itself: `deno_core` makes the
/// exceptions of ops in JavaScript, which some of these ops could precede.
#[op2(nofast)]
fn op_isolet_stub(scope: &mut v8::PinScope<'_, '_>) {
    if let Some(message) = v8::String::new(scope, "this operation is not available") {
        let error = v8::Exception::error(scope, message);
        scope.throw_exception(error);
    }
}
