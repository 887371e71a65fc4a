//! How V8 is set up. An image holds machine code, which V8 takes only with the flags that it was
//! made with, so they are part of the image's key.

/// V8's flags. The reasons:
///
/// * Stack sizes: CPython recurses in C. V8's default of 1 MB is too little for that, both for its
///   own stack and for those that WebAssembly suspends on. The second kind must not exceed 4 MB: V8
///   keeps at most that much of them for reuse, and a fresh stack doubles the time of every event
///   loop task and every wait. `isolate/adapt/recursion.rs` makes CPython raise `RecursionError`
///   before their end.
///
/// * No loop unrolling: where V8 unrolls loops, it may produce an endless one without the check
///   that ends it when the guest is killed. `for (;;) new Array(1000).fill(0)`, once optimised,
///   would run forever.
///
/// * Single thread: an isolate has one thread, and V8 has no others. A worker may be a forked copy
///   of a process, in which only one thread exists. Also, while another thread optimises a
///   JavaScript function, its loops are not checked at all: one that copies a large object at each
///   turn would go on for minutes. The isolate's thread does the optimisation itself when it is
///   due.
///
/// * Tier-up budget: four times V8's default. The isolate's thread optimises a function itself, and
///   waits for it. Functions that most programs call are already optimised in the image; most
///   others run once, such as those of 200 kB that begin a module of Cython, each of which takes up
///   to a third of a second. With 200,000, importing pandas took 3.0 s of processor time, with this
///   1.9 s, and with 1,000,000,000 1.5 s; but then what computes for seconds is optimised late.
///
/// * Table size: the entries of a table are in V8's heap. A single table of V8's default maximum
///   size would exceed the smallest heap limit of a session.
///
/// * Garbage collection: V8 counts the interpreter's memory and code as its own, and would collect
///   garbage when they reach 11 MB, in the middle of each start. It is told to wait until 128 MB,
///   or until the limit of the session's heap.
///
/// * No memory reducer: V8 would collect all garbage once 100 s have passed without. Every copy of
///   an older template would do so in its first run, for 8 ms and 1 MiB of its own.
pub(crate) const V8_FLAGS: &str = "--stack-size=16000 --wasm-stack-switching-stack-size=4000 \
                     --no-turboshaft-loop-unrolling --single-threaded --wasm-sync-tier-up \
                     --wasm-max-table-size=1000000 --wasm-tiering-budget=50000000 \
                     --initial-old-space-size=64 --no-memory-reducer";

/// How WebAssembly's memory is kept within its bounds: by inaccessible address space around it, and
/// a handler for SIGSEGV that turns an access there into a trap. Native code in an image has no
/// checks of its own then, so a process without the handler must not load it: it is part of the
/// image's key. Checks in the code take CPython a fifth of its time.
pub(super) const MEMORY_BOUNDS: &str = "trap handler";
