// Defines the few web globals that Pyodide and guest code need, each over one of our ops.
// Decides nothing: entropy, clock and console output all belong to the host.

import { core, primordials } from "ext:core/mod.js";
import { turns } from "ext:isolet/turns.js";
import {
  op_isolet_console,
  op_isolet_decode,
  op_isolet_entropy,
  op_isolet_now,
  op_isolet_tick,
  op_isolet_timer,
  op_isolet_utf8_encode,
  op_isolet_utf8_encode_into,
  op_isolet_utf8_length,
  op_isolet_wall_clock,
} from "ext:core/ops";

const {
  ArrayBufferIsView,
  ArrayBufferPrototypeGetByteLength,
  ArrayPrototypeIndexOf,
  DateNow,
  Error,
  MathCeil,
  MathFloor,
  MathMax,
  MathMin,
  Number,
  ObjectDefineProperty,
  PromisePrototypeThen,
  PromiseResolve,
  RangeError,
  ReflectApply,
  ReflectConstruct,
  SafeMap,
  SafeSet,
  String,
  StringPrototypeToLowerCase,
  TypedArrayPrototypeGetBuffer,
  Uint32Array,
  Uint8Array,
} = primordials;
const { createTimer, cancelTimer } = core;

/** Reports an error that no guest code is left to catch, as a browser's console would. */
export function reportUncaught(error) {
  let text;
  try {
    text = `${error?.stack ?? error}`;
  } catch {
    text = "an error that cannot be shown";
  }
  op_isolet_console(2, text);
}

