// Connections to a node, and why it refuses: what the client of a node sends by HTTP.

import http from "node:http";
import https from "node:https";
import type { Socket } from "node:net";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";

import {
  ConfigError,
  fromWire,
  IsoletError,
  ProtocolError,
  ServerDiedError,
  TransferError,
} from "./errors.js";
import { decodeJson } from "./json.js";

const MOST_BODY_BYTES = 64 * 2 ** 20;
/** The longest answer, and the longest line of one: what a frame of a server may have. */
const MOST_ANSWER_BYTES = 2 ** 30;
/** After how long nodes that are full are asked again, at most, in milliseconds. */
const ROUND = 1000;
const CONNECTING = 5000;
/** After how long a machine is asked whether it is still there, in milliseconds. */
const SILENT = 15_000;
/** How long a connection is kept that nobody uses. A node keeps it for a minute. */
const IDLE = 20_000;
/** How long a node that could not be reached is tried after all others, in milliseconds. */
const DOWN = 10_000;
/** How long the answer to anything but a run may be silent, in milliseconds. */
const ANSWERING = 600_000;
const BY_PROXIES: ReadonlySet<number> = new Set([502, 503, 504]);
const NEW_SESSION = "make a new one: `client.session()`";

/** What a request has besides its method and path. */
export interface Sent {
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array | undefined;
  /** Ends the connection. What is waited for then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** Whether it runs code, which may be silent for as long as its limits say. */
  readonly isRun?: boolean;
}

/** An answer that was read. */
export interface Answer {
  readonly status: number;
  readonly data: Buffer;
}

/** A problem as `docs/reference/http-api.md` describes it. */
export interface Problem {
  status: number;
  code: string;
  detail: string;
  hint?: string | null;
}

/** The node got nothing of a request: another one may get it. */
export class UnreachableError extends ServerDiedError {}

/** Where a node listens, and the connections to it. */
export class Node {
  readonly address: string;
  /** Until when it is tried after all others. */
  downUntil = 0;
  readonly #agent: http.Agent;
  readonly #request: typeof http.request;
  readonly #target: http.RequestOptions;
  readonly #path: string;
  readonly #connected: "connect" | "secureConnect";

  /** @throws {ConfigError} it is no address. */
  constructor(address: string) {
    this.address = address;
    const { target, path, isSecure } = parsed(address);
    this.#target = target;
    this.#path = path;
    const made = { keepAlive: true, keepAliveMsecs: SILENT, timeout: IDLE };
    this.#agent = isSecure ? new https.Agent(made) : new http.Agent(made);
    this.#request = isSecure ? https.request : http.request;
    this.#connected = isSecure ? "secureConnect" : "connect";
  }

  /**
   * Sends a request, and returns the answer, of which only the head was read.
   *
   * @throws {UnreachableError} the node got nothing of it.
   * @throws {ServerDiedError} there is no answer.
   */
  async open(method: string, path: string, sent: Sent): Promise<http.IncomingMessage> {
    const { body, signal, isRun } = sent;
    await this.#discard();
    signal?.throwIfAborted();
    const request = this.#request({
      ...this.#target,
      agent: this.#agent,
      method,
      path: this.#path + path,
      headers: { ...sent.headers, "content-length": String(Buffer.byteLength(body ?? "")) },
    });
    let isConnected = false;
    const abort = () => request.destroy();
    signal?.addEventListener("abort", abort, { once: true });
    request.once("close", () => signal?.removeEventListener("abort", abort));
    request.once("socket", (socket) => {
      const begin = () => {
        isConnected = true;
        this.downUntil = 0;
        clearTimeout(timer);
      };
      const late = () => request.destroy(new Error(`no connection after ${CONNECTING / 1000} s`));
      const timer = setTimeout(late, CONNECTING);
      request.once("close", () => clearTimeout(timer));
      if (request.reusedSocket) return begin();
      socket.setKeepAlive(true, SILENT);
      socket.once(this.#connected, begin);
    });
    if (!isRun) {
      const silent = () => request.destroy(new Error(`no answer after ${ANSWERING / 1000} s`));
      request.setTimeout(ANSWERING, silent);
    }
    return await new Promise((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", (error) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        // Deno calls a socket reused that it connects anew.
        const isSent = isConnected && (error as NodeJS.ErrnoException).code !== "ECONNREFUSED";
        if (!isSent) this.downUntil = performance.now() + DOWN;
        reject(this.lost(error, isSent ? ServerDiedError : UnreachableError));
      });
      request.end(body);
    });
  }

  /**
   * Sends a request, and returns the answer.
   *
   * @throws {IsoletError} what `open` throws, or the answer is too long.
   */
  async ask(method: string, path: string, sent: Sent): Promise<Answer> {
    const response = await this.open(method, path, sent);
    try {
      return { status: response.statusCode ?? 0, data: await this.read(response) };
    } catch (error) {
      sent.signal?.throwIfAborted();
      throw error;
    }
  }

  /**
   * Returns the body of an answer.
   *
   * @throws {ProtocolError} it is too long.
   * @throws {ServerDiedError} it breaks off.
   */
  async read(response: http.IncomingMessage): Promise<Buffer> {
    const parts: Buffer[] = [];
    let size = Number(response.headers["content-length"] ?? 0);
    try {
      tooLong(size, "an answer");
      size = 0;
      for await (const chunk of this.#chunks(response)) {
        size += chunk.length;
        tooLong(size, "an answer");
        parts.push(chunk);
      }
    } catch (error) {
      response.destroy();
      throw error;
    }
    return Buffer.concat(parts, size);
  }

  /**
   * Yields the events that an answer has, each on a line. Reads no further than is asked for.
   *
   * @throws {ProtocolError} a line is no event, or too long.
   * @throws {ServerDiedError} the answer breaks off.
   */
  async *events(response: http.IncomingMessage): AsyncGenerator<Record<string, unknown>> {
    let parts: Buffer[] = [];
    let size = 0;
    for await (const chunk of this.#chunks(response)) {
      let start = 0;
      for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
        parts.push(chunk.subarray(start, end));
        const line = Buffer.concat(parts);
        parts = [];
        size = 0;
        start = end + 1;
        yield eventOf(line);
      }
      parts.push(chunk.subarray(start));
      size += chunk.length - start;
      tooLong(size, "an event");
    }
  }

  /** Returns the error for a node that does not answer. */
  lost(reason: unknown, kind: typeof ServerDiedError = ServerDiedError): ServerDiedError {
    const shown = reason instanceof Error ? reason.message : String(reason);
    return new kind(
      `the node at ${this.address} has ended, or cannot be reached: ${shown}`,
      `if it has ended, its sessions are gone; ${NEW_SESSION}`,
    );
  }

  /** Closes the connections that nobody uses. */
  close(): void {
    for (const socket of this.#idle()) socket.destroy();
  }

  #idle(): Socket[] {
    return Object.values(this.#agent.freeSockets).flatMap((sockets) => sockets ?? []);
  }

  /** Discards connections that the node has closed: a request on one could not be sent again. */
  async #discard(): Promise<void> {
    if (this.#idle().length === 0) return;
    // Between two rounds of the event loop, it has looked at all connections.
    await setImmediate();
    await setImmediate();
    for (const socket of this.#idle()) if (!socket.writable) socket.destroy();
  }

  async *#chunks(response: http.IncomingMessage): AsyncGenerator<Buffer> {
    const chunks = response.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
    const iterator = chunks[Symbol.asyncIterator]();
    for (;;) {
      let next: IteratorResult<Buffer>;
      try {
        next = await iterator.next();
      } catch (error) {
        throw this.lost(error);
      }
      if (next.done) return;
      yield next.value;
    }
  }
}

