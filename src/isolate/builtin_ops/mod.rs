//! `deno_core`'s own ops: the few that an isolate cannot do without stay, the others throw.
//!
//! The guest is given no reference to any op, so this is a second wall behind that one. With
//! `deno_core` they come in a list of about a hundred that grows with its versions: one ends the
//! process, others read and write by number whatever the process has open.

#[cfg(test)]
mod tests;

use deno_core::{Extension, OpDecl, op2, v8};

/// What every op of ours is called; no op of `deno_core` is.
const OURS: &str = "op_isolet_";

/// The ops of `deno_core` that stay, each with what calls it. Its own JavaScript is the only
/// caller.
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

/// Makes `extension` replace the other built-in ops, in every isolate that it is part of.
pub(crate) fn replace(extension: &mut Extension) {
    extension.middleware_fn = Some(Box::new(|op| match fate(op.name) {
        Fate::Ours | Fate::Kept => op,
        Fate::Stubbed => op.with_implementation_from(&STUB),
    }));
}

/// What becomes of an op.
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

/// It has no fast version, so that V8 has none to call without the exception.
const STUB: OpDecl = op_isolet_stub();

/// Throws, without a look at its arguments. It makes the exception itself, because `deno_core`
/// makes those of ops in JavaScript, and some of these could be called before that is there.
#[op2(nofast)]
fn op_isolet_stub(scope: &mut v8::PinScope<'_, '_>) {
    if let Some(message) = v8::String::new(scope, "this operation is not available") {
        let error = v8::Exception::error(scope, message);
        scope.throw_exception(error);
    }
}
