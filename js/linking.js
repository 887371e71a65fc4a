// Links CPython for dynamic libraries when the first one is loaded. Emscripten does so at every
// start: for each of thousands of exported functions it makes a place in the table and two objects.
//
// What CPython itself imports by address it gets at once, at the places that are in the memory
// image. The others are kept free, and get the functions that Emscripten put there when the image
// was made.
//
// Functions of JavaScript get into a table only through WebAssembly. Emscripten makes a module for
// each.

import { primordials } from "ext:core/mod.js";
import { op_isolet_exports } from "ext:core/ops";
// Its `WebAssembly.Module` is the one that V8 lets compile.
import "ext:isolet/wasm.js";

const {
  ArrayPrototypePush,
  JSONParse,
  ObjectKeys,
  SafeMap,
  SafeSet,
  StringPrototypeCharCodeAt,
  TypeError,
  Uint8Array,
  uncurryThis,
} = primordials;

const { Global, Instance, Module, Table } = WebAssembly;
const functionAt = uncurryThis(Table.prototype.get);
const place = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

/** WebAssembly's types by Emscripten's letters. */
const TYPES = { __proto__: null, i: 0x7f, p: 0x7f, j: 0x7e, f: 0x7d, d: 0x7c, e: 0x6f };
const NO_RESULT = "v";

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

/**
 * A module that imports functions of these signatures, in Emscripten's letters, and exports them.
 */
function passingThrough(signatures) {
  const types = [];
  const imports = [];
  const exports = [];
  pushNumber(types, signatures.length);
  pushNumber(imports, signatures.length);
  pushNumber(exports, signatures.length);
  for (let i = 0; i < signatures.length; i++) {
    const signature = signatures[i];
    ArrayPrototypePush(types, 0x60);
    pushNumber(types, signature.length - 1);
    for (let j = 1; j < signature.length; j++) ArrayPrototypePush(types, TYPES[signature[j]]);
    if (signature[0] === NO_RESULT) ArrayPrototypePush(types, 0);
    else ArrayPrototypePush(types, 1, TYPES[signature[0]]);
    pushName(imports, 0);
    pushName(imports, i);
    ArrayPrototypePush(imports, 0);
    pushNumber(imports, i);
    pushName(exports, i);
    ArrayPrototypePush(exports, 0);
    pushNumber(exports, i);
  }
  const bytes = [0, 0x61, 0x73, 0x6d, 1, 0, 0, 0];
  const sections = [[1, types], [2, imports], [7, exports]];
  for (let i = 0; i < sections.length; i++) {
    const contents = sections[i][1];
    ArrayPrototypePush(bytes, sections[i][0]);
    pushNumber(bytes, contents.length);
    for (let j = 0; j < contents.length; j++) ArrayPrototypePush(bytes, contents[j]);
  }
  return new Module(new Uint8Array(bytes));
}

/** Puts functions of JavaScript, `[index, function]`, into the table. */
function placeAt(functions, table) {
  if (functions.length === 0) return;
  const imports = { __proto__: null };
  const signatures = [];
  for (let i = 0; i < functions.length; i++) {
    imports[i] = functions[i][1];
    signatures[i] = functions[i][1].sig;
  }
  const { exports } = new Instance(passingThrough(signatures), { __proto__: null, 0: imports });
  for (let i = 0; i < functions.length; i++) place(table, functions[i][0], exports[i]);
}

/**
 * Puts functions of JavaScript, `[name, function]`, at the end of the table, and `added` after
 * them. Returns where the first of those is.
 */
function placeAll(functions, addresses, table, added) {
  const first = grow(table, functions.length + added.length);
  const placed = [];
  for (let i = 0; i < functions.length; i++) {
    placed[i] = [first + i, functions[i][1]];
    addresses[functions[i][0]].value = first + i;
  }
  const end = first + functions.length;
  for (let i = 0; i < added.length; i++) ArrayPrototypePush(placed, [end + i, added[i]]);
  placeAt(placed, table);
  return end;
}

/** What of `names` has no address yet and is a function of JavaScript. */
function unplaced(names, addresses, functions) {
  const found = [];
  for (let i = 0; i < names.length; i++) {
    const named = functions[names[i]];
    const isOurs = typeof named === "function" && !named.stub && named.sig !== undefined;
    if (isOurs && addresses[names[i]].value === -1) ArrayPrototypePush(found, [names[i], named]);
  }
  return found;
}

/** What the module has in place of most of its exports: `src/isolate/adapt/side_table.rs`. */
const FILL = "isolet:fill";
const FUNCTIONS = "isolet:functions";
/** What puts exports into CPython's table: from a place on, from an export on, this many. */
const PLACE = "isolet:place";
/** What it has besides, which no package links to. */
const ADDED = new SafeSet([FILL, FUNCTIONS, PLACE, "isolet:immortals", "isolet:objects"]);

