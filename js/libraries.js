// Keeps dynamic libraries: those of preloaded packages in the memory image, those that a session
// has loaded in the saved session. What Emscripten does to load each is noted; when the memory is
// restored, each is instantiated again, in the same order and at the same places. Its data, with
// all that was written to them, come with the memory.

import { primordials } from "ext:core/mod.js";
import { exportedFunction, functionNames } from "ext:isolet/linking.js";
import { compiled } from "ext:isolet/wasm.js";
import { op_isolet_library, op_isolet_library_keep, op_isolet_saved_library } from "ext:core/ops";

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

/** The name by which Emscripten knows CPython itself among the libraries. */
const MAIN = "__main__";

export class Libraries {
  /** Whether libraries are loaded that are in the image, or in a saved session. */
  isRestoring = false;
  #linking;
  /** What `noted` returned when the image was made. */
  #kept;
  /** Whether the image is made, which keeps the libraries' bytes. */
  #makesImage;
  /** What has happened since `begin`. @type {any} */
  #notes = null;
  /** The library that is about to be compiled. */
  #compiling = null;
  #group = 0;
  /** What Pyodide's module works on. @type {any} */
  #own = null;
  /** While libraries are loaded that are in the image. */
  #isBooting = false;
  /** Where the files of a saved session's libraries are. @type {any} */
  #FS = null;
  /** Where the libraries are that are being restored. @type {any} */
  #places = null;

