//! A12: no WebAssembly of the guest is compiled, and its use of JSPI delays nothing.

use std::time::Duration;

use isolet::{Limits, Outcome, Termination, Value};

use crate::util::{builder, eval, exec, session};

/// A module that exports `f`, which returns 42: the guest's own code.
const CODE: &str = "Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 127, 3, 2, 1, 0, 7, 5, 1, 1, 102, \
                    0, 0, 10, 6, 1, 4, 0, 65, 42, 11)";

/// The module that Emscripten makes for a JavaScript function without arguments.
const TRAMPOLINE: &str = "Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 134, 0, 1, 96, 128, 0, 128, 0, 2, 7, 1, 1, 101, \
                          1, 102, 0, 0, 7, 5, 1, 1, 102, 0, 0)";

/// A12: every way of compiling code is refused, in every form of its bytes.
#[tokio::test]
async fn code_of_the_guests_own_is_not_compiled() {
    let mut session = session().await;
    let code = format!(
        "from pyodide.code import run_js
outcomes = await run_js('''(async () => {{
    const code = {CODE};
    const trampoline = {TRAMPOLINE};
    const changing = trampoline.slice();
    const Subclass = class extends WebAssembly.Module {{}};
    const ways = {{
        Module: () => new WebAssembly.Module(code),
        buffer: () => new WebAssembly.Module(code.buffer),
        view: () => new WebAssembly.Module(new DataView(code.buffer)),
        resizable: () => {{
            const buffer = new ArrayBuffer(code.length, {{ maxByteLength: 1000 }});
            new Uint8Array(buffer).set(code);
            return new WebAssembly.Module(buffer);
        }},
        subclass: () => new Subclass(code),
        construct: () => Reflect.construct(WebAssembly.Module, [code], Array),
        constructor: () => new WebAssembly.Module.prototype.constructor(code),
        ofTrampoline: () => new (new WebAssembly.Module(trampoline).constructor)(code),
        withOptions: () => new WebAssembly.Module(code, {{ builtins: ['js-string'] }}),
        imitation: () => new WebAssembly.Module(Object.setPrototypeOf({{ length: 8 }}, Uint8Array.prototype)),
        changing: () => new WebAssembly.Module(Object.defineProperty(changing, 'length', {{
            get() {{ changing.set(code.slice(0, 8)); changing[8] = 10; return 34; }} }})) && 'a trampoline',
        empty: () => new WebAssembly.Module(new Uint8Array()),
        compile: () => WebAssembly.compile(code),
        instantiate: () => WebAssembly.instantiate(code, {{}}),
        promise: () => WebAssembly.instantiate(Promise.resolve(code)),
        streaming: () => WebAssembly.compileStreaming(new Response(code)),
        instantiateStreaming: () => WebAssembly.instantiateStreaming(new Response(code)),
        function: () => new WebAssembly.Function({{ parameters: [], results: [] }}, () => 1),
        source: () => (0, eval)('import.source(\"data:application/wasm,x\")'),
    }};
    const compiled = [];
    for (const [name, way] of Object.entries(ways)) {{
        try {{
            const result = await way();
            if (result !== 'a trampoline') compiled.push(name);
        }} catch (error) {{
            if (error.message === '') compiled.push(name);
        }}
    }}
    return compiled.join();
}})()''')
outcomes"
    );
    assert_eq!(eval(&mut session, code).await, Value::from(""));
    let refusal =
        format!("from pyodide.code import run_js\nrun_js('new WebAssembly.Module({CODE})')");
    let execution = session.run(refusal).await.unwrap();
    let message = &execution.exception().unwrap().message;
    let expected = "WebAssembly code that is not part of a loaded package cannot be compiled";
    assert!(message.contains(expected), "{message}");
}

/// A12: the modules that Emscripten compiles at run time still work: ctypes callbacks, with every
/// type of argument.
#[tokio::test]
async fn callbacks_of_ctypes_work() {
    let code = "
from ctypes import *
libc = CDLL(None)
compare = CFUNCTYPE(c_int, POINTER(c_int), POINTER(c_int))(lambda a, b: a[0] - b[0])
numbers = (c_int * 5)(3, 1, 4, 1, 5)
libc.qsort(numbers, 5, sizeof(c_int), compare)
mixed = CFUNCTYPE(c_double, c_double, c_longlong, c_float, c_uint8, c_void_p)
none = CFUNCTYPE(None)
called = []
none(lambda: called.append(1))()
list(numbers), mixed(lambda *a: sum(a[:4]) + (a[4] or 0))(1.5, 2**40, 0.25, 7, None), called
";
    let expected = Value::List(vec![
        Value::List([1, 1, 3, 4, 5].map(Value::Int).to_vec()),
        Value::Float(1.5 + 1_099_511_627_776.0 + 0.25 + 7.0),
        Value::List(vec![Value::Int(1)]),
    ]);
    assert_eq!(eval(&mut session().await, code).await, expected);
}

/// A12: a loader that checks whether it has a module gets the usual answer.
#[tokio::test]
async fn modules_are_instances_of_module() {
    let code = format!(
        "from pyodide.code import run_js
run_js('''(() => {{
    const module = new WebAssembly.Module({TRAMPOLINE});
    const instance = new WebAssembly.Instance(module, {{ e: {{ f: () => {{}} }} }});
    const memory = new WebAssembly.Memory({{ initial: 1 }});
    return [module instanceof WebAssembly.Module, module.constructor === WebAssembly.Module,
        WebAssembly.Module.exports(module)[0].name, typeof instance.exports.f,
        memory instanceof WebAssembly.Memory, memory.grow(1)].join();
}})()''')"
    );
    let expected = Value::from("true,true,f,function,true,1");
    assert_eq!(eval(&mut session().await, code).await, expected);
}

/// A12: a stack that the guest suspends by its own means delays neither the deadline nor the end.
#[tokio::test]
async fn suspended_stacks_of_the_guests_own_hold_nothing_up() {
    let suspend = format!(
        "from pyodide.code import run_js
run_js('''
const module = new WebAssembly.Module({TRAMPOLINE});
const waits = new WebAssembly.Suspending(() => new Promise(() => {{}}));
for (let i = 0; i < 50; i++) {{
    const {{ f }} = new WebAssembly.Instance(module, {{ e: {{ f: waits }} }}).exports;
    WebAssembly.promising(f)();
}}
const spins = new WebAssembly.Suspending(async () => {{ await null; for (;;); }});
globalThis.spin = () => WebAssembly.promising(
    new WebAssembly.Instance(module, {{ e: {{ f: spins }} }}).exports.f)();
''')"
    );
    let limits = Limits::default().max_run_time(Duration::from_secs(1));
    let sandbox = builder().limits(limits).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, suspend.as_str()).await;
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
    let execution = session.run("import js\nawait js.spin()").await.unwrap();
    let outcome = execution.outcome();
    assert!(matches!(outcome, Outcome::Terminated(Termination::Deadline { .. })), "{execution:?}");
    assert_eq!(eval(&mut sandbox.session().await.unwrap(), "2").await, Value::Int(2));
}
