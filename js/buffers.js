// ArrayBuffers of one size. One that can be resized is memory that V8 gets from the system by
// itself, where no session's budget counts it.

import { primordials } from "ext:core/mod.js";
import { define } from "ext:isolet/globals.js";

const {
  ObjectDefineProperty,
  ObjectGetOwnPropertyDescriptor,
  ReflectConstruct,
  SymbolSpecies,
  TypeError,
} = primordials;

const Native = ArrayBuffer;
const { prototype } = Native;

function FixedBuffer(length) {
  if (new.target === undefined) throw new TypeError("Constructor ArrayBuffer requires 'new'");
  return ReflectConstruct(Native, [length], new.target);
}
ObjectDefineProperty(FixedBuffer, "name", { __proto__: null, value: "ArrayBuffer" });
for (const name of ["isView", SymbolSpecies]) {
  ObjectDefineProperty(FixedBuffer, name, ObjectGetOwnPropertyDescriptor(Native, name));
}
const fixed = { __proto__: null, value: prototype, writable: false };
ObjectDefineProperty(FixedBuffer, "prototype", fixed);
ObjectDefineProperty(prototype, "constructor", { __proto__: null, value: FixedBuffer });
define("ArrayBuffer", FixedBuffer);
for (const name of ["maxByteLength", "resizable", "resize"]) delete prototype[name];
