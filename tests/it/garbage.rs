//! Tests that garbage which only the collector frees does not accumulate, and that the image's
//! objects are none.

use isolet::{Limits, Session, Value};

use crate::util::{eval, exec, sandbox};

/// 40,000 cycles of 60,000 bytes each. CPython 3.14.2 collects them in batches of 4,000: every
/// second time.
const CYCLES: &str = "class Node: pass\nfor _ in range(40_000):\n    node = Node()\n    node.me = node\n    \
                      node.data = bytearray(60_000)";

pub(crate) async fn cycles_do_not_pile_up(mut session: Session) {
    let before = exec(&mut session, "pass").await.usage().peak_memory_bytes;
    let after = exec(&mut session, CYCLES).await.usage().peak_memory_bytes;
    // All cycles together would take 2.4 GB.
    assert!(after - before < 320 << 20, "{before} {after}");
}

#[tokio::test]
async fn cycles_are_collected_before_they_pile_up() {
    let limits = Limits::default().max_memory_bytes(1 << 30);
    cycles_do_not_pile_up(sandbox(limits).session().await.unwrap()).await;
}

/// Returns which of a module's functions, their code, names, constants and classes are mortal, and
/// what `gc` knows of the image.
fn mortals_of(modules: &str) -> String {
    format!(
        "
import gc, sys, types
def mortals(value, name):
    if not sys._is_immortal(value):
        yield name
    if type(value) is types.FunctionType:
        yield from mortals(value.__code__, name + '.__code__')
        for part in (*value.__code__.co_consts, *value.__code__.co_names):
            yield from mortals(part, name + ' ' + repr(part))
found = []
for module in map(sys.modules.get, {modules:?}.split()):
    found += mortals(module, module.__name__)
    for name, value in vars(module).items():
        found += mortals(value, module.__name__ + '.' + name)
[found, gc.get_freeze_count() > 10_000]"
    )
}

pub(crate) async fn objects_of_the_image_are_immortal(mut session: Session, modules: &str) {
    let found = eval(&mut session, mortals_of(modules).as_str()).await;
    assert_eq!(found, Value::List(vec![Value::List(vec![]), true.into()]));
    // What a program makes is not.
    let code = "import sys\nmade = [1.5, object()]\n\
                [sys._is_immortal(each) for each in (made, *made)]";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![false.into(); 3]));
}

#[tokio::test]
async fn no_session_counts_references_to_objects_of_the_image() {
    let session = sandbox(Limits::default()).session().await.unwrap();
    objects_of_the_image_are_immortal(session, "abc asyncio.events io os re").await;
}
