//! Tests that garbage which only the collector frees does not accumulate.

use isolet::{Limits, Session};

use crate::util::{exec, sandbox};

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
