// Keeps the dynamic libraries of preloaded packages in the memory image. When it is made, what
// Emscripten does to load each is noted; when it is restored, each is instantiated again, in the
// same order and at the same places. Its data, with all that was written to them, come with the
// memory.

import { primordials } from "ext:core/mod.js";
import { exportedFunction, functionNames } from "ext:isolet/linking.js";
import { op_isolet_library, op_isolet_library_keep } from "ext:core/ops";

const {
  ArrayPrototypePush,
  ObjectKeys,
  SafeMap,
  SafeSet,
  TypeError,
  Uint8Array,
  uncurryThis,
} = primordials;

const { Global, Module, Table } = WebAssembly;
const importsOf = Module.imports;
const functionAt = uncurryThis(Table.prototype.get);
const place = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

/** Where a library imports functions and objects from, and where the addresses of both. */
const ENVIRONMENTS = new SafeSet(["env", "wasi_snapshot_preview1"]);
const ADDRESSES = new SafeSet(["GOT.func", "GOT.mem"]);

export class Libraries {
  /** Whether libraries are loaded that are in the image. */
  isRestoring = false;
  #linking;
  /** What `noted` returned when the image was made. */
  #kept;
  /** What has happened so far, if an image is made. */
  #notes;
  #group = 0;
  #own = null;

  constructor(linking, kept, makeImage) {
    this.#linking = linking;
    this.#kept = kept;
    this.#notes = makeImage ? { loads: [], places: { __proto__: null }, binaries: [] } : null;
  }

  /** Called by Pyodide's module, with what it works on, before it is linked. */
  connect(own) {
    this.#own = own;
  }

  /** Called before the first package is imported. */
  begin() {
    this.#notes.start = this.#own.table.length;
  }

  /** Called when Python begins to load a library, and with it others that it needs. */
  opening() {
    this.#group++;
  }

