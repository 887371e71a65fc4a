// Puts functions of JavaScript into a table of WebAssembly, which only a module can do. Emscripten
// makes one for each; here is one for all.

import { primordials } from "ext:core/mod.js";
// Its `WebAssembly.Module` is the one that V8 lets compile.
import "ext:isolet/wasm.js";

const { ArrayPrototypePush, StringPrototypeCharCodeAt, Uint8Array, uncurryThis } = primordials;

const { Instance, Module, Table } = WebAssembly;
const place = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

/** WebAssembly's types by Emscripten's letters. */
const TYPES = { __proto__: null, i: 0x7f, p: 0x7f, j: 0x7e, f: 0x7d, d: 0x7c, e: 0x6f };
const NO_RESULT = "v";

/** What the modules below import their functions, globals and table from. */
const FUNCTIONS_IMPORTED = 0;
const GLOBALS_IMPORTED = 1;
const TABLE_IMPORTED = 2;

/** A number in WebAssembly's format. */
function pushNumber(bytes, number) {
  for (; number >= 0x80; number >>>= 7) ArrayPrototypePush(bytes, (number & 0x7f) | 0x80);
  ArrayPrototypePush(bytes, number);
}

/** The name that the module below has for its function of this number. */
function pushName(bytes, number) {
  const name = `${number}`;
  pushNumber(bytes, name.length);
  for (let i = 0; i < name.length; i++) {
    ArrayPrototypePush(bytes, StringPrototypeCharCodeAt(name, i));
  }
}

/** A module of these sections, `[number, contents]`. */
function moduleOf(sections) {
  const bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  for (let i = 0; i < sections.length; i++) {
    const contents = sections[i][1];
    ArrayPrototypePush(bytes, sections[i][0]);
    pushNumber(bytes, contents.length);
    for (let j = 0; j < contents.length; j++) ArrayPrototypePush(bytes, contents[j]);
  }
  return new Module(new Uint8Array(bytes));
}

/** The section with the types of these signatures, in Emscripten's letters. */
function typesOf(signatures) {
  const types = [];
  pushNumber(types, signatures.length);
  for (let i = 0; i < signatures.length; i++) {
    const signature = signatures[i];
    ArrayPrototypePush(types, 0x60);
    pushNumber(types, signature.length - 1);
    for (let j = 1; j < signature.length; j++) ArrayPrototypePush(types, TYPES[signature[j]]);
    if (signature[0] === NO_RESULT) ArrayPrototypePush(types, 0);
    else ArrayPrototypePush(types, 1, TYPES[signature[0]]);
  }
  return types;
}

/** A module that imports functions of these signatures and exports them. */
function passingThrough(signatures) {
  const imports = [];
  const exports = [];
  pushNumber(imports, signatures.length);
  pushNumber(exports, signatures.length);
  for (let i = 0; i < signatures.length; i++) {
    pushName(imports, FUNCTIONS_IMPORTED);
    pushName(imports, i);
    ArrayPrototypePush(imports, 0);
    pushNumber(imports, i);
    pushName(exports, i);
    ArrayPrototypePush(exports, 0);
    pushNumber(exports, i);
  }
  return moduleOf([[1, typesOf(signatures)], [2, imports], [7, exports]]);
}

/**
 * A module that exports functions of these signatures, which return integers. Each calls an
 * imported one, and if that returns 0, the function whose place in the table is in a global. So no
 * JavaScript is on the stack meanwhile, and that function may be suspended.
 */
