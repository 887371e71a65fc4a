// What ctypes reads and writes at addresses of the guest's choice. WebAssembly ends whatever leaves
// its memory, which would pass through CPython and end that too. So the functions of ctypes that
// follow an address are called from here, where it becomes an exception.

import { primordials } from "ext:core/mod.js";
import { placeLater } from "ext:isolet/table_functions.js";

const {
  ArrayPrototypePush,
  Error,
  RangeError,
  ReflectApply,
  SafeSet,
  StringPrototypeRepeat,
  uncurryThis,
} = primordials;

const functionAt = uncurryThis(WebAssembly.Table.prototype.get);

/** How `foreign.py` describes a function: its place in the table, its kind, its failed result. */
const DESCRIPTION_WORDS = 3;
/** More than ctypes has. */
const MOST_GUARDED = 500;
/** The kinds that more is done for: what exports a buffer, returns an object, or calls C. */
const EXPORTS_BUFFER = 1;
const RETURNS_OBJECT = 2;
const CALLS = 3;

// Where CPython 3.14 has what of its objects, in words.

/** After the count of references, which is 0 in most that have been freed. */
const TYPE = 1;
const FLAGS = 21;
/** Of a type that is ready, and of a type whose instances are types. */
const READY = 1 << 12;
const MAKES_TYPES = 1 << 31;
const BUFFER = { __proto__: null, address: 0, owner: 1, length: 2 };

export class ForeignMemory {
  #calls;
  #linking;
  #placed = new SafeSet();

  constructor(calls, linking) {
    this.#calls = calls;
    this.#linking = linking;
  }

  /**
   * Takes the place of functions in the table, which `count` descriptions at `address` are of. They
   * may have been replaced before.
   */
  guard(Module, address, count) {
    const { table } = this.#linking;
    // The guest may find this function, and give it anything.
    if (!(count <= MOST_GUARDED)) throw new RangeError("there are not so many functions");
    const guarded = [];
    for (let i = 0; i < count; i++) {
      const at = (address >>> 2) + i * DESCRIPTION_WORDS;
      const place = Module.HEAPU32[at];
      if (this.#placed.has(place)) continue;
      const kind = Module.HEAPU32[at + 1];
      const failed = Module.HEAP32[at + 2];
      const run = this.#guarded(Module, functionAt(table, place), kind, failed);
      ArrayPrototypePush(guarded, [place, run]);
    }
    placeLater(guarded, table);
    for (let i = 0; i < guarded.length; i++) this.#placed.add(guarded[i][0]);
  }

  #guarded(Module, real, kind, failed) {
    const run = (...given) =>
      this.#calls.attempt(Module, "ctypes cannot follow an address", failed, () => {
        if (kind === RETURNS_OBJECT) checkObject(Module, given[0]);
        const result = ReflectApply(real, undefined, given);
        if (kind === EXPORTS_BUFFER && result === 0) checkBuffer(Module, given[1]);
        // ctypes makes a result of a call that failed.
        if (kind === CALLS && result !== 0 && Module._PyErr_Occurred() !== 0) {
          Module._Py_DecRef(result);
          return failed;
        }
        return result;
      });
    // All are addresses and numbers of 32 bits.
    run.sig = StringPrototypeRepeat("i", real.length + 1);
    return run;
  }
}

/**
 * Throws if there is no object of Python's where the pointer at this address leads. NULL is refused
 * by CPython.
 */
function checkObject(Module, address) {
  const { HEAPU32: words } = Module;
  const object = words[address >>> 2];
  if (object === undefined || object === 0) return;
  const isThere = object % 4 === 0 && words[object >>> 2] > 0;
  const type = isThere ? words[(object >>> 2) + TYPE] : undefined;
  if (!isType(words, type) || !isType(words, words[(type >>> 2) + TYPE], MAKES_TYPES)) {
    throw new Error(`there is no object of Python's at address ${object}`);
  }
}

function isType(words, address, flags = 0) {
  if (address === undefined || address === 0 || address % 4 !== 0) return false;
  const found = words[(address >>> 2) + FLAGS];
  return found !== undefined && (found & READY) !== 0 && (found & flags) === flags;
}

/** Throws if a buffer that was exported is outside of the memory, and gives it back. */
function checkBuffer(Module, buffer) {
  const { HEAPU8, HEAPU32: words } = Module;
  const at = buffer >>> 2;
  const address = words[at + BUFFER.address];
  const length = words[at + BUFFER.length];
  if (address + length <= HEAPU8.length) return;
  Module._Py_DecRef(words[at + BUFFER.owner]);
  words[at + BUFFER.owner] = 0;
  throw new Error(`there are no ${length} bytes at address ${address}`);
}
