//! Tests that CPython is linked for dynamic libraries on demand, with the same result as if it had
//! been from the start.

use isolet::Value;

use crate::util::{eval, session};

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
