// `fetch` and what belongs to it, for guest JavaScript and Pyodide's own HTTP clients. The host
// makes the requests, and decides which; it also follows redirects and decodes bodies.

import { primordials } from "ext:core/mod.js";
import { define, encode } from "ext:isolet/globals.js";
import {
  op_isolet_fetch,
  op_isolet_net_chunk,
  op_isolet_net_close,
  op_isolet_net_head,
  op_isolet_net_read,
} from "ext:core/ops";
import { answered } from "ext:isolet/turns.js";

// The guest may put others in the place of the global ones; what goes to an op is made by these.
const {
  ArrayBufferIsView,
  ArrayBufferPrototypeSlice,
  DataViewPrototypeGetBuffer,
  DataViewPrototypeGetByteLength,
  DataViewPrototypeGetByteOffset,
  JSONStringify,
  TypedArrayPrototypeGetBuffer,
  TypedArrayPrototypeGetByteLength,
  TypedArrayPrototypeGetByteOffset,
  TypedArrayPrototypeGetSymbolToStringTag,
  TypedArrayPrototypeSet,
  Uint8Array,
} = primordials;

const CHUNK = 256 * 1024; // bytes of a body that are read at a time
const TEXT = "text/plain;charset=UTF-8";

/** The host's exception, with its class as the name. */
function failure(error) {
  const result = new Error(error[1]);
  result.name = error[0];
  return result;
}

