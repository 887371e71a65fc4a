//! V8's flags. An image holds machine code, which V8 takes only with the flags that it was made
//! with, so they are part of the image's key.

/// V8's flags, each for a reason.
///
/// CPython recurses in C, and V8's default of 1 MB for its own stack, and for those that
/// WebAssembly suspends on, is little for that. The second kind may not be larger than 4 MB: V8
/// keeps at most so much of them for reuse, and a fresh one costs every task of an event loop, and
/// every wait, twice the time. `isolate/adapt/recursion.rs` has CPython raise `RecursionError`
/// before it reaches their end.
///
/// Where V8 unrolls loops it may leave an endless one without the check that ends it when the guest
/// is killed: `for (;;) new Array(1000).fill(0)`, once optimized, would run for ever.
///
/// An isolate has one thread, and V8 none besides. A worker may be the copy of a process, which has
/// no threads but one. And while another thread optimizes a function of JavaScript, its loops are
/// not checked at all: one that copies a large object at each turn would go on for minutes. What V8
/// would have others optimize, the isolate's thread does when it is due.
///
/// CPython's functions are optimized sooner than V8 would have them. What most programs call comes
/// optimized with the image, made with the same budget; code made with other flags V8 does not
/// take.
///
/// The entries of a table are in V8's heap. Of the largest table that V8 makes by default one is
/// too much for the least heap that a session may have.
///
/// V8 counts the interpreter's memory and code as its own, and would collect garbage when it has
/// reached 11 MB: in each start, in the midst of it. It is told to wait for 128 MB, or for as many
/// as the session's heap may have.
pub(crate) const V8_FLAGS: &str = "--stack-size=16000 --wasm-stack-switching-stack-size=4000 \
                     --no-turboshaft-loop-unrolling --single-threaded --wasm-sync-tier-up \
                     --wasm-max-table-size=1000000 --wasm-tiering-budget=200000 \
                     --initial-old-space-size=64";
