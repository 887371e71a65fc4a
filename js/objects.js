// The JavaScript objects that Python refers to, as a saved session has them. Python knows each by
// its place in a table. What was there when the session began is there in every session; of the
// others those can be found again that are properties of what every session has.

import { primordials } from "ext:core/mod.js";
import { define } from "ext:isolet/globals.js";

const {
  ArrayPrototypePush,
  Error,
  ObjectGetOwnPropertyDescriptor,
  ObjectIs,
  ReflectOwnKeys,
  SafeMap,
  SafeSet,
  TypeError,
  uncurryThis,
} = primordials;

const { Table } = WebAssembly;
const at = uncurryThis(Table.prototype.get);
const put = uncurryThis(Table.prototype.set);
const grow = uncurryThis(Table.prototype.grow);

/** The table's first places are Pyodide's own: `jslib_init_js`. */
const OWN_IMMORTALS = 7;

/** In place of the path of an object: it was there when the session began. */
const BEGUN = 0;

/** How far an object may be from what every session has, and how many are looked at. */
const MOST_STEPS = 3;
const MOST_LOOKED_AT = 20000;

export class Objects {
  /** Pyodide's tables, which are arrays of JavaScript. @type {any} */
  #objects = null;
  /** @type {any} */
  #immortals = null;
  /**
   * From objects to references, for those that Python refers to once however often it asks.
   * @type {any}
   */
  #unique = null;
  #begun = [];
  #globals = new SafeMap();
  #Module;

  /** Keeps the map that Pyodide asks for. */
  hook(env) {
    const make = env.__hiwire_deduplicate_new;
    env.__hiwire_deduplicate_new = () => {
      this.#unique = make();
      return this.#unique;
    };
    env.__hiwire_deduplicate_new.sig = make.sig;
  }

  /** Makes sure that this Pyodide has its tables as expected. */
  connect(exports) {
    this.#objects = exports["isolet:objects"];
    this.#immortals = exports["isolet:immortals"];
  }

  check() {
    const last = OWN_IMMORTALS - 1;
    if (this.#immortals.length <= last || at(this.#immortals, last)?.noValueMarker !== 1) {
      throw new Error("Pyodide's tables of objects are not where they are expected");
    }
  }

