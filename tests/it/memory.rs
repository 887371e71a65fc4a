//! Tests of the limit of a session's memory: what Python and JavaScript are refused, what ends the
//! session, and that other sessions are unaffected.

use isolet::{
    ErrorKind, Limits, MemoryKind, Outcome, Sandbox, Session, SessionState, Termination, Value,
};

use crate::util::{builder, eval, exec, raised, sandbox};

const MIB: u64 = 1 << 20;

fn limited(mebibytes: u64) -> Sandbox {
    sandbox(Limits::default().max_memory_bytes(mebibytes * MIB))
}

async fn session_of(mebibytes: u64) -> Session {
    limited(mebibytes).session().await.unwrap()
}

/// Asserts that the session is usable, with as much space as before.
async fn is_well(session: &mut Session) {
    assert_eq!(eval(session, "len(bytes(10**7))").await, Value::Int(10_000_000));
}

/// Runs code that must throw in JavaScript, in a session that stays usable.
async fn throws(session: &mut Session, code: &str) -> String {
    let code = format!("from pyodide.code import run_js\nrun_js('''{code}''')");
    let exception = raised(session, code.as_str()).await;
    assert!(exception.type_name.contains("JsException"), "{exception:?}");
    exception.message
}

#[tokio::test]
async fn an_object_beyond_the_limit_raises_memory_error() {
    let mut session = session_of(96).await;
    for code in [
        "bytearray(10**9)",
        "bytes(10**9)",
        "'x' * 10**9",
        "[0] * 10**9",
        "list(range(10**9))",
        "1 << 10**10",
        "s = 'ab'\nwhile True: s += s",
        "t = ()\nfor _ in range(99): t += t or (0,)",
        "x = {}\nfor i in range(10**9): x[i] = str(i)",
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.type_name, "MemoryError", "{code}");
        exec(&mut session, "x = s = t = None").await;
        is_well(&mut session).await;
    }
}

#[tokio::test]
async fn many_small_objects_end_in_memory_error_and_the_session_lives_on() {
    let mut session = session_of(96).await;
    exec(&mut session, "import itertools\nkept = []\nclass A: pass").await;
    for code in [
        "for i in itertools.count(10**6): kept.append(i)",
        "while True: kept.append(A())",
        "while True: kept.append([])",
        "while True: kept.append(bytes(1000))",
        "while True: kept.append({'a': 1})",
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.type_name, "MemoryError", "{code}");
        // The objects that fill the memory are still there.
        assert_eq!(eval(&mut session, "len(kept) > 0").await, Value::Bool(true));
        exec(&mut session, "kept.clear()").await;
        is_well(&mut session).await;
    }
}

#[tokio::test]
async fn results_of_the_library_beyond_the_limit_raise_memory_error() {
    let mut session = session_of(128).await;
    for code in [
        "import json; json.dumps(['x' * 10**6] * 1000)",
        "import json; json.loads('[' + '[],' * 10**7 + '0]')",
        "import re; re.sub('a', 'b' * 100, 'a' * 10**7)",
        "import re; re.findall('a', 'a' * 3 * 10**7)",
        "import zlib; bomb = zlib.compress(bytes(2 * 10**7)); b''.join([zlib.decompress(bomb)] * 9)",
        "import pickle; pickle.dumps(['%d' % i * 100 for i in range(10**6)])",
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.type_name, "MemoryError", "{code}");
        is_well(&mut session).await;
    }
}

#[tokio::test]
async fn a_guest_can_catch_memory_error_and_go_on_in_the_same_run() {
    let mut session = session_of(96).await;
    let code = "kept, hits = [], 0
for _ in range(20):
    try:
        while True: kept.append(bytes(100_000))
    except MemoryError:
        hits += 1
        kept.clear()
print(hits)
hits";
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.value(), Some(&Value::Int(20)));
    assert_eq!(execution.stdout(), "20\n");
}