/** Makes a global as those of the language are. */
export function define(name, value) {
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    value,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

// Console. Pyodide logs through it before the streams are set up; guest JavaScript may as well.

function line(args) {
  let text = "";
  for (let i = 0; i < args.length; i++) {
    text += (i ? " " : "") + String(args[i]?.stack ?? args[i]);
  }
  return text;
}
const toStdout = (...args) => op_isolet_console(1, line(args));
const toStderr = (...args) => op_isolet_console(2, line(args));
define("console", {
  log: toStdout,
  info: toStdout,
  debug: toStdout,
  warn: toStderr,
  error: toStderr,
  trace: toStderr,
});

// Clock and entropy.

define("performance", { now: () => op_isolet_now() });

// Of V8's own, which tells the system's time, a deterministic session has another. Files get their
// times from it.
const RealDate = globalThis.Date;
const now = () => turns === null ? DateNow() : MathFloor(op_isolet_wall_clock());
/** @type {any} */
const SessionDate = function Date(...parts) {
  if (new.target === undefined) return `${new SessionDate()}`;
  return ReflectConstruct(RealDate, parts.length === 0 ? [now()] : parts, new.target);
};
const hidden = (value) => ({ __proto__: null, value, writable: true, configurable: true });
ObjectDefineProperty(RealDate.prototype, "constructor", hidden(SessionDate));
ObjectDefineProperty(SessionDate, "prototype", { __proto__: null, value: RealDate.prototype });
ObjectDefineProperty(SessionDate, "now", hidden(now));
ObjectDefineProperty(SessionDate, "parse", hidden(RealDate.parse));
ObjectDefineProperty(SessionDate, "UTC", hidden(RealDate.UTC));
define("Date", SessionDate);

const ENTROPY_CHUNK = 1 << 20; // bytes; between two of them a deadline can end the guest
define("crypto", {
  getRandomValues(view) {
    const { buffer, byteOffset, byteLength } = view;
    for (let at = 0; at < byteLength; at += ENTROPY_CHUNK) {
      const length = MathMin(ENTROPY_CHUNK, byteLength - at);
      op_isolet_entropy(new Uint8Array(buffer, byteOffset + at, length));
    }
    return view;
  },
});

// V8's own goes on from a seed that all copies of a process share.
const UNIT = 2 ** -53;
const drawn = new Uint8Array(8);
const words = new Uint32Array(TypedArrayPrototypeGetBuffer(drawn));
ObjectDefineProperty(Math, "random", {
  __proto__: null,
  value: function random() {
    op_isolet_entropy(drawn);
    return ((words[0] >>> 5) * 2 ** 26 + (words[1] >>> 6)) * UNIT;
  },
  writable: true,
  enumerable: false,
  configurable: true,
});

// Text. Emscripten decodes wide strings from UTF-16, Pyodide narrow ones from Latin-1.

/** A string's UTF-8. */
export function encode(text) {
  const bytes = new Uint8Array(op_isolet_utf8_length(text));
  op_isolet_utf8_encode(text, bytes);
  return bytes;
}

class TextEncoder {
  get encoding() {
    return "utf-8";
  }
  encode(text = "") {
    return encode(`${text}`);
  }
  encodeInto(text, target) {
    const packed = op_isolet_utf8_encode_into(`${text}`, target);
    return { read: packed[0], written: packed[1] };
  }
}

/** What Pyodide decodes; the position of an encoding is its number for the op. */
const ENCODINGS = ["utf-8", "utf-16le", "latin1"];
const LABELS = { __proto__: null, utf8: "utf-8", "utf-16": "utf-16le", ascii: "latin1" };

class TextDecoder {
  #encoding;
  #fatal;
  /** @param {{ fatal?: unknown }} [options] */
  constructor(label = "utf-8", options = undefined) {
    const name = StringPrototypeToLowerCase(`${label}`);
    this.#encoding = ArrayPrototypeIndexOf(ENCODINGS, LABELS[name] ?? name);
    if (this.#encoding < 0) {
      throw new RangeError(`the encoding '${name}' is not supported; utf-8, utf-16le, latin1 are`);
    }
    this.#fatal = !!options?.fatal;
  }
  get encoding() {
    return ENCODINGS[this.#encoding];
  }
  decode(data = new Uint8Array()) {
    const bytes = ArrayBufferIsView(data)
      ? new Uint8Array(data.buffer, data.byteOffset, data.byteLength)
      : new Uint8Array(data, 0, ArrayBufferPrototypeGetByteLength(data));
    return op_isolet_decode(bytes, this.#encoding, this.#fatal);
  }
}
define("TextEncoder", TextEncoder);
define("TextDecoder", TextDecoder);

// Timers and immediate scheduling. An error in a callback is reported and must not end the run.

function guarded(callback, args) {
  return () => {
    try {
      ReflectApply(callback, undefined, args);
    } catch (error) {
      reportUncaught(error);
    }
  };
}

const LONGEST_TIMER = 2 ** 31 - 1; // milliseconds; the clock of a deterministic session goes there
const timers = new SafeMap();
let lastTimer = 0;

/** How many timers are running. */
export function pendingTimers() {
  return timers.size;
}

export function setTimeout(callback, delay = 0, ...args) {
  op_isolet_timer(timers.size);
  const id = ++lastTimer;
  const guardedCallback = guarded(callback, args);
  const run = () => {
    timers.delete(id);
    guardedCallback();
  };
  const wait = MathCeil(Number(delay) || 0);
  const timer = turns === null
    ? createTimer(run, wait, undefined, false, true)
    : turns.at(op_isolet_now() + MathMin(MathMax(0, wait), LONGEST_TIMER), run);
  timers.set(id, timer);
  return id;
}

export function clearTimeout(id) {
  const timer = timers.get(id);
  if (timer !== undefined) {
    timers.delete(id);
    if (turns === null) cancelTimer(timer);
    else turns.cancel(timer);
  }
}
define("setTimeout", setTimeout);
define("clearTimeout", clearTimeout);

// deno_core's own would end the run on an error.
define("queueMicrotask", (callback) => {
  PromisePrototypeThen(PromiseResolve(), guarded(callback, []));
});

/**
 * Calls back after `delay` milliseconds; with no delay on the next turn of the event loop, which
 * costs microseconds where a timer costs one to two milliseconds. A callback that is a Python
 * function may return a promise, whose failure is reported too.
 */
export function schedule(callback, delay = 0) {
  const run = async () => {
    try {
      await callback();
    } catch (error) {
      reportUncaught(error);
    }
  };
  if (delay > 0) setTimeout(run, delay);
  else if (turns !== null) turns.soon(run);
  else PromisePrototypeThen(op_isolet_tick(), run);
}

class MessagePort {
  /** @type {((event: { data: unknown }) => void) | null} */
  onmessage = null;
  /** @type {any} */
  peer = null;
  postMessage(data) {
    const { peer } = this;
    schedule(() => peer.onmessage?.({ data }));
  }
  start() {}
  close() {}
}
class MessageChannel {
  constructor() {
    this.port1 = new MessagePort();
    this.port2 = new MessagePort();
    this.port1.peer = this.port2;
    this.port2.peer = this.port1;
  }
}
define("MessageChannel", MessageChannel);

// Abort signals, which Pyodide subclasses when it loads.

class AbortSignal {
  aborted = false;
  reason = undefined;
  onabort = null;
  #listeners = new SafeSet();
  addEventListener(type, listener) {
    if (type === "abort") this.#listeners.add(listener);
  }
  removeEventListener(_type, listener) {
    this.#listeners.delete(listener);
  }
  throwIfAborted() {
    if (this.aborted) throw this.reason;
  }
  static trigger(signal, reason) {
    if (signal.aborted) return;
    signal.aborted = true;
    signal.reason = reason ?? new Error("the operation was aborted");
    const event = { type: "abort", target: signal };
    signal.onabort?.(event);
    for (const listener of signal.#listeners) guarded(listener, [event])();
  }
}
const { trigger } = AbortSignal;
delete /** @type {any} */ (AbortSignal).trigger;

class AbortController {
  signal = new AbortSignal();
  abort(reason) {
    trigger(this.signal, reason);
  }
}
define("AbortSignal", AbortSignal);
define("AbortController", AbortController);
