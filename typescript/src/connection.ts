// A server that was started, `isolet serve --stdio`, and the messages to and from it.

import { AsyncResource } from "node:async_hooks";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import type { Socket } from "node:net";
import type { Readable, Writable } from "node:stream";

import {
  fromWire,
  IsoletError,
  LimitError,
  ProtocolError,
  ServerDiedError,
  SessionClosedError,
  StartError,
  type WireError,
} from "./errors.js";
import type { Output, Display, WireDisplay } from "./execution.js";
import { display } from "./execution.js";
import type { AuditEvent } from "./policy.js";
import { serve, type Tool } from "./tools.js";
import { decode, encode, frame } from "./wire.js";

const PROTOCOL = 1;
const CLIENT = "typescript 0.1.0";
/** The longest frame, in bytes. */
const LONGEST = 2 ** 30;
/** Messages of up to so many bytes are copied into one piece. */
const COPIED = 65_536;
/** For how long a server may take to end before it is killed, in milliseconds. */
const ENDING = 2000;

/** An argument of a request: a number, a text, or what `encode` has made of a value. */
export type Argument = number | string | Buffer;

/** Takes what a run writes and displays, as it comes. */
export interface Listener {
  add(item: Output | Display): void;
  /** Whether it may be full, and has the server wait then. */
  readonly isStream: boolean;
}

interface Pending {
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
}

/** A run under way: where its output goes, and in which context its tools run. */
interface RunUnderWay {
  readonly listener: Listener | undefined;
  readonly context: AsyncResource;
}

/** A server's process and its pipes. It keeps this program alive only while an answer is due. */
export class Connection {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #command: string;
  readonly #pending = new Map<number, Pending>();
  readonly #runs = new Map<number, RunUnderWay>();
  readonly #calls = new Map<number, AbortController>();
  readonly #tools = new Map<number, ReadonlyMap<string, Tool>>();
  readonly #audits = new Map<number, (event: AuditEvent) => void>();
  readonly #frames = new Frames();
  readonly #exited: Promise<void>;
  /** How many streams have more than they keep. */
  #full = 0;
  #next = 1;
  #hasAnswered = false;
  #ended: IsoletError | undefined;