#[tokio::test]
async fn a_run_that_leaves_no_memory_is_reported_all_the_same() {
    let mut session = session_of(96).await;
    let fill = "kept = []
size = 1 << 20
while size:
    try:
        while True: kept.append(bytes(size))
    except MemoryError:
        size //= 2
print('full')
[1, 2, 3]";
    let execution = exec(&mut session, fill).await;
    assert_eq!(execution.stdout(), "full\n");
    assert_eq!(execution.value().unwrap().to_string(), "[1, 2, 3]");
    let exception = raised(&mut session, "1 / 0").await;
    assert_eq!(exception.type_name, "ZeroDivisionError");
    exec(&mut session, "del kept").await;
    is_well(&mut session).await;
}

#[tokio::test]
async fn a_session_survives_its_limit_fifty_times() {
    let mut session = session_of(96).await;
    exec(&mut session, "kept = []").await;
    for turn in 0..50 {
        let code = ["while True: kept.append(bytes(5000))", "kept += [0] * 10**9"];
        let exception = raised(&mut session, code[turn % 2]).await;
        assert_eq!(exception.type_name, "MemoryError", "{turn}");
        exec(&mut session, "kept.clear()").await;
    }
    is_well(&mut session).await;
}

#[tokio::test]
async fn memory_that_python_has_freed_is_used_again() {
    let mut session = session_of(128).await;
    let code =
        "for i in range(50):\n    x = bytearray(40_000_000)\n    x[0] = x[-1] = 1\n    del x";
    exec(&mut session, code).await;
    for _ in 0..10 {
        exec(&mut session, "x = bytearray(40_000_000)").await;
        exec(&mut session, "del x").await;
    }
}

#[tokio::test]
async fn files_that_the_guest_keeps_count_and_fail_as_on_a_full_disk() {
    let mut session = session_of(128).await;
    for code in [
        "with open('a', 'wb') as f:\n    while True: f.write(bytes(10**6))",
        "with open('b', 'wb') as f: f.truncate(10**9)",
        "import os; r, w = os.pipe()\nwhile True: os.write(w, bytes(10**6))",
    ] {
        let exception = raised(&mut session, code).await;
        assert_eq!(exception.type_name, "OSError", "{code}");
        assert!(exception.message.contains("No space left on device"), "{exception}");
        exec(&mut session, "import os\nfor n in 'ab':\n    if os.path.exists(n): os.remove(n)")
            .await;
        exec(&mut session, "try: os.close(r); os.close(w)\nexcept NameError: pass").await;
        is_well(&mut session).await;
    }
}

#[tokio::test]
async fn buffers_of_javascript_beyond_the_limit_throw() {
    let mut session = session_of(128).await;
    for code in [
        "new Uint8Array(1e9)",
        "new ArrayBuffer(1e9)",
        "const k = []; for (;;) k.push(new Uint8Array(1e6))",
        "const k = []; for (;;) k.push(new Float64Array(1000))",
        "const k = [], b = new Uint8Array(1e6); for (;;) k.push(b.slice())",
        "const k = []; for (;;) k.push(new ArrayBuffer(1e6).transfer(2e6))",
        "const k = []; for (;;) k.push(new TextEncoder().encode('x'.repeat(1e6)))",
        "const k = []; for (;;) k.push(new ArrayBuffer(1e6, { maxByteLength: 2e6 }))",
        "class Buffer extends ArrayBuffer {}; const k = []; for (;;) k.push(new Buffer(1e6))",
    ] {
        let message = throws(&mut session, code).await;
        assert!(message.contains("allocation failed"), "{code}: {message}");
        is_well(&mut session).await;
    }
}

#[tokio::test]
async fn buffers_are_zero_and_what_is_freed_is_used_again() {
    let mut session = session_of(128).await;
    let code = "from pyodide.code import run_js
run_js('''(() => {
    let sum = 0;
    for (let i = 0; i < 300; i++) {
        const bytes = new Uint8Array(10_000_000);
        sum += bytes[0] + bytes[9_999_999];
        bytes.fill(255, 0, 10);
        bytes[9_999_999] = 255;
    }
    return sum;
})()''')";
    assert_eq!(eval(&mut session, code).await, Value::Int(0));
}

