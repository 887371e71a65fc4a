//! Tests of guests that tamper with the code that describes them: they damage only their own
//! results.

use isolet::{Outcome, Sandbox, Value};

use crate::util::{builder, eval, exec, session};

#[tokio::test]
async fn a_repr_that_fails_is_told_of() {
    let mut session = session().await;
    let code = "class A:\n    def __repr__(self): raise KeyError('no')\n\
                class B:\n    def __repr__(self): return 5\n\
                class C:\n    def __repr__(self): return '\\ud800'\n\
                class D(str):\n    def __len__(self): return -1\n    def __getitem__(self, i): 1/0\n\
                class E:\n    def __repr__(self): return D('d')\n\
                class F:\n    def __repr__(self): return repr(self)\n\
                class Meta(type):\n    def __getattribute__(self, name): 1/0\n\
                class G(metaclass=Meta):\n    def __getattr__(self, name): 1/0";
    exec(&mut session, code).await;
    let cases = [
        ("A()", Some("<A object; repr raised KeyError: 'no'>")),
        ("B()", Some("<B object; repr raised TypeError: __repr__ returned non-string (type int)>")),
        ("C()", Some("\\ud800")),
        ("E()", Some("d")),
        ("F()", Some("<F object; repr raised RecursionError: maximum recursion depth exceeded>")),
        ("G()", None),
    ];
    for (code, repr) in cases {
        let execution = exec(&mut session, code).await;
        assert_eq!(execution.value(), None, "{code}");
        assert!(execution.value_error().is_some(), "{code}");
        if repr.is_some() {
            assert_eq!(execution.repr(), repr, "{code}");
        }
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

#[tokio::test]
async fn names_that_are_no_text_end_no_session() {
    let mut session = session().await;
    exec(&mut session, "A = type('A', (), {})\nA.__qualname__ = '\\ud800'").await;
    let codes = [
        "globals()['\\ud800'] = 1",
        "a = A()",
        "A()",
        "raise type('E', (Exception,), {'__module__': '\\ud800'})",
        "raise SystemExit('\\ud800')",
    ];
    for code in codes {
        let execution = session.run(code).await.unwrap();
        assert!(execution.session_alive(), "{code}: {execution:?}");
    }
}

#[tokio::test]
async fn a_repr_that_exits_or_prints_ends_no_session() {
    let mut session = session().await;
    let code = "class A:\n    def __repr__(self): raise SystemExit(9)\n\
                class B:\n    def __repr__(self):\n        print('from repr')\n        return 'b'\n\
                class C:\n    def __repr__(self): raise KeyboardInterrupt";
    exec(&mut session, code).await;
    for code in ["A()", "C()", "[A()]"] {
        let execution = session.run(code).await.unwrap();
        assert!(execution.session_alive(), "{code}: {execution:?}");
        assert_ne!(*execution.outcome(), Outcome::Terminated(isolet::Termination::Interrupted));
    }
    let execution = exec(&mut session, "B()").await;
    assert_eq!((execution.stdout(), execution.repr()), ("from repr\n", Some("b")));
}

#[tokio::test]
async fn containers_that_lie_about_themselves_do_no_harm() {
    let mut session = session().await;
    let code = "class L(list):\n    def __iter__(self):\n        while len(self) < 10: self.append(1); yield 1\n\
                class D(dict):\n    def items(self): raise KeyError('no')\n    def keys(self): return [object()]\n\
                class S(str):\n    def __str__(self): return 5\n    def isascii(self): return True\n\
                class I(int):\n    def __int__(self): return 'no'\n    def __index__(self): 1/0\n\
                class Lie:\n    __class__ = int\n\
                class Fields:\n    __dataclass_fields__ = 5";
    exec(&mut session, code).await;
    let codes = ["L()", "D(a=1)", "S('\\ud800')", "I(3)", "Lie()", "Fields()", "[Lie(), S('x')]"];
    for code in codes {
        let execution = session.run(code).await.unwrap();
        assert!(execution.session_alive(), "{code}: {execution:?}");
    }
    assert_eq!(eval(&mut session, "1").await, Value::Int(1));
}

/// Runs `code`, then more in the same session, and in a new one of the same sandbox, which must
#[tokio::test]
async fn a_session_goes_on_without_the_modules_that_its_guest_has_forgotten() {
    let mut session = session().await;
    for code in ["import sys; del sys.modules['__main__']", "import sys; sys.modules.clear()"] {
        exec(&mut session, "x = 41").await;
        exec(&mut session, code).await;
        assert_eq!(eval(&mut session, "x + 1").await, Value::Int(42), "{code}");
    }
}

/// work.
async fn spoil(sandbox: &Sandbox, code: &str) {
    let mut session = sandbox.session().await.unwrap();
    // Any answer of the damaged session is fine, as long as there is one.
    let first = session.run(code).await;
    for cell in ["1 + 1", "1/0", "print('x')", "raise SystemExit(3)"] {
        let _ = session.run(cell).await;
    }
    let mut next = sandbox.session().await.unwrap();
    assert_eq!(eval(&mut next, "1 + 1").await, Value::Int(2), "{code}: {first:?}");
}

macro_rules! spoilers {
    ($($name:ident: $code:expr,)*) => {$(
        #[tokio::test]
        async fn $name() {
            let limits = isolet::Limits::default().max_run_time(std::time::Duration::from_secs(10));
            spoil(&builder().limits(limits).build().unwrap(), $code).await;
        }
    )*};
}

spoilers! {
    a_guest_without_marshal_spoils_only_itself: "import marshal; marshal.dumps = marshal.loads = None",
    a_guest_without_builtins_spoils_only_itself:
        "import builtins\nfor name in dir(builtins):\n    if name not in ('delattr', 'builtins'): \
         delattr(builtins, name)",
    a_guest_without_main_spoils_only_itself: "import sys; del sys.modules['__main__']",
    a_guest_without_modules_spoils_only_itself: "import sys; sys.modules.clear()",
    a_guest_without_a_loop_spoils_only_itself:
        "import asyncio; asyncio.get_event_loop_policy = asyncio._set_running_loop = None",
    a_guest_that_changes_our_module_spoils_only_itself:
        "import gc\ngc.unfreeze()\nfor d in gc.get_objects():\n    if type(d) is dict and 'COMMANDS' in d: d.clear()",
    a_guest_without_streams_spoils_only_itself:
        "import sys; sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None",
    a_guest_that_closes_its_streams_spoils_only_itself:
        "import os, sys; sys.stdout.close(); sys.stderr.close(); os.close(0); os.close(1); os.close(2)",
    a_guest_with_a_tracing_hook_spoils_only_itself:
        "import sys\ndef hook(*args): raise KeyboardInterrupt\nsys.settrace(hook); sys.setprofile(hook)",
    a_guest_without_javascript_globals_spoils_only_itself:
        "from pyodide.code import run_js\nrun_js('for(const k of \
         Object.getOwnPropertyNames(globalThis))delete globalThis[k]')",
    a_guest_with_another_object_prototype_spoils_only_itself:
        "from pyodide.code import run_js\nrun_js('Object.prototype.then=r=>r(1)')",
    a_guest_that_unsets_recursion_limits_spoils_only_itself:
        "import sys\nsys.setrecursionlimit(2**30)\ndef f(): return f()\nf()",
    a_guest_that_uses_up_its_memory_spoils_only_itself:
        "x = []\nwhile True: x.append(bytearray(100_000_000))",
    a_guest_that_writes_through_null_spoils_only_itself:
        "import ctypes; ctypes.memset(0, 255, 1_000_000)",
}
