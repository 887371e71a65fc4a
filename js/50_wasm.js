// Puts the guest's WebAssembly behind one op: the host says which modules are compiled.
// V8 itself refuses to compile any other way; this only keeps the usual calls working.

import { primordials } from "ext:core/mod.js";
import { op_isolet_wasm_compile } from "ext:core/ops";

const { ObjectDefineProperty, ObjectGetOwnPropertyDescriptor, TypeError } = primordials;

const wasm = WebAssembly;
const { Instance, Memory: NativeMemory, Module: NativeModule } = wasm;

function demandNew(target, name) {
  if (target === undefined) throw new TypeError(`WebAssembly.${name} must be invoked with 'new'`);
}

function Module(bytes) {
  demandNew(new.target, "Module");
  return op_isolet_wasm_compile(bytes);
}
for (const name of ["customSections", "exports", "imports"]) {
  ObjectDefineProperty(Module, name, ObjectGetOwnPropertyDescriptor(NativeModule, name));
}

/** Never shared: there is no thread to share it with, and with it comes SharedArrayBuffer. */
function Memory(descriptor) {
  demandNew(new.target, "Memory");
  const { initial, minimum, maximum, address } = descriptor;
  const plain = { __proto__: null };
  if (initial !== undefined) plain.initial = initial;
  if (minimum !== undefined) plain.minimum = minimum;
  if (maximum !== undefined) plain.maximum = maximum;
  if (address !== undefined) plain.address = address;
  return new NativeMemory(plain);
}

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
replace(wasm, "compile", compile);
replace(wasm, "instantiate", instantiate);
for (const name of ["compileStreaming", "instantiateStreaming", "validate"]) delete wasm[name];