#[tokio::test]
async fn no_buffer_can_be_resized_past_the_count() {
    let mut session = session_of(96).await;
    let code = "from pyodide.code import run_js
run_js('''(() => {
    const buffer = new ArrayBuffer(8, { maxByteLength: 1e9 });
    const native = Object.getPrototypeOf(new Uint8Array(8).buffer).constructor;
    return [buffer.byteLength, buffer.resizable, buffer.resize, native === ArrayBuffer,
        typeof WebAssembly.Memory.prototype.toResizableBuffer, ArrayBuffer.isView(new DataView(buffer)),
        new (class extends ArrayBuffer {})(4) instanceof ArrayBuffer, ArrayBuffer.name].join();
})()''')";
    let expected = Value::from("8,,,true,undefined,true,true,ArrayBuffer");
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn the_interpreters_memory_grows_past_no_limit_from_javascript() {
    let mut session = session_of(96).await;
    let find = "from pyodide.code import run_js
import pyodide_js
module = pyodide_js._module
memory = run_js('(m) => Object.values(m).find((x) => x instanceof WebAssembly.Memory)')(module)
grow = run_js('(memory, pages) => memory.grow(pages)')";
    exec(&mut session, find).await;
    for code in [
        "grow(memory, 1000)",
        "run_js('(m) => WebAssembly.Memory.prototype.grow.call(m, 1000)')(memory)",
        "run_js('(m) => { let n = 0; m.grow({ valueOf: () => n++ ? 9000 : 1000 }) }')(memory)",
    ] {
        let exception = raised(&mut session, code).await;
        assert!(exception.message.contains("Unable to grow"), "{code}: {exception}");
        exec(&mut session, "1").await;
    }
    let refused = "[module.growMemory(4 << 28), module._emscripten_resize_heap(4 << 28)]";
    let answers = eval(&mut session, refused).await.to_string();
    assert!(!answers.contains('1') && !answers.contains("True"), "{answers}");
}

#[tokio::test]
async fn memories_of_javascripts_own_are_counted() {
    for code in [
        "new WebAssembly.Memory({ initial: 60000 })",
        "const k = []; for (;;) k.push(new WebAssembly.Memory({ initial: 0 }))",
        "const k = []; for (;;) k.push(new WebAssembly.Memory.prototype.constructor({ initial: 1 }))",
        "let n = 0; new WebAssembly.Memory({ initial: { valueOf: () => n++ ? 1 : 60000 } })",
        "const m = new WebAssembly.Memory({ initial: 1 }); for (;;) m.grow(10)",
    ] {
        let mut session = session_of(128).await;
        let message = throws(&mut session, code).await;
        let refused = message.contains("could not allocate") || message.contains("Unable to grow");
        assert!(refused, "{code}: {message}");
        exec(&mut session, "1").await;
    }
    let mut session = session_of(128).await;
    let message =
        throws(&mut session, "new WebAssembly.Memory({ initial: 1n, address: 'i64' })").await;
    assert!(message.contains("64 bits"), "{message}");
    let twice = "from pyodide.code import run_js
run_js('''(() => { let n = 0; const initial = { valueOf: () => n++ ? 60000 : 1 };
    return new WebAssembly.Memory({ initial }).buffer.byteLength })()''')";
    assert_eq!(eval(&mut session, twice).await, Value::Int(65536));
}

/// Runs JavaScript that fills V8's heap, which ends the session.
async fn fills_the_heap(code: &str) {
    let mut session = session_of(128).await;
    let run = format!("from pyodide.code import run_js\nprint('before')\nrun_js('''{code}''')");
    let execution = session.run(run).await.unwrap();
    let Outcome::Terminated(Termination::Memory { kind, limit, observed }) = *execution.outcome()
    else {
        panic!("{code}: {execution:?}");
    };
    assert_eq!(kind, MemoryKind::Heap);
    assert_eq!(limit, 64 * MIB, "{code}");
    assert!(observed >= limit, "{code}: {observed}");
    assert_eq!(execution.stdout(), "before\n", "{code}");
    assert!(!execution.session_alive());
    assert_eq!(session.state(), SessionState::Terminated);
    assert_eq!(session.run("1").await.unwrap_err().kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn objects_that_fill_the_heap_end_the_session_only() {
    for code in [
        "const k = []; for (;;) k.push(new Array(1000).fill(0))",
        "let o = null; for (;;) o = { o }",
        "const o = {}; for (let i = 0; ; i++) o['k' + i] = { i }",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, i)",
        "const k = []; for (let i = 0; ; i++) k.push(() => i)",
    ] {
        fills_the_heap(code).await;
    }
    is_well(&mut session_of(128).await).await;
}

#[tokio::test]
async fn strings_and_numbers_that_fill_the_heap_end_the_session_only() {
    for code in [
        "let s = 'x'; for (;;) { s += s; s.charCodeAt(0); }",
        "const k = []; for (let i = 0; ; i++) k.push(('ab' + i).repeat(1e5))",
        "const k = []; for (;;) k.push('x'.repeat(2 ** 29 - 24))",
        "const k = []; for (let i = 0n; ; i++) k.push((1n << 10000000n) + i)",
    ] {
        fills_the_heap(code).await;
    }
    is_well(&mut session_of(128).await).await;
}

#[tokio::test]
async fn code_that_fills_the_heap_ends_the_session_only() {
    for code in [
        "const k = []; for (let i = 0; ; i++) k.push((0, eval)('(a => a + ' + i + ')'))",
        "const k = []; for (let i = 0; ; i++) k.push(new Function('/*' + 'x'.repeat(1e6) + i + '*/'))",
        "for (;;) Promise.resolve().then(() => {})",
    ] {
        fills_the_heap(code).await;
    }
    is_well(&mut session_of(128).await).await;
}

#[tokio::test]
async fn one_huge_object_ends_the_session_only() {
    for code in [
        "[...Array(1e8).keys()]",
        "const k = []; for (;;) k.push(new Array(1e7).fill(0))",
        "const o = {}; for (let i = 0; i < 1e5; i++) o['k' + i] = i;
         const k = []; for (;;) k.push({ ...o })",
    ] {
        fills_the_heap(code).await;
    }
    is_well(&mut session_of(128).await).await;
}

/// A guest can handle refused buffers, but not a full heap.
#[tokio::test]
async fn a_full_heap_is_told_from_refused_buffers() {
    for code in [
        "const k = []; try { for (;;) k.push(new Uint8Array(1e6)) } catch {} for (;;) k.push({})",
        "const k = []; try { for (;;) k.push(new Uint8Array(65)) } catch {}
         for (;;) k.push(new Uint8Array(64).buffer)",
    ] {
        fills_the_heap(code).await;
    }
    is_well(&mut session_of(128).await).await;
}

#[tokio::test]
async fn a_guest_that_is_out_of_memory_gets_no_further_callback() {
    let code = "for (let i = 0; i < 100; i++) {
    setTimeout(() => { const k = []; for (;;) k.push({}) });
    setTimeout(() => { for (;;); });
}";
    let mut session = session_of(128).await;
    let run = format!(
        "from pyodide.code import run_js\nrun_js('''{code}''')\nimport asyncio\nawait asyncio.sleep(60)"
    );
    let execution = session.run(run).await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::Memory { .. })), "{execution:?}");
}

