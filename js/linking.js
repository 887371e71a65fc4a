// Links CPython for dynamic libraries when the first one is loaded. Emscripten does so at every
// start: for each of thousands of exported functions it makes a place in the table and two objects.
//
// What CPython itself imports by address it gets at once, at the places that are in the memory
// image. The others are kept free, and get the functions that Emscripten put there when the image
// was made.

import { primordials } from "ext:core/mod.js";
import { placeAt, placeChoices } from "ext:isolet/table_functions.js";
import { op_isolet_exports } from "ext:core/ops";

const {
  ArrayPrototypePush,
  JSONParse,
  ObjectKeys,
  SafeMap,
  SafeSet,
  TypeError,
  uncurryThis,
} = primordials;

const { Global, Table } = WebAssembly;
const functionAt = uncurryThis(Table.prototype.get);
const place = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

/** Puts functions of JavaScript, `[name, function]`, at the end of the table. */
function placeAll(functions, addresses, table) {
  const first = grow(table, functions.length);
  const placed = [];
  for (let i = 0; i < functions.length; i++) {
    placed[i] = [first + i, functions[i][1]];
    addresses[functions[i][0]].value = first + i;
  }
  placeAt(placed, table);
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

/** What the module has in place of most of its exports: `src/isolate/adapt/exports.rs`. */
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
  /** Where the first of the choices is. */
  choicesPlace = -1;
  #choices;
  #places;
  #isPlaced;
  /** What is linked when all of it is asked for. @type {any} */
  #rest = null;

  /**
   * `places` is what `link` returned when the image was made, or null to make it; `choices` are
   * more functions for the table, as `placeChoices` takes them.
   */
  constructor(places, choices) {
    this.#places = places;
    this.#choices = choices;
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
      placeAll(names, addresses, table);
      this.choicesPlace = placeChoices(this.#choices, table);
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
