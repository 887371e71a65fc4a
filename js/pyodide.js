// Boots CPython: instantiates the shared WebAssembly module, then either restores the memory image
// or, when the image itself is being made, initializes the interpreter from nothing.
// It replaces Pyodide's own loader, so that no fetching and no environment guessing happens.

import { primordials } from "ext:core/mod.js";
import { connectStreams } from "ext:isolet/stdio.js";
import { mountAll } from "ext:isolet/mounts.js";
import { hookSpace } from "ext:isolet/file_space.js";
import { hookPaths } from "ext:isolet/paths.js";
import { LocalTime } from "ext:isolet/local_time.js";
import "ext:isolet/buffers.js";
import { adoptMemory, growInterpreter } from "ext:isolet/wasm.js";
import { hookCalls } from "ext:isolet/calls.js";
import { ForeignCalls } from "ext:isolet/foreign_calls.js";
import { ForeignMemory } from "ext:isolet/foreign_memory.js";
import { Linking } from "ext:isolet/linking.js";
import { Libraries } from "ext:isolet/libraries.js";
import { TextOutput } from "ext:isolet/text_output.js";
import { Suspensions } from "ext:isolet/suspension.js";
import { checkFrames, hookFrames } from "ext:isolet/frames.js";
import { Saving } from "ext:isolet/saving.js";
import {
  op_isolet_confine,
  op_isolet_died,
  op_isolet_exited,
  op_isolet_image_config,
  op_isolet_image_length,
  op_isolet_image_restore,
  op_isolet_image_save,
  op_isolet_interrupted,
  op_isolet_memory_adopt,
  op_isolet_memory_begin,
  op_isolet_now,
  op_isolet_preloaded,
  op_isolet_python_sources,
  op_isolet_stdlib,
  op_isolet_wall_clock,
  op_isolet_watch_signals,
  op_isolet_wasm_module,
} from "ext:core/ops";

const { ObjectFromEntries, ReflectApply } = primordials;

const ENOSPC = 51;
/** The number of references of an immortal object: `_Py_IMMORTAL_INITIAL_REFCNT`. */
const IMMORTAL = 5 << 28;
const HOME = "/home/user";
/** Those that Emscripten has not, and that programs expect of a machine that is their own. */
const DIRECTORIES = ["/mnt", "/root", HOME];
const STDLIB = "/lib/python314.zip";
const SITE_PACKAGES = "/lib/python3.14/site-packages";

/**
 * Pyodide decides by these flags alone when they are given; "shell" is the one without any web API.
 */
const RUNTIME_ENV = {
  IN_BUN: false,
  IN_DENO: false,
  IN_NODE: false,
  IN_NODE_COMMONJS: false,
  IN_NODE_ESM: false,
  IN_BROWSER: true,
  IN_BROWSER_MAIN_THREAD: false,
  IN_BROWSER_WEB_WORKER: false,
  IN_SAFARI: false,
  IN_SHELL: true,
  IN_WORKERD: false,
};

function prepareFileSystem(Module) {
  const { FS } = Module;
  Module.API.pyVersionTuple = [3, 14, 2];
  Module.API.sitePackages = SITE_PACKAGES;
  FS.mkdirTree(SITE_PACKAGES);
  FS.mkdirTree("/lib/python3.14/lib-dynload");
  Module.stdlib = op_isolet_stdlib();
  FS.writeFile(STDLIB, new Uint8Array(Module.stdlib), { canOwn: true });
  for (let index = 0; index < DIRECTORIES.length; index += 1) {
    FS.mkdirTree(DIRECTORIES[index]);
  }
  FS.chdir(HOME);
  makeDevices(FS);
  Object.assign(Module.ENV, { HOME, PYTHONINSPECT: "1" });
}

/** Makes the devices of Linux that Emscripten has not. */
function makeDevices(FS) {
  const zero = {
    read: (_stream, buffer, offset, length) => (buffer.fill(0, offset, offset + length), length),
    write: (_stream, _buffer, _offset, length) => length,
    llseek: () => 0,
  };
  const full = {
    ...zero,
    write: () => {
      throw new FS.ErrnoError(ENOSPC);
    },
  };
  FS.registerDevice(FS.makedev(1, 5), zero);
  FS.mkdev("/dev/zero", FS.makedev(1, 5));
  FS.registerDevice(FS.makedev(1, 7), full);
  FS.mkdev("/dev/full", FS.makedev(1, 7));
  FS.symlink("/proc/self/fd", "/dev/fd");
  // Emscripten says neither that this is a directory nor that links are in it.
  const { node_ops: ops } = FS.lookupPath("/proc/self/fd").node;
  const { lookup } = ops;
  const time = new Date(0);
  const times = { atime: time, mtime: time, ctime: time };
  const owner = { nlink: 1, uid: 0, gid: 0 };
  const sizes = { rdev: 0, size: 0, blksize: 4096, blocks: 0 };
  ops.getattr = ({ id, mode }) => ({ dev: 1, ino: id, mode, ...owner, ...sizes, ...times });
  ops.lookup = (parent, name) => {
    const node = lookup(parent, name);
    node.mode = 0o120777;
    node.node_ops.getattr = ops.getattr;
    return node;
  };
}