  constructor(binary: string, args: readonly string[], env: NodeJS.ProcessEnv | undefined) {
    const all = ["serve", "--stdio", "--wire", "marshal", ...args];
    this.#command = [binary, ...all].join(" ");
    const child = spawn(binary, all, {
      stdio: ["pipe", "pipe", "inherit"],
      windowsHide: true,
      ...(env && { env }),
    });
    this.#child = child;
    this.#exited = new Promise((resolve) => {
      child.on("error", (error) => {
        this.#end(new StartError(`\`${binary}\` cannot be started: ${error.message}`));
        resolve();
      });
      child.on("exit", (status, signal) => {
        this.#end(this.#exit(status, signal));
        resolve();
      });
    });
    // The end of the process says more than that a pipe is closed.
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    this.#hold(false);
    const hello = { protocol: PROTOCOL, client: CLIENT };
    this.request("hello", encode(hello, "hello")).then(
      (answer) => this.#greet(answer as { protocol?: unknown; version?: unknown }),
      (error: unknown) => this.#end(error as IsoletError),
    );
  }

  /** Why the connection has ended, if it has. */
  get ended(): IsoletError | undefined {
    return this.#ended;
  }

  /** Returns a number that no request, sandbox or session has yet. */
  number(): number {
    this.#next += 1;
    return this.#next;
  }

  /** Makes a request and returns the answer. */
  request(operation: string, ...args: Argument[]): Promise<unknown> {
    const number = this.number();
    return this.#ask(number, operation, args);
  }

  /** The same for one that runs code. The listener, if there is one, gets what it writes. */
  async run(
    listener: Listener | undefined,
    operation: string,
    ...args: Argument[]
  ): Promise<unknown> {
    const number = this.number();
    const context = new AsyncResource("isolet.Session.run");
    this.#runs.set(number, { listener, context });
    try {
      return await this.#ask(number, operation, args);
    } finally {
      this.#runs.delete(number);
    }
  }

  /** A stream has more than it keeps. */
  pause(): void {
    this.#full += 1;
    this.#flow();
  }

  /** The stream has room again. */
  goOn(): void {
    this.#full -= 1;
    this.#flow();
  }

  /** Reads no further while a stream is full, unless something else than streams is waited for. */
  #flow(): void {
    const isOther = (number: number) => !this.#runs.get(number)?.listener?.isStream;
    const isWaiting = [...this.#pending.keys()].some(isOther);
    if (this.#full > 0 && !isWaiting) this.#child.stdout.pause();
    else this.#child.stdout.resume();
  }

  #ask(number: number, operation: string, args: readonly Argument[]): Promise<unknown> {
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      if (this.#pending.size === 0) this.#hold(true);
      this.#pending.set(number, { resolve, reject });
      if (this.#full > 0) this.#flow();
      this.#send([operation, number, ...args]);
    });
  }

  /** Sends a request whose answer nobody waits for. */
  tell(operation: string, ...args: number[]): void {
    if (!this.#ended) this.#send([operation, this.number(), ...args]);
  }

  /** Says which tools a session has. */
  setTools(session: number, tools: ReadonlyMap<string, Tool> | undefined): void {
    if (tools) this.#tools.set(session, tools);
    else this.#tools.delete(session);
  }

  /** Says who is told of accesses of a sandbox. */
  setAudit(sandbox: number, sink: ((event: AuditEvent) => void) | undefined): void {
    if (sink) this.#audits.set(sandbox, sink);
    else this.#audits.delete(sandbox);
  }

  /** Ends the server and all of its sessions. */
  async close(): Promise<void> {
    this.#ended ??= new SessionClosedError("the server was closed", "make a new session");
    this.#hold(true);
    this.#child.stdin.end();
    const kill = setTimeout(() => this.#child.kill("SIGKILL"), ENDING);
    await this.#exited;
    clearTimeout(kill);
  }

  /** Whether the process and its pipes keep this program alive. */
  #hold(isHeld: boolean): void {
    const { stdin, stdout } = this.#child;
    // Pipes are sockets in Node.js and Deno, but not in Bun.
    for (const each of [this.#child, stdin as Partial<Socket>, stdout as Partial<Socket>]) {
      if (isHeld) each.ref?.();
      else each.unref?.();
    }
  }

  #send(message: readonly Argument[]): void {
    const parts = message.map((part) =>
      Buffer.isBuffer(part) ? part : encode(part, "an argument")
    );
    const all = [frame(parts), ...parts];
    const size = all.reduce((sum, part) => sum + part.length, 0);
    if (size > LONGEST) throw new LimitError(`a message has ${size} bytes: limit ${LONGEST}`);
    const { stdin } = this.#child;
    // One write, unless copying costs more than it saves.
    if (size < COPIED) {
      stdin.write(Buffer.concat(all, size));
      return;
    }
    stdin.cork();
    for (const part of all) stdin.write(part);
    stdin.uncork();
  }

  #read(chunk: Buffer): void {
    try {
      for (const body of this.#frames.add(chunk)) this.#receive(decode(body) as unknown[]);
    } catch (error) {
      this.#end(error instanceof IsoletError ? error : new ProtocolError(String(error)));
      this.#child.kill("SIGKILL");
    }
  }

  #receive(message: unknown[]): void {
    const [kind, number] = message as [string, number];
    switch (kind) {
      case "ok":
        return this.#settle(number)?.resolve(message[2]);
      case "error":
        return this.#settle(number)?.reject(fromWire(message[2] as WireError));
      case "output": {
        const stream = message[2] === 2 ? "stderr" : "stdout";
        this.#runs.get(number)?.listener?.add({ kind: "output", stream, text: String(message[3]) });
        return;
      }
      case "display":
        this.#runs.get(number)?.listener?.add(display(message[2] as WireDisplay));
        return;
      case "call": {
        const [, , session, run, name, args, callId] = message as [
          string,
          number,
          number,
          number,
          string,
          Record<string, unknown>,
          number,
        ];
        const answer = () => void this.#serve(number, session, name, args, callId);
        const context = this.#runs.get(run)?.context;
        return context ? context.runInAsyncScope(answer) : answer();
      }
      case "uncall":
        this.#calls.get(number)?.abort();
        return;
      case "audit": {
        const event = message[3] as Record<string, unknown>;
        this.#audits.get(number)?.({ ...event, session: message[2] as number | null });
        return;
      }
      case "fatal":
        throw new ProtocolError(`the server ended the connection: ${String(number)}`);
      default:
        throw new ProtocolError(`the server sent a message of an unknown kind, \`${kind}\``);
    }
  }

  #settle(number: number): Pending | undefined {
    this.#hasAnswered = true;
    const pending = this.#pending.get(number);
    if (pending && this.#pending.delete(number) && this.#pending.size === 0) this.#hold(false);
    if (this.#full > 0) this.#flow();
    return pending;
  }

  async #serve(
    call: number,
    session: number,
    name: string,
    args: Record<string, unknown>,
    callId: number,
  ): Promise<void> {
    const controller = new AbortController();
    this.#calls.set(call, controller);
    const context = { callId, signal: controller.signal };
    const outcome = await serve(this.#tools.get(session), name, args, context, encode);
    this.#calls.delete(call);
    if (this.#ended || controller.signal.aborted) return;
    if ("value" in outcome) {
      this.#send(["answer", call, outcome.value]);
    } else {
      const [type, text, bases] = outcome.raised;
      this.#send(["fail", call, type, text.toWellFormed(), encode(bases, "the bases")]);
    }
  }

  #greet({ protocol, version }: { protocol?: unknown; version?: unknown }): void {
    if (protocol === PROTOCOL) return;
    const message =
      `\`${this.#command}\` ${String(version)} speaks version ${String(protocol)} of the ` +
      `protocol, this package speaks version ${PROTOCOL}`;
    this.#end(new ProtocolError(message, "install versions that belong together"));
    this.#child.stdin.end();
  }

  #exit(status: number | null, signal: NodeJS.Signals | null): IsoletError {
    const how = signal ? `was ended by ${signal}` : `has ended with status ${status}`;
    if (!this.#hasAnswered) {
      const hint = "it may have said why on the standard error";
      return new StartError(`\`${this.#command}\` ${how} before it answered`, hint);
    }
    const message = `the server, process ${this.#child.pid}, ${how}`;
    return new ServerDiedError(message, "the next session starts another one");
  }

  /** Has everything fail that waits. The first reason counts. */
  #end(reason: IsoletError): void {
    this.#ended ??= reason;
    for (const [number, pending] of this.#pending) {
      this.#pending.delete(number);
      pending.reject(this.#ended);
    }
    for (const controller of this.#calls.values()) controller.abort();
    this.#hold(false);
  }
}

