//! Tests that CPython is linked for dynamic libraries on demand, with the same result as if it had
//! been from the start.

use isolet::{Permissions, Sandbox, Value};

use crate::util::{Scratch, engine_builder, eval, session, wheel};

#[tokio::test]
async fn functions_of_the_interpreter_are_found_by_name_and_work() {
    let code = "
import ctypes
api = ctypes.pythonapi
api.PyLong_FromLong.restype = ctypes.py_object
api.PyList_Size.argtypes = [ctypes.py_object]
[api.PyLong_FromLong(42), api.PyList_Size([1, 2, 3])]";
    let expected = Value::List(vec![42.into(), 3.into()]);
    assert_eq!(eval(&mut session().await, code).await, expected);
}

#[tokio::test]
async fn the_address_that_an_object_has_of_a_function_is_the_one_found_by_name() {
    // The slot `tp_alloc` of `object`, which follows 38 pointers of 4 bytes in a type.
    let code = "
import ctypes
address = ctypes.cast(ctypes.pythonapi.PyType_GenericAlloc, ctypes.c_void_p).value
words = (ctypes.c_uint32 * 60).from_address(id(object))
address in list(words)";
    assert_eq!(eval(&mut session().await, code).await, Value::Bool(true));
}

#[tokio::test]
async fn an_address_that_a_preloaded_module_has_of_a_function_is_good_in_every_session() {
    let work = Scratch::new("linking-preloaded");
    let module = "
import ctypes
convert = ctypes.pythonapi.PyLong_FromLong
convert.restype = ctypes.py_object";
    wheel(work.path(), "converter", "1", module);
    let sources = Permissions::none().wheels(work.path()).offline_packages();
    let builder = engine_builder().images(work.path()).packages_from(&sources);
    let engine = builder.preload("converter").unwrap().build().unwrap();
    let sandbox = Sandbox::builder(&engine).build().unwrap();
    for _ in 0..3 {
        let mut session = sandbox.session().await.unwrap();
        assert_eq!(eval(&mut session, "import converter; converter.convert(42)").await, 42.into());
    }
}

#[tokio::test]
async fn an_address_of_a_function_is_good_in_a_restored_session_and_what_is_restored_of_that() {
    let work = Scratch::new("linking-saved");
    let path = work.path().join("session");
    let sandbox = Sandbox::builder(crate::util::engine()).build().unwrap();
    let mut session = sandbox.session().await.unwrap();
    let code = "
import ctypes
convert = ctypes.pythonapi.PyLong_FromLong
convert.restype = ctypes.py_object
convert(1)";
    assert_eq!(eval(&mut session, code).await, 1.into());
    for n in 2..4 {
        session.save(&path).await.unwrap();
        session = sandbox.restore(&path).await.unwrap();
        assert_eq!(eval(&mut session, format!("convert({n})")).await, Value::Int(n));
    }
    // A name that nobody has asked for yet.
    let code = "
size = ctypes.pythonapi.PyList_Size
size.argtypes = [ctypes.py_object]
[size([0, 0, 0]), convert(4)]";
    assert_eq!(eval(&mut session, code).await, Value::List(vec![3.into(), 4.into()]));
}
