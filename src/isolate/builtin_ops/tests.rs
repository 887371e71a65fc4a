//! Tests which ops exist, and that those of `deno_core` throw however they are called.

use std::sync::{Arc, Mutex, mpsc};

use deno_core::{Extension, JsRuntime, RuntimeOptions, v8};

use super::{Fate, KEPT, fate, replace};
use crate::isolate::{extension, platform};

#[path = "../../../tests/golden/mod.rs"]
mod golden;

/// Runs `task` on a thread for isolates.
fn on_isolate_thread<T: Send + 'static>(task: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let in_event_loop = move || {
        let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _entered = event_loop.as_ref().unwrap().enter();
        sender.send(task()).unwrap();
    };
    platform::spawn(in_event_loop).unwrap();
    receiver.recv().unwrap()
}

/// Makes a runtime with only `deno_core`'s ops, replaced as in an isolate, and still on its global
/// object.
fn runtime() -> JsRuntime {
    let mut extension = Extension { name: "test", ..Default::default() };
    replace(&mut extension);
    JsRuntime::try_new(RuntimeOptions { extensions: vec![extension], ..Default::default() })
        .unwrap()
}

fn evaluate(runtime: &mut JsRuntime, source: &'static str) -> String {
    let value = runtime.execute_script("test", source).unwrap();
    deno_core::scope!(scope, runtime);
    v8::Local::new(scope, value).to_rust_string_lossy(scope)
}

/// A4: the list of all ops. A new version of `deno_core` shows up here.
#[test]
fn every_op_is_on_the_golden_list() {
    let names = on_isolate_thread(|| {
        let seen = Arc::new(Mutex::new(extension::op_names()));
        let mut extension = Extension { name: "test", ..Default::default() };
        let sink = Arc::clone(&seen);
        replace(&mut extension);
        let middleware = extension.middleware_fn.take().unwrap();
        extension.middleware_fn = Some(Box::new(move |op| {
            sink.lock().unwrap().push(op.name);
            middleware(op)
        }));
        let options = RuntimeOptions { extensions: vec![extension], ..Default::default() };
        drop(JsRuntime::try_new(options).unwrap());
        std::mem::take(&mut *seen.lock().unwrap())
    });
    let mut entries: Vec<_> = names.iter().map(|name| (fate(name), *name)).collect();
    entries.sort_unstable();
    let reason = |name| KEPT.iter().find(|kept| kept.0 == name).map_or("", |kept| kept.1);
    let line = |(fate, name)| match fate {
        Fate::Ours => format!("ours     {name}\n"),
        Fate::Kept => format!("kept     {name}: {}\n", reason(name)),
        Fate::Stubbed => format!("stubbed  {name}\n"),
    };
    golden::check("ops.txt", &entries.into_iter().map(line).collect::<String>());
    assert!(KEPT.iter().all(|(kept, _)| names.contains(kept)), "an op that is kept is gone");
}

/// A4: a saved reference to an op of `deno_core` is useless.
#[test]
fn every_stubbed_op_throws_when_called_through_a_saved_reference() {
    let survivors = on_isolate_thread(|| {
        let mut runtime = runtime();
        let source = "
            const survivors = [];
            const note = (name) => (error) => {
                const refused = error?.message === 'this operation is not available';
                if (!refused) survivors.push(name);
            };
            for (const [name, op] of Object.entries(Deno.core.ops)) {
                for (const args of [[], ['/etc/passwd'], [0, new Uint8Array(8)], [{}, 1, 2, 3]]) {
                    for (const receiver of [undefined, Deno.core.ops, {}]) {
                        try {
                            const result = op.apply(receiver, args);
                            if (result instanceof Promise) result.then(note(name), note(name));
                            else survivors.push(name);
                        } catch (error) {
                            note(name)(error);
                        }
                    }
                }
            }
            Deno.core.runMicrotasks();
            [Object.keys(Deno.core.ops).length > 80, ...new Set(survivors)].join('\\n')";
        // The kept ops do work, and would do harm here.
        let kept: Vec<_> = KEPT.iter().map(|(name, _)| format!("'{name}'")).collect();
        let delete = format!("for (const n of [{}]) delete Deno.core.ops[n]", kept.join(","));
        runtime.execute_script("test", delete).unwrap();
        evaluate(&mut runtime, source)
    });
    assert_eq!(survivors, "true");
}

/// A4: `OpDecl::disable` leaves a fast version that does nothing and does not throw.
#[test]
fn a_stubbed_op_throws_from_optimized_code_too() {
    let thrown = on_isolate_thread(|| {
        let source = "
            const { op_void_sync, op_add } = Deno.core.ops;
            let thrown = 0;
            function call() {
                try { op_void_sync(); } catch { thrown++; }
                try { op_add(1, 2); } catch { thrown++; }
            }
            for (let i = 0; i < 200_000; i++) call();
            thrown";
        evaluate(&mut runtime(), source)
    });
    assert_eq!(thrown, "400000");
}