#[tokio::test]
async fn sessions_side_by_side_have_each_their_own_limit() {
    let (mut small, mut large) = (session_of(96).await, session_of(256).await);
    let code = "x = bytearray(120_000_000)";
    let (refused, granted) = tokio::join!(small.run(code), large.run(code));
    assert_eq!(refused.unwrap().exception().unwrap().type_name, "MemoryError");
    assert_eq!(*granted.unwrap().outcome(), Outcome::Completed(None));
    let js = "from pyodide.code import run_js\nrun_js('new Uint8Array(60_000_000).length')";
    assert!(raised(&mut small, js).await.message.contains("allocation failed"));
    assert_eq!(eval(&mut large, js).await, Value::Int(60_000_000));
    is_well(&mut small).await;
}

#[tokio::test]
async fn the_usage_is_the_peak_by_the_hosts_count() {
    let mut session = session_of(256).await;
    let before = exec(&mut session, "1").await.usage().peak_memory_bytes;
    assert!((32 * MIB..64 * MIB).contains(&before), "{before}");
    let code = "x = bytearray(50_000_000)\ndel x";
    let python = exec(&mut session, code).await.usage().peak_memory_bytes;
    assert!((before + 40_000_000..before + 80_000_000).contains(&python), "{before} {python}");
    let code = "from pyodide.code import run_js\nrun_js('new Uint8Array(90_000_000); 1')";
    let javascript = exec(&mut session, code).await.usage().peak_memory_bytes;
    assert!(javascript >= python + 80_000_000, "{python} {javascript}");
    assert!(javascript <= 256 * MIB);
    let after = exec(&mut session, "1").await.usage().peak_memory_bytes;
    assert_eq!(after, javascript);
}