function parsed(address: string): {
  target: http.RequestOptions;
  path: string;
  isSecure: boolean;
} {
  if (address.startsWith("unix:") && address.length > "unix:".length) {
    const socketPath = address.slice("unix:".length);
    return { target: { socketPath }, path: "", isSecure: false };
  }
  const url = /^https?:\/\//i.test(address) && URL.canParse(address) ? new URL(address) : undefined;
  if (!url) {
    const hint = "`http://HOST:PORT`, `https://HOST` or `unix:PATH`";
    throw new ConfigError(`${JSON.stringify(address)} is no address of a node`, hint);
  }
  const hostname = url.hostname.replace(/^\[|\]$/g, "");
  const target = url.port === "" ? { hostname } : { hostname, port: url.port };
  return { target, path: url.pathname.replace(/\/+$/, ""), isSecure: url.protocol === "https:" };
}

function tooLong(size: number, what: string): void {
  if (size <= MOST_ANSWER_BYTES) return;
  throw new ProtocolError(`${what} of the node is longer than ${MOST_ANSWER_BYTES} bytes`);
}

function eventOf(line: Buffer): Record<string, unknown> {
  const event = decodeJson(line);
  if (typeof event === "object" && event !== null && "type" in event) {
    return event as Record<string, unknown>;
  }
  throw new ProtocolError(`the node sent ${line.toString("utf8", 0, 40)}, which is no event`);
}

/**
 * Returns a body, unless it is too large.
 *
 * @throws {TransferError} it is.
 */
export function small<Body extends string | Uint8Array>(body: Body): Body {
  const size = Buffer.byteLength(body);
  if (size <= MOST_BODY_BYTES) return body;
  throw new TransferError(`a request has ${size} bytes: limit ${MOST_BODY_BYTES}`);
}

/**
 * Returns the body of an answer.
 *
 * @throws {IsoletError} the request was refused.
 */
export function succeeded({ status, data }: Answer): Buffer {
  if (status >= 300) throw refusal(status, data);
  return data;
}

/** Returns why a node, or a proxy before it, has refused a request. */
export function refusal(status: number, data: Buffer): IsoletError {
  let problem: Partial<Problem> | null = null;
  try {
    problem = decodeJson(data) as Partial<Problem> | null;
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw error;
  }
  if (typeof problem?.code === "string" && typeof problem.detail === "string") {
    return errorOf({ ...problem, status } as Problem);
  }
  const kind = BY_PROXIES.has(status) ? ServerDiedError : IsoletError;
  const shown = JSON.stringify(data.toString("utf8", 0, 200));
  return new kind(`the answer with status ${status} is none of a node: ${shown}`);
}

/** Returns the error for a problem. */
export function errorOf({ status, code, detail, hint }: Problem): IsoletError {
  const isGone = status === 404 || status === 410;
  return fromWire({ kind: code, message: detail, hint: hint ?? (isGone ? NEW_SESSION : null) });
}

/** Returns when the time of so many seconds from now on is over, for `waits`. */
export function deadlineOf(seconds: number): number {
  return performance.now() + seconds * 1000;
}

/** Waits for the next round. Returns whether there was time. */
export async function waits(deadline: number, signal?: AbortSignal): Promise<boolean> {
  signal?.throwIfAborted();
  const left = deadline - performance.now();
  if (!(left > 0)) return false;
  // Not all clients at once.
  const pause = Math.min(left, ROUND * (0.5 + Math.random() / 2));
  try {
    await sleep(pause, undefined, signal && { signal });
  } catch (error) {
    throw signal?.reason ?? error;
  }
  return true;
}