/** The names of all functions that CPython exported as Emscripten built it. */
export function functionNames() {
  return JSONParse(op_isolet_exports()).functions;
}

/** The function of this index among those, `exports` being what CPython exports now. */
export function exportedFunction(exports, index) {
  const table = exports[FUNCTIONS];
  if (table.length === 0) exports[FILL]();
  return functionAt(table, index);
}

/** All that CPython exported. */
function allOf(exports) {
  const { functions, constants } = JSONParse(op_isolet_exports());
  const all = { __proto__: null };
  for (let i = 0; i < functions.length; i++) all[functions[i]] = exportedFunction(exports, i);
  const addresses = ObjectKeys(constants);
  for (let i = 0; i < addresses.length; i++) {
    all[addresses[i]] = new Global({ __proto__: null, value: "i32" }, constants[addresses[i]]);
  }
  const kept = ObjectKeys(exports);
  for (let i = 0; i < kept.length; i++) {
    if (!ADDED.has(kept[i])) all[kept[i]] = exports[kept[i]];
  }
  return all;
}

/**
 * Where CPython's exports are in this part of the table: `[place, index, count]` for each run of
 * exports that follow each other in both.
 */
function runsOf(exports, table, first, end) {
  const places = new SafeMap();
  for (let i = first; i < end; i++) places.set(functionAt(table, i), i);
  const runs = [];
  const count = functionNames().length;
  for (let i = 0; i < count; i++) {
    const exported = exportedFunction(exports, i);
    if (!places.has(exported)) continue;
    const at = places.get(exported);
    // The same function may have a further name.
    places.delete(exported);
    const last = runs[runs.length - 1];
    if (last !== undefined && at === last[0] + last[2] && i === last[1] + last[2]) last[2]++;
    else ArrayPrototypePush(runs, [at, i, 1]);
  }
  if (places.size > 0) throw new TypeError("there are functions in the table that are no exports");
  return runs;
}

export class Linking {
  /** Whether everything is linked, as in Emscripten. */
  isWhole;
  /** Whether code was given addresses of exports, or may have been. */
  isAsked = false;
  /** While libraries are loaded that need no more than is there. */
  isHeld = false;
  /** CPython's table of functions, once it is linked. */
  table = null;
  /** Where the first of the functions is that were added. */
  addedPlace = -1;
  #added;
  #places;
  #isPlaced;
  #rest = null;

  /**
   * `places` is what `link` returned when the image was made, or null to make it; `added` are
   * more functions of JavaScript for the table.
   */
  constructor(places, added) {
    this.#places = places;
    this.#added = added;
    this.isWhole = this.#isPlaced = places === null;
  }

  /** What the image keeps. */
  get places() {
    return this.#places;
  }

  /**
   * Called by Pyodide's module in place of its own linking, `linkAll`, with what CPython still
   * exports and the functions of JavaScript. Where functions are goes by name into `addresses`:
   * those that are there already are CPython's own imports.
   */
  link(exports, functions, addresses, table, linkAll) {
    const own = ObjectKeys(addresses);
    this.table = table;
    const finish = () => {
      const names = unplaced(own, addresses, functions);
      this.addedPlace = placeAll(names, addresses, table, this.#added);
    };
    if (this.isWhole) {
      const first = table.length;
      linkAll(allOf(exports));
      const end = table.length;
      const imports = [];
      for (let i = 0; i < own.length; i++) {
        const { value } = addresses[own[i]];
        if (value !== -1) ArrayPrototypePush(imports, [own[i], value]);
      }
      this.#places = { first, end, imports, runs: runsOf(exports, table, first, end) };
      finish();
      return;
    }
    const { first, end, imports } = this.#places;
    if (table.length !== first) throw new TypeError("the table is not as long as in the image");
    grow(table, end - first);
    for (let i = 0; i < imports.length; i++) {
      const name = imports[i][0];
      const index = imports[i][1];
      addresses[name].value = index;
      if (index >= first && index < end) place(table, index, exports[name]);
    }
    finish();
    this.#rest = { exports, linkAll };
  }

  /** Puts functions of JavaScript, `[index, function]`, into the table. */
  placeAt(functions, table) {
    placeAt(functions, table);
  }

  /** Puts all exports at their places in the table. */
  placeExports() {
    this.isAsked = true;
    if (this.#isPlaced) return;
    this.#isPlaced = true;
    const { runs } = this.#places;
    for (let i = 0; i < runs.length; i++) {
      const [at, index, count] = runs[i];
      this.#rest.exports[PLACE](at, index, count);
    }
  }

  /** Called by Pyodide's module before it looks for what is not linked yet. */
  complete() {
    this.isAsked = true;
    if (this.isWhole || this.isHeld) return;
    this.isWhole = true;
    this.placeExports();
    this.#rest.linkAll(allOf(this.#rest.exports));
  }
}