  constructor(linking, kept, makeImage) {
    this.#linking = linking;
    this.#kept = kept;
    this.#makesImage = makeImage;
    this.#forget();
    compiled.tell = (module) => {
      if (this.#compiling !== null) this.#notes.modules.set(this.#compiling, module);
      this.#compiling = null;
    };
  }

  #forget() {
    this.#notes = {
      __proto__: null,
      loads: [],
      places: { __proto__: null },
      modules: new SafeMap(),
      callbacks: new SafeMap(),
      start: 0,
      isAsked: false,
    };
  }

  /** Notes the callbacks that ctypes makes: they are functions of JavaScript in the table. */
  hook(env) {
    const { ffi_prep_closure_loc_js: prepare, ffi_closure_free_js: free } = env;
    env.ffi_prep_closure_loc_js = (callback, signature, target, data, at) => {
      const status = prepare(callback, signature, target, data, at);
      if (status === 0) {
        this.#notes.callbacks.set(callback, [callback, signature, target, data, at]);
      }
      return status;
    };
    env.ffi_closure_free_js = (callback) => {
      this.#notes.callbacks.delete(callback);
      free(callback);
    };
    env.ffi_prep_closure_loc_js.sig = prepare.sig;
    env.ffi_closure_free_js.sig = free.sig;
  }

  /** Called by Pyodide's module, with what it works on, before it is linked. */
  connect(own) {
    this.#own = own;
  }

  /** Called before the first package of an image is imported, or a session begins. */
  begin() {
    const { table, free } = this.#own;
    // What fills one later would be outside the part of the table that is noted.
    if (this.#makesImage && free.length > 0) {
      throw new TypeError("the table has free places below the libraries'");
    }
    const { callbacks } = this.#notes;
    this.#forget();
    // Those of the image are as good as the session's own.
    if (!this.#makesImage) this.#notes.callbacks = callbacks;
    this.#notes.start = table.length;
    this.#notes.isAsked = this.#linking.isAsked;
  }

  /** Called when Python begins to load a library, and with it others that it needs. */
  opening() {
    this.#group++;
  }

  /** Called with a library's bytes before it is compiled. */
  read(name, binary) {
    if (!this.#makesImage) return;
    const bytes = new Uint8Array(binary.buffer, binary.byteOffset, binary.byteLength);
    op_isolet_library_keep(name, bytes);
  }

  /**
   * What stands in place of the bytes that Emscripten would look for: of a library that is in the
   * image or in a package its module, of another one its file. The memory does not say yet where it
   * is.
   */
  kept(name) {
    if (!this.isRestoring) return undefined;
    if (this.#isBooting) return op_isolet_library(name);
    const module = op_isolet_saved_library(name);
    if (module === undefined) return this.#FS.readFile(name);
    this.#notes.modules.set(name, module);
    return module;
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
    let memory;
    if (this.isRestoring) {
      const at = this.#places[name];
      this.#growTo(at[1], `the library ${name}`);
      memory = at[0];
    } else {
      memory = allocate();
    }
    this.#notes.places[name] = [memory, table.length, count];
    this.#compiling = name;
    return memory;
  }

  /** Called when a library has been loaded, or was before. */
  loaded(name, { global, nodelete }, handle) {
    this.#compiling = null;
    ArrayPrototypePush(this.#notes.loads, [name, global, nodelete, this.#group, handle]);
  }

  /** What has to be kept with the memory; null if there are no libraries. */
  noted() {
    const { loads, places, modules, callbacks: made, start } = this.#notes;
    const { table, addresses, functions, exports, byName, free: ownFree } = this.#own;
    const { isAsked } = this.#linking;
    const isSame = loads.length === 0 && table.length === start && made.size === 0;
    if (isSame && isAsked === this.#notes.isAsked) return null;
    const indices = new SafeMap();
    const names = functionNames();
    for (let i = 0; i < names.length; i++) indices.set(names[i], i);
    const imports = [];
    const values = [];
    const slots = [];
    const seen = new SafeSet();
    modules.forEach((library) => {
      const all = importsOf(library);
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
          ArrayPrototypePush(values, [name, addresses[name].value]);
        }
      }
    });
    // What libraries export has an address, too, whether or not a library imports it. Without it,
    // a start would put the function at the end of the table, where the next library begins.
    for (let i = 0; i < loads.length; i++) {
      const names = ObjectKeys(byName[loads[i][0]].exports);
      for (let j = 0; j < names.length; j++) {
        const address = addresses[names[j]];
        if (address !== undefined) ArrayPrototypePush(values, [names[j], address.value]);
      }
    }
    const callbacks = this.#noteSlots(slots, start);
    const free = [];
    for (let i = 0; i < ownFree.length; i++) ArrayPrototypePush(free, ownFree[i]);
    return {
      isAsked,
      start,
      end: table.length,
      loads,
      places,
      imports,
      values,
      slots,
      callbacks,
      free,
    };
  }

  /**
   * Notes the functions that were put into the table since the first library; returns the callbacks
   * among them.
   */
  #noteSlots(slots, start) {
    const { loads, places: ranges } = this.#notes;
    const { table, functions, byName, addressOf, free } = this.#own;
    const known = new SafeMap();
    // Which the libraries put there themselves.
    const theirs = new SafeSet();
    const begins = new SafeMap();
    for (let i = 0; i < loads.length; i++) {
      const name = loads[i][0];
      const first = ranges[name][1];
      begins.set(first, name);
      for (let at = first; at < first + ranges[name][2]; at++) theirs.add(at);
    }
    const libraries = ObjectKeys(byName);
    for (let i = 0; i < libraries.length; i++) {
      const name = libraries[i];
      if (name === MAIN) continue;
      const exported = byName[name].exports;
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
    // ctypes leaves its function in a place that it gives back.
    for (let i = 0; i < free.length; i++) theirs.add(free[i]);
    const callbacks = [];
    this.#notes.callbacks.forEach((callback) => {
      theirs.add(callback[4]);
      ArrayPrototypePush(callbacks, callback);
    });
    let last = "any library";
    for (let i = start; i < table.length; i++) {
      last = begins.get(i) ?? last;
      const found = theirs.has(i) ? null : functionAt(table, i);
      if (found === null) continue;
      if (known.has(found)) {
        const [library, name] = known.get(found);
        ArrayPrototypePush(slots, [i, library, name]);
      } else if (places.has(i)) {
        ArrayPrototypePush(slots, [i, "", places.get(i)]);
      } else {
        throw new TypeError(`a function cannot be kept that was put into the table after ${last}`);
      }
    }
    return callbacks;
  }

  /** Loads what is in the image, before its memory is there. */
  restore() {
    if (this.#kept === null) return;
    this.#isBooting = true;
    this.#load(this.#kept);
    this.#isBooting = false;
  }

  /** Makes ctypes' callbacks again, once the memory is there that says what each calls. */
  restoreCallbacks() {
    if (this.#kept !== null) this.#makeCallbacks(this.#kept);
  }

  /** Loads what a saved session has loaded, before its memory is there. */
  restoreSaved(kept, FS) {
    if (kept === null) return;
    this.#FS = FS;
    this.#load(kept);
  }

  /** As `restoreCallbacks`, for a saved session. */
  restoreSavedCallbacks(kept) {
    if (kept !== null) this.#makeCallbacks(kept);
  }

  /** Loads libraries without linking more of CPython than they import. */
  #load({ isAsked, start, end, loads, places, imports, values, slots }) {
    const { table, addresses, functions, exports, byName, load, forget } = this.#own;
    if (table.length !== start) throw new TypeError("the table is not what it was in the image");
    // The memory may have the address of any of them.
    if (isAsked) this.#linking.placeExports();
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
    this.#places = places;
    for (let i = 0; i < loads.length; i++) {
      const [name, global, nodelete, group, handle] = loads[i];
      const scope = global ? null : (scopes[group] ??= {});
      this.#group = group;
      // All addresses are known; Emscripten would look through them for each library.
      const flags = { global, nodelete, loadAsync: false, allowUndefined: true };
      load(name, flags, scope, handle ?? undefined);
    }
    this.isRestoring = this.#linking.isHeld = false;
    this.#places = null;
    this.#growTo(end, "what follows the libraries");
    const ours = [];
    for (let i = 0; i < slots.length; i++) {
      const [at, library, name] = slots[i];
      if (library !== "") place(table, at, byName[library].exports[name]);
      else ArrayPrototypePush(ours, [at, functions[name]]);
    }
    this.#linking.placeAt(ours, table);
    forget();
  }

  #makeCallbacks({ callbacks, free }) {
    const { functions, free: ownFree } = this.#own;
    const { ffi_prep_closure_loc_js: prepare } = functions;
    for (let i = 0; i < callbacks.length; i++) {
      const [callback, signature, target, data, at] = callbacks[i];
      if (prepare(callback, signature, target, data, at) !== 0) {
        throw new TypeError("a callback of ctypes cannot be made again");
      }
    }
    ownFree.length = 0;
    for (let i = 0; i < free.length; i++) ArrayPrototypePush(ownFree, free[i]);
  }

  #growTo(length, what) {
    const { table } = this.#own;
    if (table.length > length) {
      throw new TypeError(
        `${what} begins at place ${length} of the image's table, which has ${table.length} by then`,
      );
    }
    grow(table, length - table.length);
  }
}