class Headers {
  #pairs = [];
  /** @param {any} [init] */
  constructor(init = undefined) {
    if (init === undefined || init === null) return;
    const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
    for (const pair of pairs) this.append(pair[0], pair[1]);
  }
  append(name, value) {
    this.#pairs.push([`${name}`.toLowerCase(), `${value}`.trim()]);
  }
  delete(name) {
    const key = `${name}`.toLowerCase();
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== key);
  }
  get(name) {
    const key = `${name}`.toLowerCase();
    const values = this.#pairs.filter((pair) => pair[0] === key).map((pair) => pair[1]);
    return values.length === 0 ? null : values.join(", ");
  }
  getSetCookie() {
    return this.#pairs.filter((pair) => pair[0] === "set-cookie").map((pair) => pair[1]);
  }
  has(name) {
    return this.get(name) !== null;
  }
  set(name, value) {
    this.delete(name);
    this.append(name, value);
  }
  forEach(callback) {
    for (const pair of this.entries()) callback(pair[1], pair[0], this);
  }
  *entries() {
    const names = [...new Set(this.#pairs.map((pair) => pair[0]))].sort();
    for (const name of names) {
      if (name !== "set-cookie") yield [name, this.get(name)];
      else for (const value of this.getSetCookie()) yield [name, value];
    }
  }
  *keys() {
    for (const pair of this.entries()) yield pair[0];
  }
  *values() {
    for (const pair of this.entries()) yield pair[1];
  }
  [Symbol.iterator]() {
    return this.entries();
  }
}

/** A copy of the bytes of a typed array or a DataView. */
function copyOf(view) {
  const isDataView = TypedArrayPrototypeGetSymbolToStringTag(view) === undefined;
  const bytes = isDataView
    ? new Uint8Array(
        DataViewPrototypeGetBuffer(view),
        DataViewPrototypeGetByteOffset(view),
        DataViewPrototypeGetByteLength(view),
      )
    : new Uint8Array(
        TypedArrayPrototypeGetBuffer(view),
        TypedArrayPrototypeGetByteOffset(view),
        TypedArrayPrototypeGetByteLength(view),
      );
  const copy = new Uint8Array(TypedArrayPrototypeGetByteLength(bytes));
  TypedArrayPrototypeSet(copy, bytes);
  return copy;
}

/** The bytes of a request's body and the type they have by themselves; null for no body. */
function bodyOf(body) {
  if (body === undefined || body === null) return { bytes: null, type: null };
  if (body instanceof ArrayBuffer) {
    return { bytes: new Uint8Array(ArrayBufferPrototypeSlice(body, 0)), type: null };
  }
  if (ArrayBufferIsView(body)) return { bytes: copyOf(body), type: null };
  return { bytes: encode(`${body}`), type: TEXT };
}

class Request {
  /** @param {any} [init] */
  constructor(resource, init = undefined) {
    const base = resource instanceof Request ? resource : undefined;
    this.url = base?.url ?? `${resource}`;
    this.method = `${init?.method ?? base?.method ?? "GET"}`;
    if (/^(delete|get|head|options|post|put)$/i.test(this.method)) {
      this.method = this.method.toUpperCase();
    }
    this.headers = new Headers(init?.headers ?? base?.headers);
    this.redirect = init?.redirect ?? base?.redirect ?? "follow";
    this.signal = init?.signal ?? base?.signal ?? null;
    const { bytes, type } =
      init?.body === undefined && base ? { bytes: base.bytes, type: null } : bodyOf(init?.body);
    this.bytes = bytes;
    if (type !== null && !this.headers.has("content-type")) this.headers.set("content-type", type);
  }
  clone() {
    return new Request(this);
  }
}

/** Ends the exchanges of responses that nobody can read any more. */
const forgotten = new FinalizationRegistry((exchange) => op_isolet_net_close(exchange));

/** The body of a response as it comes from the host. */
class Source {
  #exchange;
  constructor(exchange) {
    this.#exchange = exchange;
    forgotten.register(this, exchange);
  }
  /** The next piece, or null at the end. */
  async next() {
    if (this.#exchange === null) return null;
    const call = op_isolet_net_read(this.#exchange, CHUNK);
    await answered(call);
    const answer = op_isolet_net_chunk(call);
    if (answer[0] !== null) throw failure(answer[0]);
    // A copy counts as the session's memory; the bytes of the host's own are soon garbage.
    if (answer[1].length > 0) return new Uint8Array(answer[1]);
    this.cancel();
    return null;
  }
  cancel() {
    if (this.#exchange !== null) op_isolet_net_close(this.#exchange);
    this.#exchange = null;
  }
}

/** A source that several responses read, each from the beginning. */
class SharedSource {
  #source;
  #pieces = [];
  constructor(source) {
    this.#source = source;
  }
  reader() {
    let at = 0;
    return {
      next: () => {
        if (at === this.#pieces.length) this.#pieces.push(this.#source.next());
        return this.#pieces[at++];
      },
      cancel() {},
    };
  }
}

class Reader {
  #source;
  constructor(source) {
    this.#source = source;
  }
  async read() {
    const value = await this.#source.next();
    return value === null ? { value: undefined, done: true } : { value, done: false };
  }
  async cancel() {
    this.#source.cancel();
  }
  releaseLock() {}
}

class Response {
  #source;
  #taken = false;
  constructor(head, source) {
    this.status = head.status;
    this.statusText = head.reason;
    this.ok = head.status >= 200 && head.status < 300;
    this.url = head.url;
    this.redirected = head.redirected;
    this.type = "basic";
    this.headers = new Headers(head.headers);
    this.#source = source;
  }
  get bodyUsed() {
    return this.#taken;
  }
  #take() {
    if (this.#taken) throw new TypeError("the body was read before");
    this.#taken = true;
    return this.#source;
  }
  get body() {
    const getReader = () => new Reader(this.#take());
    return {
      getReader,
      cancel: async () => this.#source.cancel(),
      async *[Symbol.asyncIterator]() {
        const reader = getReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) return;
          yield value;
        }
      },
    };
  }
  async bytes() {
    const source = this.#take();
    const pieces = [];
    let length = 0;
    for (let piece = await source.next(); piece !== null; piece = await source.next()) {
      pieces.push(piece);
      length += piece.length;
    }
    const result = new Uint8Array(length);
    let at = 0;
    for (const piece of pieces) {
      result.set(piece, at);
      at += piece.length;
    }
    return result;
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async text() {
    return new TextDecoder().decode(await this.bytes());
  }
  async json() {
    return JSON.parse(await this.text());
  }
  clone() {
    if (this.#taken) throw new TypeError("the body was read before");
    const shared = new SharedSource(this.#source);
    this.#source = shared.reader();
    const copy = new Response({ __proto__: null, ...this, headers: [] }, shared.reader());
    copy.statusText = this.statusText;
    copy.headers = new Headers(this.headers);
    return copy;
  }
}

async function fetch(resource, init = undefined) {
  const request = new Request(resource, init);
  const { signal } = request;
  signal?.throwIfAborted();
  // As text: what the guest has made of iterators and accessors runs here, not within the op.
  const headers = JSONStringify([...request.headers.entries()]);
  const { method, url, bytes, redirect } = request;
  const exchange = op_isolet_fetch(method, url, headers, bytes, redirect);
  const aborted = new Promise((_, reject) => {
    signal?.addEventListener("abort", () => {
      op_isolet_net_close(exchange);
      reject(signal.reason);
    });
  });
  await Promise.race([answered(exchange), aborted]);
  const head = op_isolet_net_head(exchange);
  if (head.error !== null) throw failure(head.error);
  return new Response(head, new Source(exchange));
}

define("Headers", Headers);
define("Request", Request);
define("Response", Response);
define("fetch", fetch);