function settings(makeImage, suspensions, linking, libraries, booted) {
  const errorMarker = Symbol("error");
  const config = {
    jsglobals: globalThis,
    env: {},
    args: [],
    packages: [],
    enableRunUntilComplete: true,
    checkAPIVersion: true,
    BUILD_ID: "",
    _makeSnapshot: makeImage,
  };
  // Emscripten gives it 1,700 properties. V8 would make another layout of the object for each of
  // the first thousand. A deletion makes it a dictionary, which has none.
  const Module = {
    deleted: undefined,
    API: { config, runtimeEnv: RUNTIME_ENV },
    linking,
    libraries,
    noImageDecoding: true,
    noAudioDecoding: true,
    noWasmDecoding: true,
    noInitialRun: !makeImage,
    preRun: [prepareFileSystem],
    arguments: [],
    onExit(status) {
      Module.exitStatus = status;
    },
    instantiateWasm(imports, receive) {
      const { env } = imports;
      env.Jsv_GetError_import = () => errorMarker;
      env.JsvError_Check = (value) => value === errorMarker;
      env.emscripten_get_now = () => op_isolet_now();
      env.emscripten_date_now = () => op_isolet_wall_clock();
      // For CPython's own tests, which Pyodide's file system has no such device for: reading from
      // this one fails, and the test is told that it does. As it was, an error of JavaScript passed
      // through CPython, and ended it.
      env.emscripten_set_up_async_input_device_js = () => {
        try {
          Module.FS.createDevice("/dev", "blah", () => {
            throw undefined;
          });
        } catch {}
        return 0;
      };
      // Updates Emscripten's views of the memory.
      const { emscripten_notify_memory_growth: grown } = env;
      env.emscripten_resize_heap = (needed) => {
        if (!growInterpreter(needed >>> 0, true)) return 0;
        grown(0);
        return 1;
      };
      booted.saving.grown = grown;
      hookSpace(env);
      hookPaths(Module, env);
      booted.localTime.hook(Module, env);
      suspensions.hook(Module, env);
      hookFrames(Module, env);
      const calls = new ForeignCalls();
      calls.hook(Module, env);
      booted.foreignMemory = new ForeignMemory(calls, linking);
      hookCalls(Module, env);
      libraries.hook(env);
      booted.saving.objects.hook(env);
      const module = op_isolet_wasm_module();
      const instance = new WebAssembly.Instance(module, imports);
      const { memory } = instance.exports;
      // What makes exceptions of error numbers uses Linux's from the time that Python does:
      // `js/py/errnos.py`.
      booted.errnos = instance.exports["isolet:errnos"];
      booted.errnos.value = makeImage ? 0 : 1;
      booted.memory = memory;
      booted.exports = instance.exports;
      booted.saving.objects.connect(instance.exports);
      op_isolet_memory_begin(memory);
      op_isolet_memory_adopt(memory);
      adoptMemory(memory);
      if (!makeImage && !growInterpreter(op_isolet_image_length(), false)) {
        throw new RangeError("there is not enough memory for the interpreter");
      }
      receive(instance, module);
      return {};
    },
  };
  delete Module.deleted;
  return Module;
}

/**
 * Compiles our Python half into modules that only know each other; `session` is the last of them.
 */
function loadGlue(API) {
  const load = API.runPythonInternal(
    "def load(sources, sys=__import__('sys'), builtins=dict(vars(__import__('builtins')))):\n" +
      "    for name, source in sources:\n" +
      "        module = sys.modules['_isolet_' + name] = type(sys)('_isolet_' + name)\n" +
      "        module.__builtins__ = builtins\n" + // the guest may put others in their places
      "        code = compile(source, f'<isolet>/{name}.py', 'exec', dont_inherit=True)\n" +
      "        exec(code, module.__dict__)\n" +
      "        for value in list(vars(module).values()):\n" + // what a guest sees of our classes
      "            if isinstance(value, type) and value.__module__ == module.__name__:\n" +
      "                value.__module__ = 'isolet'\n" +
      "    for name, _ in sources:\n" +
      "        del sys.modules['_isolet_' + name]\n" +
      "    return module\n" +
      "load",
  );
  const sources = API.public_api.toPy(op_isolet_python_sources());
  const glue = load(sources);
  sources.destroy();
  load.destroy();
  return glue;
}

/** Imports the modules that every session is to have. */
function preload(Module, glue) {
  Module.libraries.begin();
  const modules = op_isolet_preloaded();
  if (modules.length === 0) return;
  op_isolet_confine();
  mountAll(Module);
  const names = Module.API.public_api.toPy(modules);
  const { preload } = glue;
  preload(names);
  preload.destroy();
  names.destroy();
}

