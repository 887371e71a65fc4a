//! Tests that our ops run no guest code, whatever their arguments are.

use std::collections::VecDeque;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use deno_core::{JsRuntime, RuntimeOptions, v8};

use crate::fs::FileError;
use crate::isolate::budget::MemoryBudget;
use crate::isolate::control::IsolateControl;
use crate::isolate::native_code::SharedModules;
use crate::isolate::ops::memory::WasmMemory;
use crate::isolate::pending::PendingCalls;
use crate::isolate::state::{SessionClock, State};
use crate::isolate::{Files, extension, inbox, platform};
use crate::protocol::codec::CommandFrame;
use crate::protocol::{Host, HostReply, HostRequest};

/// A host that refuses everything.
struct NoHost;

impl Host for NoHost {
    fn call(&self, _: HostRequest<'_>) -> HostReply {
        HostReply::Done
    }

    fn read_file(&self, _: u32, _: u64, _: &mut [u8]) -> Result<u32, FileError> {
        Err(FileError::BadHandle)
    }
}

fn state() -> State {
    let none = Bytes::new;
    let files = Files {
        asm_wasm: none(),
        data: none(),
        asm_mjs: none(),
        stdlib_zip: none(),
        exports: none(),
    };
    State {
        host: Arc::new(NoHost),
        control: IsolateControl::new(),
        files,
        module: None,
        image: None,
        saved: None,
        preload: Vec::new(),
        confine: None,
        is_confined: false,
        pages_aside: None,
        libraries: Vec::new(),
        modules: SharedModules::default(),
        booted: true,
        entry_points: None,
        frame: CommandFrame::default(),
        report: None,
        peeks: false,
        max_report_bytes: u64::MAX,
        spinning: Duration::ZERO,
        exited: None,
        order: None,
        log: Arc::default(),
        alarm: None,
        died: None,
        calls: PendingCalls::default(),
        inbox: inbox::queue().1,
        held: VecDeque::new(),
        memory: WasmMemory::new(Arc::new(MemoryBudget::new(1 << 30))),
        clock: SessionClock::default(),
        writer: None,
        reader: None,
    }
}

/// Calls each op with a trap as each argument, alone and next to plausible arguments. Returns the
/// ops that triggered a trap. A trap detects every way in which an engine runs code of an object.
const CALL_ALL: &str = r"
    const sprung = new Set();
    let op;
    const spring = () => { sprung.add(op); return undefined; };
    const handler = {};
    for (const name of Object.getOwnPropertyNames(Reflect)) {
        if (typeof Reflect[name] !== 'function') continue;
        handler[name] = (...args) => { spring(); return Reflect[name](...args); };
    }
    const accessors = (target) => {
        const names = [0, 1, 'length', 'then', 'message', 'toString', 'valueOf', 'toJSON',
            'byteLength', 'buffer', 'constructor', Symbol.toPrimitive, Symbol.iterator,
            Symbol.toStringTag];
        // Some have a few of them for good, such as the length of a string.
        for (const name of names) Reflect.defineProperty(target, name, { get: spring });
        return target;
    };
    const patched = accessors(new Uint8Array(8).subarray(0, 0));
    const traps = () => [
        new Proxy({}, handler), new Proxy([], handler), new Proxy(function () {}, handler),
        accessors({}), accessors(function () {}), accessors(new String('x')),
        accessors(new Number(1)), accessors(new Date(0)), patched,
        [accessors({})], [new Proxy([], handler)], { __proto__: accessors({}) },
    ];
    const plausible = [1, 'x', new Uint8Array(8), true, 0.5, null, undefined];
    let calls = 0;
    // In a deterministic session a call waits for its answer, and nobody answers here.
    const late = (name) => name.startsWith('op_isolet_order') ? 1 : 0;
    const names = Object.keys(Deno.core.ops).filter((name) => name.startsWith('op_isolet_'));
    for (op of names.sort((one, other) => late(one) - late(other))) {
        const call = (args) => {
            calls++;
            try { Promise.resolve(Deno.core.ops[op](...args)).catch(() => {}); } catch {}
        };
        for (const trap of traps()) {
            call([trap]);
            call([trap, trap, trap, trap, trap]);
            for (const other of plausible) {
                for (let place = 0; place < 5; place++) {
                    const args = [other, other, other, other, other];
                    args[place] = trap;
                    call(args);
                }
            }
        }
    }
    [calls > 10000, ...sprung].join(' ')";

/// F1: if a termination arrived in guest code inside an op, it would become an exception that the
/// guest can catch. So ops must not run guest code: they take only bytes, numbers and strings.
#[test]
fn no_op_runs_code_of_the_guests() {
    let (sender, receiver) = mpsc::channel();
    let task = move || {
        let event_loop = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let _entered = event_loop.as_ref().unwrap().enter();
        let options =
            RuntimeOptions { extensions: vec![extension::only_ops(state())], ..Default::default() };
        let mut runtime = JsRuntime::try_new(options).unwrap();
        let value = runtime.execute_script("test", CALL_ALL).unwrap();
        deno_core::scope!(scope, runtime);
        sender.send(v8::Local::new(scope, value).to_rust_string_lossy(scope)).unwrap();
    };
    platform::spawn(task).unwrap();
    assert_eq!(receiver.recv().unwrap(), "true");
}