#[tokio::test]
async fn the_least_limit_is_enough_for_small_programs() {
    let limits = Limits::default().max_memory_bytes(Limits::MIN_MEMORY_BYTES);
    let mut session = sandbox(limits).session().await.unwrap();
    let code = "import json, re, asyncio, dataclasses, decimal\nprint('hello world')\n\
                sum(json.loads(json.dumps(list(range(10_000)))))";
    let execution = exec(&mut session, code).await;
    assert_eq!(execution.stdout(), "hello world\n");
    assert_eq!(execution.value(), Some(&Value::Int(49_995_000)));
}

#[test]
fn less_than_an_interpreter_needs_is_refused_with_both_values() {
    let limits = Limits::default().max_memory_bytes(1 << 20);
    let error = builder().limits(limits).build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    assert_eq!(error.to_string(), "the memory limit is 1 MiB; the minimum is 64 MiB");
}

#[tokio::test]
async fn a_limit_beyond_what_webassembly_has_is_fine() {
    let mut session =
        sandbox(Limits::default().max_memory_bytes(u64::MAX)).session().await.unwrap();
    is_well(&mut session).await;
}

#[tokio::test]
async fn an_access_beyond_the_memory_of_an_interpreter_ends_that_interpreter_alone() {
    let sandbox = builder().build().unwrap();
    let mut other = sandbox.session().await.unwrap();
    exec(&mut other, "canary = 'alive'").await;
    // No type is where the object's type is said to be.
    let made = "import ctypes\nclass A: pass\na = A()\nprint('a')\n\
                ctypes.c_uint32.from_address(id(a) + 4).value = 0xFFFF_FF00";
    for access in ["a.x", "a.x = 1", "repr(a)", "del a"] {
        let mut session = sandbox.session().await.unwrap();
        let execution = session.run(format!("{made}\n{access}")).await.unwrap();
        let Outcome::Terminated(Termination::Died { reason }) = execution.outcome() else {
            panic!("{access}: {execution:?}");
        };
        assert!(reason.contains("memory access out of bounds"), "{access}: {reason}");
        assert_eq!(execution.stdout(), "a\n", "{access}");
        assert_eq!(session.state(), SessionState::Died, "{access}");
        assert_eq!(eval(&mut other, "canary").await, Value::from("alive"), "{access}");
    }
    // One by ctypes ends what ctypes was to do, and so does one in a call of C.
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "import ctypes").await;
    for access in [
        "ctypes.c_ubyte.from_address(0xFFFF_FFFF).value",
        "ctypes.c_uint64.from_address(0xFFFF_FFFC).value",
        "ctypes.c_uint64.from_address(0xFFFF_FFFC).value = 1",
        "ctypes.memset(0xFFFF_0000, 1, 16)",
        "ctypes.string_at(0xFFFF_FFF0, 64)",
    ] {
        let exception = raised(&mut session, access).await;
        let (first, last) = ("OSError: ", ": memory access out of bounds");
        let line = exception.traceback.trim_end().lines().last().unwrap();
        assert!(line.starts_with(first) && line.ends_with(last), "{access}: {line}");
        assert_eq!(eval(&mut other, "canary").await, Value::from("alive"), "{access}");
    }
}
