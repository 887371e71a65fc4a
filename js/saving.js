// Saves a session, and makes a booted interpreter a saved one: its memory, and what belongs to it
// in JavaScript. All of it is the guest's own data, which is why nothing here is checked: the host
// passes bytes on that it does not look into.

import { primordials } from "ext:core/mod.js";
import { StrongRef, restoreOrder, resumeOrder, savedOrder } from "ext:isolet/turns.js";
import { growInterpreter } from "ext:isolet/wasm.js";
import { mountAll } from "ext:isolet/mounts.js";
import { Objects } from "ext:isolet/objects.js";
import { SavedFiles } from "ext:isolet/saved_files.js";
import { define, pendingTimers } from "ext:isolet/globals.js";
import {
  op_isolet_is_stdlib,
  op_isolet_save_begin,
  op_isolet_save_bytes,
  op_isolet_save_memory,
  op_isolet_saved_bytes,
  op_isolet_saved_description,
  op_isolet_saved_memory,
} from "ext:core/ops";

const {
  ArrayPrototypePush,
  Error,
  FinalizationRegistry,
  JSONParse,
  JSONStringify,
  MathMax,
  ObjectGetOwnPropertyDescriptor,
  RangeError,
  TypedArrayPrototypeGetByteLength,
  Uint8Array,
  uncurryThis,
} = primordials;

const { Memory } = WebAssembly;
const bufferOf = uncurryThis(ObjectGetOwnPropertyDescriptor(Memory.prototype, "buffer").get);

export class Saving {
  objects = new Objects();
  /** Updates Emscripten's views of the memory. @type {any} */
  grown = null;
  #Module;
  #memory;
  #libraries;
  #localTime;
  #files;
  /** How many saved sessions this interpreter has become: what was freed before is nobody's. */
  #lives = 0;

  constructor(libraries, localTime) {
    this.#libraries = libraries;
    this.#localTime = localTime;
  }

  /**
   * While `work` runs, has registries made that forget what they watched when the interpreter
   * becomes another: what Pyodide would free then is another's.
   */
  async forgetful(work) {
    const lives = () => this.#lives;
    const global = globalThis.FinalizationRegistry;
    class Forgetful {
      #registry;
      constructor(cleanup) {
        this.#registry = new FinalizationRegistry(({ held, life }) => {
          if (life === lives()) cleanup(held);
        });
      }
      register(target, held, token) {
        this.#registry.register(target, { __proto__: null, held, life: lives() }, token);
      }
      unregister(token) {
        return this.#registry.unregister(token);
      }
    }
    define("FinalizationRegistry", Forgetful);
    try {
      return await work();
    } finally {
      define("FinalizationRegistry", global);
    }
  }

  /** Called when a session may begin. */
  begin(Module, memory, stdlib) {
    this.#Module = Module;
    this.#memory = memory;
    this.#files = new SavedFiles(Module.FS, stdlib, op_isolet_is_stdlib);
    this.#libraries.begin();
    this.#files.begin();
    this.objects.begin(Module);
  }

  /** Hands the session to the host. Python does not run meanwhile. `timers` are those of Python. */
  save(timers) {
    const changed = this.objects.changedGlobal();
    if (changed !== undefined) {
      throw new Error(`the JavaScript global ${String(changed)} was set, which cannot be saved`);
    }
    if (pendingTimers() > timers) {
      throw new Error("a timer of JavaScript is running, which cannot be saved");
    }
    const contents = [];
    const description = this.#described(contents);
    op_isolet_save_begin(description);
    for (let i = 0; i < contents.length; i++) op_isolet_save_bytes(contents[i]);
    op_isolet_save_memory(new Uint8Array(bufferOf(this.#memory)));
    resumeOrder();
  }

  /** Does for nobody what saving does in JavaScript, so that it is compiled. */
  rehearse() {
    this.objects.changedGlobal();
    this.#described([]);
  }

  /** What is in JavaScript, as a text. Adds the contents of files to `contents`. */
  #described(contents) {
    const sizes = [];
    const put = (bytes) => {
      ArrayPrototypePush(sizes, TypedArrayPrototypeGetByteLength(bytes));
      return ArrayPrototypePush(contents, bytes) - 1;
    };
    return JSONStringify({
      objects: this.objects.save(),
      libraries: this.#libraries.noted(),
      localTime: this.#localTime.save(),
      files: this.#files.save(put),
      order: savedOrder(),
      sizes,
    });
  }

  /** Becomes the session that the host has. Returns whether it is a deterministic one. */
  restore() {
    const description = JSONParse(op_isolet_saved_description());
    const { objects, libraries, localTime, files, order, sizes } = description;
    const { FS, API } = this.#Module;
    this.#lives++;
    let next = 0;
    const take = (number) => {
      for (; next < number; next++) read(sizes[next]);
      next++;
      return read(sizes[number]);
    };
    // The roots of mounts are nodes too, and must not have the number of a saved one.
    FS.nextInode = MathMax(FS.nextInode, files.nextInode);
    mountAll(this.#Module);
    this.#files.restore(files, take);
    for (; next < sizes.length; next++) read(sizes[next]);
    const length = op_isolet_saved_memory(null);
    if (!growInterpreter(length, false)) {
      throw new RangeError(`the saved session has a memory of ${length} bytes`);
    }
    this.grown(0);
    this.#libraries.restoreSaved(libraries, FS);
    op_isolet_saved_memory(this.#memory);
    this.#libraries.restoreSavedCallbacks(libraries);
    this.objects.restore(objects);
    this.#localTime.restore(localTime);
    API.runPythonInternal_dict = API._pyodide._base.eval_code("{}");
    const isOrdered = restoreOrder(order);
    if (isOrdered) this.objects.replaceGlobal("WeakRef", StrongRef);
    return isOrdered;
  }
}

function read(size) {
  const bytes = new Uint8Array(size);
  if (size > 0) op_isolet_saved_bytes(bytes);
  return bytes;
}