  /** Called with a library's bytes before it is compiled. */
  read(name, binary) {
    if (this.#notes === null) return;
    const bytes = new Uint8Array(binary.buffer, binary.byteOffset, binary.byteLength);
    op_isolet_library_keep(name, bytes);
    ArrayPrototypePush(this.#notes.binaries, bytes);
  }

  /** A library that is in the image: its module, in place of its bytes. */
  kept(name) {
    return this.isRestoring ? op_isolet_library(name) : undefined;
  }

  /** The libraries that one needs. Those in the image are loaded before it anyway. */
  needed(metadata) {
    return this.isRestoring ? [] : metadata.neededDynlibs;
  }

  /**
   * Returns where the data of a library go; where its `count` functions go is the end of the table.
   */
  place(name, count, allocate) {
    const { table } = this.#own;
    if (this.isRestoring) {
      const at = this.#kept.places[name];
      this.#growTo(at[1]);
      return at[0];
    }
    const memory = allocate();
    if (this.#notes !== null) {
      this.#notes.places[name] = [memory, table.length, count];
    }
    return memory;
  }

  /** Called when a library has been loaded, or was before. */
  loaded(name, { global, nodelete }, handle) {
    if (this.#notes === null) return;
    ArrayPrototypePush(this.#notes.loads, [name, global, nodelete, this.#group, handle]);
  }

  /** What has to be kept with the memory; null if there are no libraries. */
  noted() {
    const { loads, places, binaries, start } = this.#notes;
    const { table, addresses, functions, exports } = this.#own;
    if (loads.length === 0 && table.length === start) return null;
    const indices = new SafeMap();
    const names = functionNames();
    for (let i = 0; i < names.length; i++) indices.set(names[i], i);
    const imports = [];
    const values = [];
    const slots = [];
    const seen = new SafeSet();
    const { first, end } = this.#linking.places;
    for (let i = 0; i < binaries.length; i++) {
      const all = importsOf(new Module(binaries[i]));
      for (let j = 0; j < all.length; j++) {
        const { module, name } = all[j];
        const key = `${module} ${name}`;
        if (seen.has(key)) continue;
        seen.add(key);
        if (ENVIRONMENTS.has(module)) {
          // The others are functions of JavaScript, or of libraries.
          const index = indices.get(name);
          if (indices.has(name) && functions[name] === exportedFunction(exports, index)) {
            ArrayPrototypePush(imports, [name, index]);
          } else if (exports[name] !== undefined && functions[name] === exports[name]) {
            ArrayPrototypePush(imports, [name, -1]);
          }
        } else if (ADDRESSES.has(module)) {
          const { value } = addresses[name];
          ArrayPrototypePush(values, [name, value]);
          // A place that is kept free for a function of CPython.
          if (value >= first && value < end && indices.has(name)) {
            ArrayPrototypePush(slots, [value, "", indices.get(name)]);
          }
        }
      }
    }
    this.#noteSlots(slots, start);
    return { start, end: table.length, loads, places, imports, values, slots };
  }

  /** Notes the functions that were put into the table since the first library. */
  #noteSlots(slots, start) {
    const { loads, places: ranges } = this.#notes;
    const { table, functions, byName, addressOf } = this.#own;
    const known = new SafeMap();
    // Which the libraries put there themselves.
    const theirs = new SafeSet();
    for (let i = 0; i < loads.length; i++) {
      const name = loads[i][0];
      const exported = byName[name].exports;
      const first = ranges[name][1];
      for (let at = first; at < first + ranges[name][2]; at++) theirs.add(at);
      const names = ObjectKeys(exported);
      for (let j = 0; j < names.length; j++) known.set(exported[names[j]], [name, names[j]]);
    }
    const places = new SafeMap();
    const ours = ObjectKeys(functions);
    for (let i = 0; i < ours.length; i++) {
      const named = functions[ours[i]];
      if (typeof named !== "function" || named.sig === undefined) continue;
      const at = addressOf(named);
      if (at >= start) places.set(at, ours[i]);
    }
    for (let i = start; i < table.length; i++) {
      const found = theirs.has(i) ? null : functionAt(table, i);
      if (found === null) continue;
      if (known.has(found)) {
        const [library, name] = known.get(found);
        ArrayPrototypePush(slots, [i, library, name]);
      } else if (places.has(i)) {
        ArrayPrototypePush(slots, [i, "", places.get(i)]);
      } else {
        throw new TypeError("a function that a package has put into the table cannot be kept");
      }
    }
  }

  /** Loads what is in the image, before its memory is there. */
  restore() {
    if (this.#kept === null) return;
    const { start, end, loads, imports, values, slots } = this.#kept;
    const { table, addresses, functions, exports, byName, load, forget } = this.#own;
    if (table.length !== start) throw new TypeError("the table is not what it was in the image");
    for (let i = 0; i < imports.length; i++) {
      const [name, index] = imports[i];
      functions[name] = index < 0 ? exports[name] : exportedFunction(exports, index);
    }
    for (let i = 0; i < values.length; i++) {
      const [name, value] = values[i];
      addresses[name] ??= new Global({ __proto__: null, value: "i32", mutable: true }, -1);
      addresses[name].value = value;
    }
    const scopes = { __proto__: null };
    this.isRestoring = this.#linking.isHeld = true;
    for (let i = 0; i < loads.length; i++) {
      const [name, global, nodelete, group, handle] = loads[i];
      const scope = global ? null : (scopes[group] ??= {});
      load(name, { global, nodelete, loadAsync: false }, scope, handle ?? undefined);
    }
    this.isRestoring = this.#linking.isHeld = false;
    this.#growTo(end);
    const ours = [];
    for (let i = 0; i < slots.length; i++) {
      const [at, library, name] = slots[i];
      if (library !== "") place(table, at, byName[library].exports[name]);
      else if (typeof name === "number") place(table, at, exportedFunction(exports, name));
      else ArrayPrototypePush(ours, [at, functions[name]]);
    }
    this.#linking.placeAt(ours, table);
    forget();
  }

  #growTo(length) {
    const { table } = this.#own;
    if (table.length > length) throw new TypeError("the table is longer than in the image");
    grow(table, length - table.length);
  }
}
