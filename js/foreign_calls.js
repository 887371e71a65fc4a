// Calls of C functions by ctypes. libffi makes them in JavaScript, where what a wrong call leads to
// (a trap of WebAssembly, a number of another size) would pass through CPython and end it. Here it
// becomes an exception.

import { primordials } from "ext:core/mod.js";

const {
  ArrayPrototypePush,
  BigInt,
  BigIntAsIntN,
  ErrorPrototype,
  MathMax,
  Number,
  ObjectPrototypeIsPrototypeOf,
  ReflectApply,
  StringPrototypeCharCodeAt,
  StringPrototypeIncludes,
  TypeError,
} = primordials;

/** Callbacks at a time: each is a module of WebAssembly, and has a place in the table. */
const MAX_CALLBACKS = 50_000;
/** Bytes beside a callback's that CPython's allocator has to have left. */
const ALIGNMENT = 8;

/** Where libffi's description of a call has the type of the result, and a type its number. */
const RESULT = 12;
const NUMBER = 6;
/** The types of 64-bit integers, which JavaScript has as BigInts, and of structures. */
const UNSIGNED_64 = 11;
const SIGNED_64 = 12;
const STRUCTURE = 13;

/** What V8 says, before it calls a function, of an argument that is to be a BigInt, or is one. */
const NO_BIGINT = "to a BigInt";
const IS_BIGINT = "Cannot convert a BigInt";

const isFatal = (error) =>
  !ObjectPrototypeIsPrototypeOf(ErrorPrototype, error) || error.pyodide_fatal_error === true;

export class ForeignCalls {
  /** How many calls are under way: the stack of each has a frame of JavaScript. */
  #depth = 0;
  #callbacks = 0;

  /** Replaces the imports of libffi, and those through which Python asks whether it can wait. */
  hook(Module, env) {
    const {
      can_run_sync_js: canWait,
      ffi_call_js: call,
      ffi_closure_alloc_js: allocate,
      ffi_closure_free_js: free,
      saveState,
    } = env;
    // V8 would end the interpreter for a wait beneath a frame of JavaScript.
    env.can_run_sync_js = () => (this.#depth > 0 ? 0 : canWait());
    env.saveState = () => (this.#depth > 0 ? Module.error : saveState());
    env.ffi_call_js = (description, place, result, values) =>
      this.attempt(Module, "the call of a C function failed", undefined, () => {
        fit(Module, description, place);
        call(description, place, result, values);
      });
    env.ffi_closure_alloc_js = (size, code) => {
      if (this.#callbacks >= MAX_CALLBACKS) return 0;
      try {
        const closure = allocate(MathMax(size, ALIGNMENT), code);
        this.#callbacks++;
        return closure;
      } catch {
        return 0; // there is no memory for it, or no place in the table
      }
    };
    env.ffi_closure_free_js = (closure) => {
      this.#callbacks--;
      free(closure);
    };
  }

  /** What `call` returns; `failed` if WebAssembly ends it, which raises OSError. */
  attempt(Module, what, failed, call) {
    const stack = Module._emscripten_stack_get_current();
    this.#depth++;
    try {
      return call();
    } catch (error) {
      if (isFatal(error)) throw error;
      Module.__emscripten_stack_restore(stack);
      raise(Module, `${what}: ${error.message}`);
      return failed;
    } finally {
      this.#depth--;
    }
  }
}

/**
 * Has the next call of the function at this place take and give integers of the size that its
 * caller has: without argtypes and restype, ctypes has 32 bits for all.
 */
function fit(Module, description, place) {
  const { wasmTableMirror: functions, HEAPU16, HEAPU32 } = Module;
  const real = Module.getWasmTableEntry(place);
  if (typeof real !== "function") throw new TypeError(`there is no function at address ${place}`);
  const type = HEAPU16[(HEAPU32[(description + RESULT) >>> 2] + NUMBER) >>> 1];
  const isWide = type === UNSIGNED_64 || type === SIGNED_64;
  functions[place] = (...given) => {
    functions[place] = real;
    while (given.length < real.length) ArrayPrototypePush(given, 0);
    const result = callFitted(real, given);
    if (isWide && typeof result === "number") return BigInt(result);
    if (isWide || type === STRUCTURE || typeof result !== "bigint") return result;
    return Number(BigIntAsIntN(32, result));
  };
}

/** V8 looks at the arguments in their order, before it calls the function. */
function callFitted(real, given) {
  for (let i = -1; ; i++) {
    const before = given[i];
    if (typeof before === "number") given[i] = BigInt(before | 0);
    try {
      return ReflectApply(real, undefined, given);
    } catch (error) {
      const message = `${error?.message}`;
      const isTooWide = StringPrototypeIncludes(message, IS_BIGINT);
      if (i + 1 >= given.length || !(isTooWide || StringPrototypeIncludes(message, NO_BIGINT))) {
        throw error;
      }
      if (isTooWide && i >= 0) given[i] = before;
    }
  }
}

/** Raises OSError; CPython's lock may be given up meanwhile. */
function raise(Module, message) {
  const text = Module._malloc(message.length + 1);
  if (text === 0) return;
  for (let i = 0; i < message.length; i++) {
    // V8's own messages are ASCII.
    Module.HEAPU8[text + i] = StringPrototypeCharCodeAt(message, i) & 0x7f;
  }
  Module.HEAPU8[text + message.length] = 0;
  const state = Module._PyGILState_Ensure();
  if (!Module._PyErr_Occurred()) {
    Module._PyErr_SetString(Module.HEAPU32[Module._PyExc_OSError >>> 2], text);
  }
  Module._PyGILState_Release(state);
  Module._free(text);
}