/** Puts frames together: a length of four bytes, and as many bytes. */
class Frames {
  #parts: Buffer[] = [];
  #size = 0;
  /** The length of the frame that comes, once it is known. */
  #length: number | undefined;

  /** Adds bytes. Yields the frames that are whole. */
  *add(chunk: Buffer): Generator<Buffer> {
    this.#parts.push(chunk);
    this.#size += chunk.length;
    for (;;) {
      if (this.#length === undefined) {
        if (this.#size < 4) return;
        this.#length = this.#take(4).readUInt32LE();
        if (this.#length > LONGEST) {
          throw new ProtocolError(`a frame has ${this.#length} bytes: limit ${LONGEST}`);
        }
      }
      if (this.#size < this.#length) return;
      const body = this.#take(this.#length);
      this.#length = undefined;
      yield body;
    }
  }

  #take(size: number): Buffer {
    const [first] = this.#parts;
    const all =
      first && first.length >= size && size > 0 ? first : Buffer.concat(this.#parts, this.#size);
    if (all === first) {
      if (first.length === size) this.#parts.shift();
      else this.#parts[0] = first.subarray(size);
    } else {
      const rest = all.subarray(size);
      this.#parts = rest.length > 0 ? [rest] : [];
    }
    this.#size -= size;
    return all.subarray(0, size);
  }
}