function choosing(signatures) {
  const count = signatures.length;
  const imports = [];
  const functions = [];
  const exports = [];
  const codes = [];
  pushNumber(imports, 2 * count + 1);
  pushNumber(functions, count);
  pushNumber(exports, count);
  pushNumber(codes, count);
  for (let i = 0; i < count; i++) {
    pushName(imports, FUNCTIONS_IMPORTED);
    pushName(imports, i);
    ArrayPrototypePush(imports, 0);
    pushNumber(imports, i);
    pushNumber(functions, i);
    pushName(exports, i);
    ArrayPrototypePush(exports, 0);
    pushNumber(exports, count + i);
    // One more local, of type i32, for the result.
    const code = [1, 1, TYPES.i];
    const parameters = signatures[i].length - 1;
    const pushParameters = () => {
      for (let j = 0; j < parameters; j++) ArrayPrototypePush(code, 0x20, j);
    };
    pushParameters();
    // call, local.tee, if (result i32), local.get, else
    ArrayPrototypePush(code, 0x10, i, 0x22, parameters, 0x04, TYPES.i, 0x20, parameters, 0x05);
    pushParameters();
    // global.get, call_indirect, end, end
    ArrayPrototypePush(code, 0x23, i, 0x11, i, 0, 0x0b, 0x0b);
    pushNumber(codes, code.length);
    for (let j = 0; j < code.length; j++) ArrayPrototypePush(codes, code[j]);
  }
  for (let i = 0; i < count; i++) {
    pushName(imports, GLOBALS_IMPORTED);
    pushName(imports, i);
    ArrayPrototypePush(imports, 3, TYPES.i, 1);
  }
  pushName(imports, TABLE_IMPORTED);
  pushName(imports, 0);
  // Of functions, as long as it is.
  ArrayPrototypePush(imports, 1, 0x70, 0, 0);
  const types = typesOf(signatures);
  return moduleOf([[1, types], [2, imports], [3, functions], [7, exports], [10, codes]]);
}

/** Puts functions of JavaScript, `[index, function]`, into the table. */
export function placeAt(functions, table) {
  if (functions.length === 0) return;
  const imports = { __proto__: null };
  const signatures = [];
  for (let i = 0; i < functions.length; i++) {
    imports[i] = functions[i][1];
    signatures[i] = functions[i][1].sig;
  }
  const all = { __proto__: null, [FUNCTIONS_IMPORTED]: imports };
  const { exports } = new Instance(passingThrough(signatures), all);
  for (let i = 0; i < functions.length; i++) place(table, functions[i][0], exports[i]);
}

/**
 * Puts functions at the end of the table, `{ run, otherwise }`: one of JavaScript, and a global
 * with the place of that which is called if the first one returns 0. Returns where the first is.
 */
export function placeChoices(choices, table) {
  const first = grow(table, choices.length);
  const functions = { __proto__: null };
  const globals = { __proto__: null };
  const signatures = [];
  for (let i = 0; i < choices.length; i++) {
    const { run, otherwise } = choices[i];
    functions[i] = run;
    globals[i] = otherwise;
    signatures[i] = run.sig;
  }
  const imports = {
    __proto__: null,
    [FUNCTIONS_IMPORTED]: functions,
    [GLOBALS_IMPORTED]: globals,
    [TABLE_IMPORTED]: { __proto__: null, 0: table },
  };
  const { exports } = new Instance(choosing(signatures), imports);
  for (let i = 0; i < choices.length; i++) place(table, first + i, exports[i]);
  return first;
}

/** A number in two bytes, as Emscripten writes it. */
function pushWide(bytes, number) {
  ArrayPrototypePush(bytes, (number & 0x7f) | 0x80, number >>> 7);
}

/**
 * A module that passes on one function of this signature, as Emscripten makes them for single
 * functions: the only ones that are compiled once the guest may run code.
 */
function trampoline(signature) {
  const type = [1, 0x60];
  pushWide(type, signature.length - 1);
  for (let i = 1; i < signature.length; i++) ArrayPrototypePush(type, TYPES[signature[i]]);
  pushWide(type, signature[0] === NO_RESULT ? 0 : 1);
  if (signature[0] !== NO_RESULT) ArrayPrototypePush(type, TYPES[signature[0]]);
  const bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1];
  pushWide(bytes, type.length);
  for (let i = 0; i < type.length; i++) ArrayPrototypePush(bytes, type[i]);
  // The import `e.f` and the export `f`.
  ArrayPrototypePush(bytes, 2, 7, 1, 1, 0x65, 1, 0x66, 0, 0, 7, 5, 1, 1, 0x66, 0, 0);
  return new Module(new Uint8Array(bytes));
}

/** Puts functions of JavaScript, `[index, function]`, into the table while the guest runs. */
export function placeLater(functions, table) {
  const modules = { __proto__: null };
  for (let i = 0; i < functions.length; i++) {
    const [index, f] = functions[i];
    modules[f.sig] ??= trampoline(f.sig);
    const imports = { __proto__: null, e: { __proto__: null, f } };
    place(table, index, new Instance(modules[f.sig], imports).exports.f);
  }
}
