// Carries Python's calls of JavaScript functions by the built-ins as they were at the start.
// Pyodide looks `apply` and `push` up at each call, where guest code may have put others: one that
// turns a call of a host function into a call of another.

import { primordials } from "ext:core/mod.js";

const {
  ArrayPrototype,
  ArrayPrototypePush,
  ObjectGetOwnPropertyDescriptor,
  ObjectGetPrototypeOf,
  ObjectPrototype,
  ReflectApply,
  ReflectDefineProperty,
  Uint8Array,
  uncurryThis,
} = primordials;

const bufferOf = uncurryThis(
  ObjectGetOwnPropertyDescriptor(WebAssembly.Memory.prototype, "buffer").get,
);

/** Whether an array's element is made by assigning to it: no prototype has a setter for it. */
const isAssignable = (index) =>
  !(index in ArrayPrototype) && ObjectGetPrototypeOf(ArrayPrototype) === ObjectPrototype;

// Errors that may arise while Python is told of an error, each within the one before.
const MOST_ERRORS_IN_ERRORS = 8;

/**
 * Ends errors that cause themselves: telling Python of a JavaScript error uses built-ins, which
 * throw again where guest code replaced them, and each such error would be told in turn until the
 * stack ends, for seconds.
 */
function endErrorsInErrors(Module) {
  const { handle_js_error: tell } = Module;
  let depth = 0;
  Module.handle_js_error = (error) => {
    if (depth === MOST_ERRORS_IN_ERRORS) throw error;
    depth++;
    try {
      tell(error);
    } finally {
      depth--;
    }
  };
}

/** Replaces the imports through which WebAssembly collects arguments and calls a function. */
export function hookCalls(Module, env) {
  endErrorsInErrors(Module);
  env.JsvFunction_CallBound = (func, receiver, args) => {
    try {
      return ReflectApply(func, receiver, args);
    } catch (error) {
      Module.handle_js_error(error);
      return Module.error;
    }
  };
  env.JsvArray_Push = (array, value) => {
    const { length } = array;
    if (isAssignable(length)) return ArrayPrototypePush(array, value);
    const flags = { writable: true, enumerable: true, configurable: true };
    const element = { __proto__: null, value, ...flags };
    ReflectDefineProperty(array, length, element);
    return length + 1;
  };
}

/** The bytes of a memory, or some of them. It may have grown since the last time. */
export function bytesOf(memory, address, length) {
  // Without a length, the view would be of all that follows.
  return new Uint8Array(bufferOf(memory), address, length >>> 0);
}
