//! Tests of ctypes: what goes wrong in a call of C raises, and the session lives.

use isolet::{SessionState, Value};

use crate::util::{Scratch, builder, eval, exec, raised, session};

const SETUP: &str = "import ctypes\nlib, api = ctypes.CDLL(None), ctypes.pythonapi\n\
    Compare = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)\n";

#[tokio::test]
async fn no_call_of_c_ends_the_session() {
    let functions = [
        "lib.abs",
        "lib.atoi",
        "lib.atoll",
        "lib.strlen",
        "lib.toupper",
        "lib.strcmp",
        "lib.labs",
        "lib.lseek",
        "lib.abort",
        "ctypes.string_at",
        "ctypes.wstring_at",
        "ctypes.PyDLL(None).PyLong_FromLong",
        "api.PyLong_FromLongLong",
        "api.Py_FatalError",
        "api.Py_Finalize",
        "ctypes.CFUNCTYPE(None)(0)",
        "ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(123456)",
        "ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(2**30)",
        "ctypes.CFUNCTYPE(ctypes.c_longlong)(lib.abs)",
        "ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_longlong, ctypes.c_double)(-1)",
    ];
    let arguments = [
        "",
        "0",
        "-1",
        "2**31",
        "2**40",
        "b'text'",
        "None",
        "1, 2, 3",
        "b'a', b'b'",
        "ctypes.c_double(1.5)",
        "ctypes.c_longlong(2**40)",
        "ctypes.py_object(5)",
        "ctypes.byref(ctypes.c_int(1)), 'text'",
    ];
    let mut session = session().await;
    exec(&mut session, SETUP).await;
    for function in functions {
        for given in arguments {
            // What a C function returns for a wrong pointer is no object to be looked at.
            let code = format!("{function}({given}); None");
            let execution = session.run(code.as_str()).await.unwrap();
            assert_eq!(session.state(), SessionState::Ready, "{code}: {execution:?}");
        }
    }
    assert_eq!(eval(&mut session, "sum(range(10))").await, Value::from(45));
}

#[tokio::test]
async fn a_call_that_fails_says_why() {
    let mut session = session().await;
    exec(&mut session, SETUP).await;
    let exception = raised(&mut session, "ctypes.string_at(-1)").await;
    assert_eq!(exception.type_name, "OSError");
    assert!(exception.message.contains("memory access out of bounds"), "{exception:?}");
    let exception = raised(&mut session, "ctypes.CFUNCTYPE(None)(0)()").await;
    assert!(exception.traceback.contains("there is no function at address 0"), "{exception:?}");
    let exception = raised(&mut session, "ctypes.CDLL('libnone.so')").await;
    assert!(exception.message.contains("libnone.so: cannot open"), "{exception:?}");
}

#[tokio::test]
async fn integers_of_64_bits_and_varying_arguments_are_passed() {
    let mut session = session().await;
    exec(&mut session, SETUP).await;
    let code = "buffer = ctypes.create_string_buffer(50)\n\
        file = open('a.txt', 'w+'); _ = file.write('hello'); file.flush()\n\
        [lib.atoll(b'-7'), lib.time(None) > 0, lib.lseek(file.fileno(), -2, 2),\n\
        \x20   api.PyLong_AsLongLong(ctypes.py_object(5)),\n\
        \x20   ctypes.CDLL('libc.so.6').sprintf(buffer, b'%s-%d', b'x', 3), buffer.value]";
    let expected = Value::from(vec![
        Value::from(-7),
        Value::from(true),
        Value::from(3),
        Value::from(5),
        Value::from(3),
        Value::bytes(b"x-3"),
    ]);
    assert_eq!(eval(&mut session, code).await, expected);
}

#[tokio::test]
async fn callbacks_wait_or_say_that_they_cannot() {
    let mut session = session().await;
    exec(&mut session, SETUP).await;
    let code = "import asyncio, threading, time\nfound = []\ndef sort(step):\n\
        \x20   def compare(one, other):\n\
        \x20       try:\n            step(); found.append('waited')\n\
        \x20       except RuntimeError as error:\n            found.append(str(error)[-11:])\n\
        \x20       return 0\n\
        \x20   lib.qsort((ctypes.c_int * 2)(1, 2), 2, 4, Compare(compare))\n\
        held = threading.Lock(); _ = held.acquire()\n\
        sort(lambda: time.sleep(0.001)); sort(lambda: asyncio.run(asyncio.sleep(0)))\n\
        sort(held.acquire); found";
    let found = eval(&mut session, code).await;
    let texts: Vec<&str> = found.as_list().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(texts.first(), Some(&"waited"));
    assert_eq!(texts.last(), Some(&"cannot wait"));
    assert_eq!(texts.len(), 3, "{texts:?}");
}

#[tokio::test]
async fn callbacks_are_as_many_as_there_is_room_for() {
    let mut session = session().await;
    exec(&mut session, SETUP).await;
    let code = "kept = []\ntry:\n    while True: kept.append(Compare(max))\n\
        except MemoryError: found = len(kept)\nkept.clear(); Compare(max); found";
    assert_eq!(eval(&mut session, code).await, Value::from(50_000));
}

#[tokio::test]
async fn nothing_that_is_done_outside_of_the_memory_ends_the_session() {
    let mut session = session().await;
    exec(&mut session, include_str!("programs/addresses.py")).await;
    // Most of what is tried has no sense for most objects.
    assert_eq!(eval(&mut session, "outcomes['OSError'] > 4000").await, Value::from(true));
    assert_eq!(eval(&mut session, "sum(range(10))").await, Value::from(45));
}

#[tokio::test]
async fn a_wrong_address_raises_also_in_a_session_that_was_saved() {
    let scratch = Scratch::new("foreign-saved");
    let (sandbox, file) = (builder().build().unwrap(), scratch.path().join("session"));
    let mut session = sandbox.session().await.unwrap();
    exec(&mut session, "import ctypes; n = ctypes.c_int.from_address(2**32 - 8)").await;
    session.save(&file).await.unwrap();
    let restored = sandbox.restore(&file).await.unwrap();
    let read = "ctypes cannot follow an address: memory access out of bounds";
    for mut session in [session, restored] {
        for (code, kind, message) in [
            ("n.value", "OSError", read),
            ("n.value = 5", "OSError", read),
            ("ctypes.cast(2**32 - 8, ctypes.POINTER(ctypes.c_int))[0]", "OSError", read),
            ("ctypes.c_char_p(2**32 - 8).value", "OSError", read),
            ("memoryview(n)", "OSError", "there are no 4 bytes at address 4294967288"),
            ("ctypes.cast(16, ctypes.py_object).value", "OSError", "no object of Python's at"),
            ("ctypes.py_object().value", "ValueError", "PyObject is NULL"),
            ("import _ctypes; _ctypes.PyObj_FromPtr(16)", "OSError", "no object of Python's at"),
            ("ctypes.memset(2**32 - 8, 0, 100)", "OSError", "the call of a C function failed"),
        ] {
            let exception = raised(&mut session, code).await;
            assert_eq!(exception.type_name, kind, "{code}");
            assert!(exception.message.contains(message), "{code}: {exception:?}");
        }
        let code = "ctypes.cast(id(ctypes), ctypes.py_object).value is ctypes";
        assert_eq!(eval(&mut session, code).await, Value::from(true));
    }
}
