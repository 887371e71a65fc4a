// Puts the guest's WebAssembly behind ops: the host says which modules are compiled, and which
// memories are made and grow. V8 itself refuses to compile any other way; that only keeps the usual
// calls working.

import { primordials } from "ext:core/mod.js";
import {
  op_isolet_memory_grow,
  op_isolet_memory_make,
  op_isolet_memory_take,
  op_isolet_wasm_compile,
} from "ext:core/ops";

const {
  ArrayBufferPrototypeGetByteLength,
  MathCeil,
  Number,
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  RangeError,
  TypeError,
  uncurryThis,
} = primordials;

const wasm = WebAssembly;
const { Instance, Memory: NativeMemory, Module: NativeModule } = wasm;

const PAGE = 65536;
const MOST_PAGES = 65536;
const nativeGrow = uncurryThis(NativeMemory.prototype.grow);
const bufferOf = uncurryThis(ObjectGetOwnPropertyDescriptor(NativeMemory.prototype, "buffer").get);
const sizeOf = (memory) => ArrayBufferPrototypeGetByteLength(bufferOf(memory));

/** The interpreter's, which the host counts as large as it is. */
let interpreterMemory = null;

/** Says which memory is the interpreter's. */
export function adoptMemory(memory) {
  interpreterMemory = memory;
}

/** Grows the interpreter's memory to at least `needed` bytes, if the host has them for it. */
export function growInterpreter(needed, withRoom) {
  const size = op_isolet_memory_grow(needed, withRoom);
  const missing = size - sizeOf(interpreterMemory);
  if (missing <= 0) return size > 0;
  try {
    nativeGrow(interpreterMemory, missing / PAGE);
    return true;
  } catch {
    return false; // the system has no more
  }
}

/** Grows the shell's memory by pages; -1 if the host has none for it. */
export function growShell(memory, pages) {
  if (!op_isolet_memory_take(pages * PAGE)) return -1;
  try {
    return nativeGrow(memory, pages);
  } catch {
    return -1;
  }
}

function demandNew(target, name) {
  if (target === undefined) throw new TypeError(`WebAssembly.${name} must be invoked with 'new'`);
}

/**
 * What is to be told of each module that is compiled by `new`.
 * @type {{ __proto__: null, tell: ((module: WebAssembly.Module) => void) | null }}
 */
export const compiled = { __proto__: null, tell: null };

function Module(bytes) {
  demandNew(new.target, "Module");
  const module = op_isolet_wasm_compile(bytes);
  compiled.tell?.(module);
  return module;
}
for (const name of ["customSections", "exports", "imports"]) {
  ObjectDefineProperty(Module, name, ObjectGetOwnPropertyDescriptor(NativeModule, name));
}

/**
 * Never shared: there is no thread to share it with, and with it comes SharedArrayBuffer. What it
 * takes is never given back, as nothing says when V8 frees it.
 */
function Memory(descriptor) {
  demandNew(new.target, "Memory");
  const { initial, minimum, maximum, address } = descriptor;
  if (address !== undefined && `${address}` !== "i32") {
    throw new TypeError("WebAssembly.Memory(): memories of 64 bits are not supported");
  }
  /** @type {any} */
  const plain = { __proto__: null };
  if (initial !== undefined) plain.initial = Number(initial);
  if (minimum !== undefined) plain.minimum = Number(minimum);
  if (maximum !== undefined) plain.maximum = Number(maximum);
  const pages = plain.initial ?? plain.minimum;
  // V8 throws at any other number.
  if (pages >= 0 && pages <= MOST_PAGES && !op_isolet_memory_make(MathCeil(pages) * PAGE)) {
    throw new RangeError("WebAssembly.Memory(): could not allocate memory");
  }
  return new NativeMemory(plain);
}

const { grow } = {
  grow(delta) {
    const pages = Number(delta);
    const size = sizeOf(this); // throws if this is no memory
    if (pages >= 0 && pages <= MOST_PAGES) {
      const bytes = MathCeil(pages) * PAGE;
      const granted = this === interpreterMemory
        ? op_isolet_memory_grow(size + bytes, false) > 0
        : op_isolet_memory_take(bytes);
      if (!granted) {
        throw new RangeError("WebAssembly.Memory.grow(): Unable to grow instance memory");
      }
    }
    return nativeGrow(this, pages);
  },
};

async function compile(bytes) {
  return op_isolet_wasm_compile(bytes);
}

async function instantiate(source, imports) {
  if (source instanceof Module) return new Instance(source, imports);
  const module = op_isolet_wasm_compile(source);
  return { module, instance: new Instance(module, imports) };
}

function replace(holder, name, value) {
  const descriptor = ObjectGetOwnPropertyDescriptor(holder, name);
  ObjectDefineProperty(holder, name, { __proto__: null, ...descriptor, value });
}

for (const [wrapper, native] of [[Module, NativeModule], [Memory, NativeMemory]]) {
  ObjectDefineProperty(wrapper, "prototype", {
    __proto__: null,
    value: native.prototype,
    writable: false,
  });
  replace(native.prototype, "constructor", wrapper);
  replace(wasm, wrapper.name, wrapper);
}
replace(NativeMemory.prototype, "grow", grow);
// It would grow as its buffer does.
delete NativeMemory.prototype.toFixedLengthBuffer;
delete NativeMemory.prototype.toResizableBuffer;
replace(wasm, "compile", compile);
replace(wasm, "instantiate", instantiate);
for (const name of ["compileStreaming", "instantiateStreaming", "validate"]) delete wasm[name];
