// Links CPython for dynamic libraries when the first one is loaded. Emscripten does so at every start: for each of
// thousands of exported functions it makes a place in the table and two objects.
//
// What CPython itself imports by address it gets at once, at the places that are in the memory image. The others are
// kept free, and get their functions in the order in which Emscripten gave them away when the image was made.

import { primordials } from "ext:core/mod.js";

const { ObjectKeys, SafeMap, TypeError, uncurryThis } = primordials;

const { Table } = WebAssembly;
const functionAt = uncurryThis(Table.prototype.get);
const place = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

export class Linking {
  /** Whether everything is linked, as in Emscripten. */
  isWhole;
  #places;
  #rest = null;

  /** `places` is what `link` returned when the image was made, or null to make it. */
  constructor(places) {
    this.#places = places;
    this.isWhole = places === null;
  }

  /** What the image keeps. */
  get places() {
    return this.#places;
  }

  /**
   * Called by Pyodide's module in place of its own linking, `linkAll`. Where functions are goes by name into
   * `addresses`: those that are there already are CPython's own imports.
   */
  link(exports, addresses, table, isInternal, linkAll) {
    if (this.isWhole) {
      const own = ObjectKeys(addresses);
      const first = table.length;
      linkAll();
      const end = table.length;
      const imports = [];
      for (let i = 0; i < own.length; i++) {
        const { value } = addresses[own[i]];
        if (value !== -1) imports[imports.length] = [own[i], value];
      }
      this.#places = { first, end, imports };
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
    this.#rest = { exports, table, isInternal, linkAll };
  }

  /** Called by Pyodide's module before it looks for what is not linked yet. */
  complete() {
    if (this.isWhole) return;
    this.isWhole = true;
    const { exports, table, isInternal, linkAll } = this.#rest;
    const { first, end } = this.#places;
    const known = new SafeMap();
    for (let i = 0; i < table.length; i++) {
      const found = functionAt(table, i);
      if (found !== null) known.set(found, i);
    }
    let free = first;
    const names = ObjectKeys(exports);
    for (let i = 0; i < names.length; i++) {
      const exported = exports[names[i]];
      if (typeof exported !== "function" || isInternal(names[i]) || known.has(exported)) continue;
      while (functionAt(table, free) !== null) free++;
      place(table, free, exported);
      known.set(exported, free);
    }
    while (free < end && functionAt(table, free) !== null) free++;
    if (free !== end) throw new TypeError("the table is not what it was in the image");
    linkAll();
  }
}