/** Has CPython count references to no object that is there now. */
function immortalise(glue, memory) {
  const mortals = glue.mortals();
  for (let { done, value } = mortals.next(); !done; { done, value } = mortals.next()) {
    const view = value.getBuffer("u32");
    const words = new Uint32Array(memory.buffer);
    for (let i = 0; i < view.data.length; i++) words[view.data[i] >> 2] = IMMORTAL;
    view.release();
    value.destroy();
  }
  mortals.destroy();
}

/**
 * Boots an interpreter. `createModule` is the default export of `pyodide.asm.mjs`.
 * With `makeImage` the memory is saved as the image and the isolate is of no further use.
 */
export async function boot(createModule, makeImage) {
  // For each error on the way, which all are caught, V8 would look for lines in a function of a
  // megabyte.
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  const suspensions = new Suspensions(op_isolet_interrupted);
  /** @type {any} */
  const booted = {
    __proto__: null,
    Module: null,
    memory: null,
    exports: null,
    errnos: null,
    suspensions,
    exitStatus: null,
    foreignMemory: null,
    localTime: null,
    saving: null,
    stdlib: null,
  };
  /** @type {any} */
  const image = makeImage
    ? { places: null, libraries: null, textOutput: null }
    : JSON.parse(op_isolet_image_config());
  const textOutput = new TextOutput(image.textOutput);
  const linking = new Linking(image.places, textOutput.choices);
  const libraries = new Libraries(linking, image.libraries, makeImage);
  booted.localTime = new LocalTime(image.localTime);
  booted.saving = new Saving(libraries, booted.localTime);
  const options = settings(makeImage, suspensions, linking, libraries, booted);
  // Emscripten looks once for a worker scope; seeing one, it takes entropy from `crypto` instead of
  // asking a shell for it.
  // Of the files in memory, which are not the image's; but some of their times are.
  if (makeImage) Date.now = () => 0;
  globalThis.WorkerGlobalScope = function () {};
  const booting = booted.saving.forgetful(() => createModule(options));
  delete globalThis.WorkerGlobalScope;
  const Module = await booting;
  if (options.exitStatus !== undefined) {
    throw new Error(`the interpreter exited with status ${options.exitStatus} while it started`);
  }
  // It serves the boot only, and hands out what it was given.
  delete Module.instantiateWasm;
  booted.stdlib = Module.stdlib;
  delete Module.stdlib;
  const { API } = Module;
  if (makeImage) {
    checkFrames(booted.memory);
    API.finalizeBootstrap(undefined, undefined);
    booted.saving.objects.check();
    API.sys.path.insert(0, "");
    const glue = loadGlue(API);
    glue.adopt_errnos();
    booted.errnos.value = 1;
    glue.prepare();
    API.sys.modules.set("_isolet", glue);
    connectStreams(Module);
    const output = glue.open_output();
    const found = output.toJs({ dict_converter: ObjectFromEntries });
    textOutput.install(booted.memory, booted.exports, linking, found);
    output.destroy();
    glue.keep_output();
    preload(Module, glue);
    immortalise(glue, booted.memory);
    glue.freeze();
    glue.destroy();
    const { places } = linking;
    const { places: localTime } = booted.localTime;
    const hiwire = API.serializeHiwireState();
    const { kept: written } = textOutput;
    const kept = {
      places,
      localTime,
      libraries: libraries.noted(),
      textOutput: written,
      hiwire,
    };
    op_isolet_image_save(Module.HEAPU8, JSON.stringify(kept));
    return null;
  }
  API.fatal_error = (error) => {
    // Marked, nothing on the way takes it for a Python exception; the host reports it.
    if (typeof error === "object" && error !== null) error.pyodide_fatal_error = true;
    // In a task nobody would hear of it.
    const status = booted.exitStatus(error);
    if (status !== undefined) op_isolet_exited(status);
    else op_isolet_died(`${error}`);
    throw error;
  };
  // Every entry into Python that may suspend goes through here, and begins with code that must not
  // be interrupted half-way: that of our glue, which says when the guest's begins.
  const { promisingApply } = Module;
  Module.promisingApply = (...args) => {
    suspensions.hold(0, false);
    return ReflectApply(promisingApply, Module, args);
  };
  op_isolet_confine();
  libraries.restore();
  op_isolet_image_restore(booted.memory);
  libraries.restoreCallbacks();
  API.finalizeBootstrap(image.hiwire, undefined);
  connectStreams(Module);
  textOutput.attach(booted.memory, Module.FS);
  const flag = Module._Py_EMSCRIPTEN_SIGNAL_HANDLING;
  suspensions.watch(booted.memory, flag);
  op_isolet_watch_signals(booted.memory, flag);
  Error.stackTraceLimit = stackTraceLimit;
  booted.Module = Module;
  booted.exitStatus = (error) =>
    error instanceof Module.ExitStatus ? error.status : options.exitStatus;
  return booted;
}