  /** Notes what is there when a session begins. */
  begin(Module) {
    this.#Module = Module;
    this.#begun = [];
    for (let i = 0; i < this.#objects.length; i++) this.#begun[i] = at(this.#objects, i);
    const names = ReflectOwnKeys(globalThis);
    for (let i = 0; i < names.length; i++) {
      const { value } = ObjectGetOwnPropertyDescriptor(globalThis, names[i]);
      this.#globals.set(names[i], value);
    }
  }

  /** Replaces a global, as if it had been there when the session began. */
  replaceGlobal(name, value) {
    define(name, value);
    this.#globals.set(name, value);
  }

  /** The first global that is not what it was when the session began; undefined if all are. */
  changedGlobal() {
    const names = ReflectOwnKeys(globalThis);
    for (let i = 0; i < names.length; i++) {
      const name = names[i];
      if (!this.#globals.has(name)) return name;
      const descriptor = ObjectGetOwnPropertyDescriptor(globalThis, name);
      if (!ObjectIs(descriptor.value, this.#globals.get(name))) return name;
    }
    if (names.length < this.#globals.size) {
      const left = new SafeSet(names);
      for (const { 0: name } of this.#globals) if (!left.has(name)) return name;
    }
    return undefined;
  }

  /** How many objects Python refers to that cannot be found again. */
  foreign() {
    const { foreign } = this.#described();
    return foreign.length;
  }

  /** Whether an object that Python refers to can be found again. */
  isKept(object) {
    for (let i = 0; i < this.#begun.length; i++) if (this.#begun[i] === object) return true;
    return this.#paths().has(object);
  }

  /** What a saved session has of the tables. */
  save() {
    const { places, foreign, indices } = this.#described();
    if (foreign.length > 0) {
      throw new TypeError(`an object of JavaScript cannot be saved: ${foreign[0]}`);
    }
    const immortals = [];
    for (let i = OWN_IMMORTALS; i < this.#immortals.length; i++) {
      ArrayPrototypePush(immortals, `${at(this.#immortals, i)}`);
    }
    const unique = [];
    this.#unique?.forEach((reference, object) => {
      if (indices.has(object)) ArrayPrototypePush(unique, [indices.get(object), reference]);
    });
    return { places, immortals, unique };
  }

  /** Fills the tables as they were. */
  restore({ places, immortals, unique }) {
    /** @type {Map<any, any> | null} */
    let paths = null;
    const found = (path) => {
      if (paths === null) {
        paths = new SafeMap();
        for (const { 0: object, 1: path } of this.#paths()) paths.set(path, object);
      }
      return paths.get(path) ?? null;
    };
    fit(this.#objects, places.length);
    for (let i = 0; i < this.#objects.length; i++) {
      const path = places[i] ?? null;
      let object = null;
      if (path === BEGUN) object = this.#begun[i] ?? null;
      else if (path !== null) object = found(path);
      put(this.#objects, i, object);
    }
    fit(this.#immortals, OWN_IMMORTALS + immortals.length);
    for (let i = 0; i < immortals.length; i++) {
      put(this.#immortals, OWN_IMMORTALS + i, `${immortals[i]}`);
    }
    this.#unique?.clear();
    for (let i = 0; i < unique.length; i++) {
      const [index, reference] = unique[i];
      this.#unique?.set(at(this.#objects, index), reference);
    }
  }

  #described() {
    const places = [];
    const foreign = [];
    const indices = new SafeMap();
    /** @type {Map<any, any> | null} */
    let paths = null;
    for (let i = 0; i < this.#objects.length; i++) {
      const object = at(this.#objects, i);
      if (object === null || object === undefined) {
        places[i] = null;
        continue;
      }
      indices.set(object, i);
      if (object === this.#begun[i]) {
        places[i] = BEGUN;
        continue;
      }
      paths ??= this.#paths();
      const path = paths.get(object);
      places[i] = path ?? null;
      if (path === undefined) ArrayPrototypePush(foreign, described(object));
    }
    return { places, foreign, indices };
  }

  /** The objects that every session has, each with the path of names that leads to it. */
  #paths() {
    const { API } = this.#Module;
    const found = new SafeMap();
    let next = [[globalThis, "js"]];
    for (let step = 0; step <= MOST_STEPS && next.length > 0; step++) {
      const here = next;
      next = [];
      for (let i = 0; i < here.length; i++) {
        const [object, path] = here[i];
        // Through an object of Python's one would come to all variables.
        if (found.has(object) || API.isPyProxy(object)) continue;
        if (found.size >= MOST_LOOKED_AT) return found;
        found.set(object, path);
        properties(object, path, next);
      }
    }
    // Of these only what a program imports: Pyodide's own objects lead everywhere.
    const offered = [[API.public_api, "pyodide_js"]];
    properties(API.public_api, "pyodide_js", offered);
    for (let i = 0; i < offered.length; i++) {
      const [object, path] = offered[i];
      if (!found.has(object) && !API.isPyProxy(object)) found.set(object, path);
    }
    return found;
  }
}

/** Adds what is in the properties of an object, none of which is computed. */
function properties(object, path, to) {
  let names;
  try {
    names = ReflectOwnKeys(object);
  } catch {
    return; // a proxy of the guest's
  }
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (typeof name !== "string") continue;
    let value;
    try {
      ({ value } = ObjectGetOwnPropertyDescriptor(object, name));
    } catch {
      continue;
    }
    const isObject = typeof value === "object" && value !== null;
    if (isObject || typeof value === "function") ArrayPrototypePush(to, [value, `${path}.${name}`]);
  }
}

function fit(table, length) {
  if (table.length < length) grow(table, length - table.length, null);
}

function described(object) {
  try {
    return typeof object === "function" ? `function ${object.name}` : `${object}`;
  } catch {
    return "an object";
  }
}
